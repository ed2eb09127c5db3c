"""The columns of the summaries: names, types and descriptions.

Each field carries its description in its metadata; docs/SCHEMA.md is made from them.
`schema` makes the schemas of the tables from these columns.
"""

import pyarrow as pa

from precis.pipelines.tables.measure_columns import (
    COMPARED_MEASURES,
    FLAGS,
    MEASURES,
    NETWORK_MEASURES,
    ROUNDED,
    STRINGS,
    column,
    list_of,
)

RUN_ID = column("run_id", pa.string(), "the run that wrote the row")

_SENTENCES = list_of(
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

_ABSTRACTIVE_SUMMARIES = list_of(
    column("rank", pa.int32(), "place among the candidates, from 1"),
    column(
        "score",
        pa.float32(),
        f"log-probability after the length penalty, {ROUNDED}; of written sentences "
        "the mean, without those left as they stand",
    ),
    column("text", pa.string(), "the summary, one sentence a line"),
    column(
        "support",
        list_of(
            column("start", pa.int32(), "its first character in the article"),
            column("end", pa.int32(), "behind its last character"),
        ),
        "the sentence of the article that each line was written of; null where the "
        "network wrote of more than a sentence",
        nullable=True,
    ),
)

_KEYPHRASES = list_of(
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

_DOCUMENT = (
    column(
        "document_id",
        pa.string(),
        "the source's own id, unique if the source's ids are, "
        "or the sha256 of the normalised article",
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
        "with --deduplicate, document_id of the first document of the corpus with the "
        "same content; null for that document itself",
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
    column(
        "abstractive_method",
        pa.string(),
        "what the network wrote of: whole, sentences that the extractor chose, or "
        "head, chunk_merge, extract_then_write of a document that is too long for it; "
        "null as above",
        nullable=True,
    ),
    column(
        "truncated",
        pa.bool_(),
        "seen_tokens < source_tokens, and no extractor has read all sentences; null as "
        "above",
        nullable=True,
    ),
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
        STRINGS,
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
        pa.struct([*MEASURES, FLAGS]),
        "measures of extractive_summary",
    ),
    column(
        "abstractive_quality",
        pa.struct([*MEASURES, *NETWORK_MEASURES, FLAGS]),
        "measures of abstractive_summary; null where there is none",
        nullable=True,
    ),
    column(
        "other_quality",
        list_of(
            column(
                "system",
                pa.string(),
                "an extractive method as in extractive[].method"
                ", or source where the article is its own summary",
            ),
            *COMPARED_MEASURES,
            FLAGS,
        ),
        "measures of the summaries by the other extractive methods, and of `summary` "
        "where it is the article",
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
        STRINGS,
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
    column(
        "reference_quality",
        pa.struct([*COMPARED_MEASURES, FLAGS]),
        "measures of reference_summary; null where there is none, or where measuring "
        "failed",
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
