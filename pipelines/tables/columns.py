"""The columns of the summaries: names, types and descriptions.

Each field carries its description in its metadata; docs/SCHEMA.md is made from them.
`schema` makes the schemas of the tables from these columns.
"""

import pyarrow as pa

from precis.pipelines.tables.score_rounding import MARGIN_DECIMALS, SCORE_DIGITS

ROUNDED = f"rounded to {SCORE_DIGITS} significant digits"


def column(
    name: str, kind: pa.DataType, description: str, *, nullable: bool = False
) -> pa.Field:
    """A column with its description."""
    return pa.field(
        name, kind, nullable=nullable, metadata={"description": description}
    )


def _list_of(*fields: pa.Field) -> pa.ListType:
    return pa.list_(pa.field("element", pa.struct(fields), nullable=False))


_STRINGS = pa.list_(pa.field("element", pa.string(), nullable=False))

RUN_ID = column("run_id", pa.string(), "the run that wrote the row")

_SENTENCES = _list_of(
    column(
        "method", pa.string(), "name of the extractive method that chose the sentence"
    ),
    column("rank", pa.int32(), "place among the method's sentences by score, from 1"),
    column("score", pa.float64(), f"the method's score of the sentence, {ROUNDED}"),
    column(
        "start",
        pa.int64(),
        "offset of the first character in the article as it was read",
    ),
    column(
        "end", pa.int64(), "offset past the last character: article[start:end] is text"
    ),
    column("text", pa.string(), "the sentence, as it stands in the article"),
)

_ABSTRACTIVE_SUMMARIES = _list_of(
    column("rank", pa.int32(), "place among the candidates, from 1"),
    column(
        "score", pa.float32(), f"log-probability after the length penalty, {ROUNDED}"
    ),
    column("text", pa.string(), "the summary, one sentence a line"),
)

_KEYPHRASES = _list_of(
    column(
        "method",
        pa.string(),
        "classifier, or frequency: the baseline, only where there is a reference",
    ),
    column("phrase", pa.string(), "the phrase, as the document writes it most often"),
    column(
        "score",
        pa.float64(),
        f"probability by the classifier, or one over the rank by frequency, {ROUNDED}",
    ),
)

# The measures of every summary; `model.quality.measures.Quality` defines them.
_MEASURES = (
    column("words", pa.int32(), "length of the summary in words"),
    *(
        column(
            f"novel_{n}grams_percent",
            pa.float64(),
            f"{n}-grams of the summary's sentences that the article does not have "
            "(See et al. 2017); null where there are none",
            nullable=True,
        )
        for n in (1, 2, 3, 4)
    ),
    column(
        "coverage",
        pa.float64(),
        "share of the words within an extractive fragment (Grusky et al. 2018); "
        "null without words",
        nullable=True,
    ),
    column(
        "density",
        pa.float64(),
        "mean squared length of the fragments, by words (Grusky et al. 2018); "
        "null without words",
        nullable=True,
    ),
    column(
        "compression",
        pa.float64(),
        "words of the article over words of the summary; null without words",
        nullable=True,
    ),
    column(
        "length_ratio",
        pa.float64(),
        "words of the summary over words of the article; "
        "null where the article has none",
        nullable=True,
    ),
    column(
        "repetition_rate",
        pa.float64(),
        "share of the trigrams that the summary has written before",
    ),
    column(
        "unsupported_numbers",
        _STRINGS,
        "numbers that the article does not hold, whatever their form",
    ),
    column(
        "unsupported_dates",
        _STRINGS,
        "weekdays, months and days of a month that the article does not hold",
    ),
    column(
        "unsupported_names",
        _STRINGS,
        "capitalised names that the article does not hold; "
        "null where the summary has no capital letter",
        nullable=True,
    ),
)
_NETWORK_MEASURES = (
    column(
        "mean_log_prob",
        pa.float32(),
        f"mean log-probability of the tokens with the end token, {ROUNDED}; "
        "low_confidence is decided by the rounded value",
    ),
    column(
        "beam_margin",
        pa.float32(),
        "score of the best hypothesis less that of the second, rounded to "
        f"{MARGIN_DECIMALS} decimals; null with beam width 1",
        nullable=True,
    ),
)
_FLAGS = column("flags", _STRINGS, "what the measures warn of; the names stand below")

_DOCUMENT = (
    column(
        "document_id",
        pa.string(),
        "the source's own id, unique if the source's ids are, "
        "or the sha256 of the normalised article",
    ),
    column(
        "document_id_repeat",
        pa.int32(),
        "how many documents before it in the corpus have the same id; "
        "with document_id it is a key",
    ),
    column(
        "split",
        pa.string(),
        "train, validation, test, or another name that the source uses",
    ),
    column(
        "source_file", pa.string(), "the file of the corpus that holds the document"
    ),
    column(
        "source_position",
        pa.string(),
        "place in source_file: byte, record, or row of a row group, each from 0",
    ),
    column(
        "content_sha256",
        pa.string(),
        "sha256 of the normalised article, in hexadecimal",
    ),
    column(
        "duplicate_of",
        pa.string(),
        "document_id of the first document of the corpus with the same content; "
        "null for that document itself",
        nullable=True,
    ),
    column(
        "source_tokens",
        pa.int32(),
        "length of the article in tokens; null where no network read it",
        nullable=True,
    ),
    column(
        "seen_tokens",
        pa.int32(),
        "those of them that the network read, each counted once; null as above",
        nullable=True,
    ),
    column(
        "seen_ratio",
        pa.float64(),
        "seen_tokens / source_tokens, from 0 to 1; null as above",
        nullable=True,
    ),
    column(
        "chunks",
        pa.int32(),
        "passages that the network read, whose summaries are merged; null as above",
        nullable=True,
    ),
    column("truncated", pa.bool_(), "seen_tokens < source_tokens", nullable=True),
    column("article_words", pa.int32(), "length of the article in words"),
)
_SUMMARIES = (
    column(
        "summary",
        pa.string(),
        "the text to show, one sentence a line; "
        "never longer than the article, in words",
    ),
    column(
        "summary_method",
        pa.string(),
        "abstractive, the name of an extractive method, "
        "or source where the article is its own summary",
    ),
    column(
        "quality_flags",
        _STRINGS,
        "what is to be said against `summary`; the names stand below",
    ),
    column(
        "extractive_summary",
        pa.string(),
        "sentences of extractive_method in document order, one a line",
    ),
    column(
        "extractive_method",
        pa.string(),
        "name of the method behind extractive_summary",
    ),
    column("extractive", _SENTENCES, "the sentences that every method chose"),
    column(
        "abstractive_summary",
        pa.string(),
        "the best candidate; null where no network read the article",
        nullable=True,
    ),
    column(
        "abstractive",
        _ABSTRACTIVE_SUMMARIES,
        "the candidates, best first, or the merged summary; null as above",
        nullable=True,
    ),
    column(
        "extractive_quality",
        pa.struct([*_MEASURES, _FLAGS]),
        "measures of extractive_summary",
    ),
    column(
        "abstractive_quality",
        pa.struct([*_MEASURES, *_NETWORK_MEASURES, _FLAGS]),
        "measures of abstractive_summary; null where there is none",
        nullable=True,
    ),
)
_KEYPHRASES_AND_REFERENCE = (
    column(
        "keyphrases",
        _KEYPHRASES,
        "phrases that say what the article is about, each method's best first; "
        "null without a bundle for them",
        nullable=True,
    ),
    column(
        "reference_keyphrases",
        _STRINGS,
        "candidates of the article that its reference names, as stems; "
        "null without a bundle for keyphrases or a reference",
        nullable=True,
    ),
    column(
        "reference_summary",
        pa.string(),
        "the highlights, one sentence a line; null if none",
        nullable=True,
    ),
)
_ORIGIN = (
    column(
        "model_id",
        pa.string(),
        "fingerprint of the bundle; null without a network",
        nullable=True,
    ),
    column(
        "extractive_model_id",
        pa.string(),
        "fingerprint of the bundle behind the method neural; null without one",
        nullable=True,
    ),
    column(
        "keyphrase_model_id",
        pa.string(),
        "fingerprint of the bundle behind keyphrases; null without one",
        nullable=True,
    ),
    column(
        "decode_id",
        pa.string(),
        "fingerprint of the decoding settings; null without a network",
        nullable=True,
    ),
    column(
        "settings_id",
        pa.string(),
        "fingerprint of all settings that a summary depends on, "
        "those of models and search included",
    ),
    column(
        "reused_from",
        pa.string(),
        "run_id of the earlier run that computed the summaries; "
        "null where this run did",
        nullable=True,
    ),
    RUN_ID,
    column("schema_version", pa.int32(), "version of this schema"),
)

SUMMARY_COLUMNS = (*_DOCUMENT, *_SUMMARIES, *_KEYPHRASES_AND_REFERENCE, *_ORIGIN)
