"""The columns of the other tables: scores, and dead letters, which are JSON lines."""

import pyarrow as pa

from precis.pipelines.tables.columns import RUN_ID
from precis.pipelines.tables.measure_columns import STRINGS, column

SCORES_COLUMNS = (
    column(
        "document_id",
        pa.string(),
        "the document; with run_id it names the row of the summaries",
    ),
    column("run_id", pa.string(), "the run that wrote the summary"),
    column(
        "system",
        pa.string(),
        "an extractive method as in extractive[].method, or abstractive, or summary; "
        "or reference, which has measures and no ROUGE",
    ),
    column(
        "rouge1",
        pa.float64(),
        "F1 of ROUGE-1, 0 to 1; null for the reference",
        nullable=True,
    ),
    column(
        "rouge2", pa.float64(), "F1 of ROUGE-2, 0 to 1; null as above", nullable=True
    ),
    column(
        "rougeL",
        pa.float64(),
        "F1 of ROUGE-L of the unsplit texts, 0 to 1; "
        "what papers on news call ROUGE-L is rougeLsum; null as above",
        nullable=True,
    ),
    column(
        "rougeLsum",
        pa.float64(),
        "F1 of ROUGE-Lsum of the texts split at line breaks, 0 to 1; null as above",
        nullable=True,
    ),
    column(
        "words",
        pa.int32(),
        "length of the text in words; null where the run does not hold its measures",
        nullable=True,
    ),
    column(
        "novel_2grams_percent",
        pa.float64(),
        "2-grams that the article does not have; null as above or where there are none",
        nullable=True,
    ),
    column(
        "repetition_rate",
        pa.float64(),
        "share of the trigrams that the text has written before; null as words",
        nullable=True,
    ),
    column(
        "flags",
        STRINGS,
        "what the measures warn of; null as words",
        nullable=True,
    ),
)

# Dead letters are JSON lines; these are the keys of each, with the types that a
# warehouse gives them.
DEAD_LETTER_COLUMNS = (
    column("task", pa.int32(), "number of the task that read the record"),
    column("stage", pa.string(), "the stage that failed"),
    column(
        "reason",
        pa.string(),
        "short constant name that dead letters are counted by",
    ),
    column("detail", pa.string(), "what was wrong, without the document's text"),
    column(
        "error_class",
        pa.string(),
        "name of the exception, where there was one",
        nullable=True,
    ),
    column(
        "retryable",
        pa.bool_(),
        "whether the machine failed and not the data, so that another try may succeed",
    ),
    column(
        "document_id",
        pa.string(),
        "the document, where it had been read and has an id",
        nullable=True,
    ),
    column("source_file", pa.string(), "the file of the corpus"),
    column("source_position", pa.string(), "place in source_file"),
    column(
        "content_sha256",
        pa.string(),
        "as in the summaries, where a text had been read",
        nullable=True,
    ),
    column(
        "raw",
        pa.binary(),
        "the record's bytes, cut at 64 KiB, in base64",
        nullable=True,
    ),
    column(
        "records",
        pa.int32(),
        "how many records are lost with it; "
        "more than one where a file is damaged from some place on",
    ),
    RUN_ID,
)
