"""Beam transforms: summaries in a pipeline of the reader's own.

import apache_beam as beam
from precis.transforms import SUMMARY_SCHEMA, Document, SummarizeDocuments

with beam.Pipeline() as pipeline:
    result = (
        pipeline
        | beam.io.ReadFromText("articles.txt")  # an article a line
        | beam.Map(lambda line: Document(article=line))
        | SummarizeDocuments(bundle="bundle", beam_width=4)
    )
    _ = result.rows | beam.io.WriteToParquet(
        "summaries/part", SUMMARY_SCHEMA, file_name_suffix=".parquet"
    )
    _ = result.dead_letters | beam.Map(print)

SummarizeDocuments   turns documents into rows and dead letters
Document             an element of `SummarizeDocuments`
DeadLetter           a record or document that could not be processed, and why
SUMMARY_SCHEMA       the Arrow schema of a row, for a sink
"""

from precis.model.text.document import Document
from precis.pipelines.corpus.task import DeadLetter
from precis.pipelines.tables.schema import SUMMARY_SCHEMA
from precis.pipelines.transforms.beam_transforms import SummarizeDocuments

__all__ = [
    "SUMMARY_SCHEMA",
    "DeadLetter",
    "Document",
    "SummarizeDocuments",
]
