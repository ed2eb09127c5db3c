"""The columns of the Parquet tables: names, types and descriptions.

Each field carries its description in its metadata; docs/SCHEMA.md is made from them.
`schema` makes the schemas of the tables from these columns.
"""

import pyarrow as pa

from precis.pipelines.score_rounding import MARGIN_DECIMALS, SCORE_DIGITS

ROUNDED = f"rounded to {SCORE_DIGITS} significant digits"


def _column(
    name: str, kind: pa.DataType, description: str, *, nullable: bool = False
) -> pa.Field:
    return pa.field(
        name, kind, nullable=nullable, metadata={"description": description}
    )


def _list_of(*fields: pa.Field) -> pa.ListType:
    return pa.list_(pa.field("element", pa.struct(fields), nullable=False))


_STRINGS = pa.list_(pa.field("element", pa.string(), nullable=False))

_RUN_ID = _column("run_id", pa.string(), "the run that wrote the row")

_SENTENCES = _list_of(
    _column(
        "method", pa.string(), "name of the extractive method that chose the sentence"
    ),
    _column("rank", pa.int32(), "place among the method's sentences by score, from 1"),
    _column("score", pa.float64(), f"the method's score of the sentence, {ROUNDED}"),
    _column(
        "start",
        pa.int64(),
        "offset of the first character in the article as it was read",
    ),
    _column(
        "end", pa.int64(), "offset past the last character: article[start:end] is text"
    ),
    _column("text", pa.string(), "the sentence, as it stands in the article"),
)

_ABSTRACTIVE_SUMMARIES = _list_of(
    _column("rank", pa.int32(), "place among the candidates, from 1"),
    _column(
        "score", pa.float32(), f"log-probability after the length penalty, {ROUNDED}"
    ),
    _column("text", pa.string(), "the summary, one sentence a line"),
)

_KEYPHRASES = _list_of(
    _column(
        "method",
        pa.string(),
        "classifier, or frequency: the baseline, only where there is a reference",
    ),
    _column("phrase", pa.string(), "the phrase, as the document writes it most often"),
    _column(
        "score",
        pa.float64(),
        f"probability by the classifier, or one over the rank by frequency, {ROUNDED}",
    ),
)

# The measures of every summary; `model.quality.measures.Quality` defines them.
_MEASURES = (
    _column("words", pa.int32(), "length of the summary in words"),
    *(
        _column(
            f"novel_{n}grams_percent",
            pa.float64(),
            f"{n}-grams of the summary's sentences that the article does not have "
            "(See et al. 2017); null where there are none",
            nullable=True,
        )
        for n in (1, 2, 3, 4)
    ),
    _column(
        "coverage",
        pa.float64(),
        "share of the words within an extractive fragment (Grusky et al. 2018); "
        "null without words",
        nullable=True,
    ),
    _column(
        "density",
        pa.float64(),
        "mean squared length of the fragments, by words (Grusky et al. 2018); "
        "null without words",
        nullable=True,
    ),
    _column(
        "compression",
        pa.float64(),
        "words of the article over words of the summary; null without words",
        nullable=True,
    ),
    _column(
        "length_ratio",
        pa.float64(),
        "words of the summary over words of the article; "
        "null where the article has none",
        nullable=True,
    ),
    _column(
        "repetition_rate",
        pa.float64(),
        "share of the trigrams that the summary has written before",
    ),
    _column(
        "unsupported_numbers",
        _STRINGS,
        "numbers that the article does not hold, whatever their form",
    ),
    _column(
        "unsupported_dates",
        _STRINGS,
        "weekdays, months and days of a month that the article does not hold",
    ),
    _column(
        "unsupported_names",
        _STRINGS,
        "capitalised names that the article does not hold; "
        "null where the summary has no capital letter",
        nullable=True,
    ),
)
_NETWORK_MEASURES = (
    _column(
        "mean_log_prob",
        pa.float32(),
        f"mean log-probability of the tokens with the end token, {ROUNDED}; "
        "low_confidence is decided by the rounded value",
    ),
    _column(
        "beam_margin",
        pa.float32(),
        "score of the best hypothesis less that of the second, rounded to "
        f"{MARGIN_DECIMALS} decimals; null with beam width 1",
        nullable=True,
    ),
)
_FLAGS = _column("flags", _STRINGS, "what the measures warn of; the names stand below")

_DOCUMENT = (
    _column(
        "document_id",
        pa.string(),
        "the source's own id, unique if the source's ids are, "
        "or the sha256 of the normalised article",
    ),
    _column(
        "document_id_repeat",
        pa.int32(),
        "how many documents before it in the corpus have the same id; "
        "with document_id it is a key",
    ),
    _column(
        "split",
        pa.string(),
        "train, validation, test, or another name that the source uses",
    ),
    _column(
        "source_file", pa.string(), "the file of the corpus that holds the document"
    ),
    _column(
        "source_position",
        pa.string(),
        "place in source_file: byte, record, or row of a row group, each from 0",
    ),
    _column(
        "content_sha256",
        pa.string(),
        "sha256 of the normalised article, in hexadecimal",
    ),
    _column(
        "duplicate_of",
        pa.string(),
        "document_id of the first document of the corpus with the same content; "
        "null for that document itself",
        nullable=True,
    ),
    _column(
        "source_tokens",
        pa.int32(),
        "length of the article in tokens; null where no network read it",
        nullable=True,
    ),
    _column(
        "seen_tokens",
        pa.int32(),
        "those of them that the network read, each counted once; null as above",
        nullable=True,
    ),
    _column(
        "seen_ratio",
        pa.float64(),
        "seen_tokens / source_tokens, from 0 to 1; null as above",
        nullable=True,
    ),
    _column(
        "chunks",
        pa.int32(),
        "passages that the network read, whose summaries are merged; null as above",
        nullable=True,
    ),
    _column("truncated", pa.bool_(), "seen_tokens < source_tokens", nullable=True),
    _column("article_words", pa.int32(), "length of the article in words"),
)
_SUMMARIES = (
    _column(
        "summary",
        pa.string(),
        "the text to show, one sentence a line; "
        "never longer than the article, in words",
    ),
    _column(
        "summary_method",
        pa.string(),
        "abstractive, the name of an extractive method, "
        "or source where the article is its own summary",
    ),
    _column(
        "quality_flags",
        _STRINGS,
        "what is to be said against `summary`; the names stand below",
    ),
    _column(
        "extractive_summary",
        pa.string(),
        "sentences of extractive_method in document order, one a line",
    ),
    _column(
        "extractive_method",
        pa.string(),
        "name of the method behind extractive_summary",
    ),
    _column("extractive", _SENTENCES, "the sentences that every method chose"),
    _column(
        "abstractive_summary",
        pa.string(),
        "the best candidate; null where no network read the article",
        nullable=True,
    ),
    _column(
        "abstractive",
        _ABSTRACTIVE_SUMMARIES,
        "the candidates, best first, or the merged summary; null as above",
        nullable=True,
    ),
    _column(
        "extractive_quality",
        pa.struct([*_MEASURES, _FLAGS]),
        "measures of extractive_summary",
    ),
    _column(
        "abstractive_quality",
        pa.struct([*_MEASURES, *_NETWORK_MEASURES, _FLAGS]),
        "measures of abstractive_summary; null where there is none",
        nullable=True,
    ),
)
_KEYPHRASES_AND_REFERENCE = (
    _column(
        "keyphrases",
        _KEYPHRASES,
        "phrases that say what the article is about, each method's best first; "
        "null without a bundle for them",
        nullable=True,
    ),
    _column(
        "reference_keyphrases",
        _STRINGS,
        "candidates of the article that its reference names, as stems; "
        "null without a bundle for keyphrases or a reference",
        nullable=True,
    ),
    _column(
        "reference_summary",
        pa.string(),
        "the highlights, one sentence a line; null if none",
        nullable=True,
    ),
)
_ORIGIN = (
    _column(
        "model_id",
        pa.string(),
        "fingerprint of the bundle; null without a network",
        nullable=True,
    ),
    _column(
        "extractive_model_id",
        pa.string(),
        "fingerprint of the bundle behind the method neural; null without one",
        nullable=True,
    ),
    _column(
        "keyphrase_model_id",
        pa.string(),
        "fingerprint of the bundle behind keyphrases; null without one",
        nullable=True,
    ),
    _column(
        "decode_id",
        pa.string(),
        "fingerprint of the decoding settings; null without a network",
        nullable=True,
    ),
    _column(
        "settings_id",
        pa.string(),
        "fingerprint of all settings that a summary depends on, "
        "those of models and search included",
    ),
    _column(
        "reused_from",
        pa.string(),
        "run_id of the earlier run that computed the summaries; "
        "null where this run did",
        nullable=True,
    ),
    _RUN_ID,
    _column("schema_version", pa.int32(), "version of this schema"),
)

SUMMARY_COLUMNS = (*_DOCUMENT, *_SUMMARIES, *_KEYPHRASES_AND_REFERENCE, *_ORIGIN)

SCORES_COLUMNS = (
    _column(
        "document_id",
        pa.string(),
        "the document; with run_id it names the row of the summaries",
    ),
    _column("run_id", pa.string(), "the run that wrote the summary"),
    _column(
        "system",
        pa.string(),
        "an extractive method as in extractive[].method, or abstractive, or summary",
    ),
    _column("rouge1", pa.float64(), "F1 of ROUGE-1, 0 to 1"),
    _column("rouge2", pa.float64(), "F1 of ROUGE-2, 0 to 1"),
    _column(
        "rougeL",
        pa.float64(),
        "F1 of ROUGE-L of the unsplit texts, 0 to 1; "
        "what papers on news call ROUGE-L is rougeLsum",
    ),
    _column(
        "rougeLsum",
        pa.float64(),
        "F1 of ROUGE-Lsum of the texts split at line breaks, 0 to 1",
    ),
)

# Dead letters are JSON lines; these are the keys of each, with the types that a
# warehouse gives them.
DEAD_LETTER_COLUMNS = (
    _column("task", pa.int32(), "number of the task that read the record"),
    _column("stage", pa.string(), "the stage that failed"),
    _column(
        "reason",
        pa.string(),
        "short constant name that dead letters are counted by",
    ),
    _column("detail", pa.string(), "what was wrong, without the document's text"),
    _column(
        "error_class",
        pa.string(),
        "name of the exception, where there was one",
        nullable=True,
    ),
    _column(
        "retryable",
        pa.bool_(),
        "whether the machine failed and not the data, so that another try may succeed",
    ),
    _column(
        "document_id",
        pa.string(),
        "the document, where it had been read and has an id",
        nullable=True,
    ),
    _column("source_file", pa.string(), "the file of the corpus"),
    _column("source_position", pa.string(), "place in source_file"),
    _column(
        "content_sha256",
        pa.string(),
        "as in the summaries, where a text had been read",
        nullable=True,
    ),
    _column(
        "raw",
        pa.binary(),
        "the record's bytes, cut at 64 KiB, in base64",
        nullable=True,
    ),
    _column(
        "records",
        pa.int32(),
        "how many records are lost with it; "
        "more than one where a file is damaged from some place on",
    ),
    _RUN_ID,
)
