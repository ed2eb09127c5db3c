"""Beam transforms: summaries in a pipeline of the reader's own.

import apache_beam as beam
from precis.transforms import Document, SummarizeDocuments, WriteSummaries

with beam.Pipeline() as pipeline:
    result = (
        pipeline
        | beam.io.ReadFromText("articles.txt")  # an article a line
        | beam.Map(lambda line: Document(article=line))
        | SummarizeDocuments(bundle="bundle", beam_width=4)
    )
    _ = result.rows | WriteSummaries("summaries")
    _ = result.dead_letters | beam.Map(print)

ReadCorpus           reads the corpora that `precis summarize` reads
SummarizeDocuments   turns documents into rows and dead letters
SavedModelHandler    runs a SavedModel of `precis export` in Beam's RunInference
SummarizeGroups      turns rows into a row for each group of documents
WriteSummaries       writes rows to Parquet
Document             an element of `SummarizeDocuments`
DeadLetter           a record or document that could not be processed, and why
SUMMARY_SCHEMA       the Arrow schema of a row, for a sink of the reader's own
row_schema           the same with the fields that the rows keep
"""

from precis.model.text.document import Document
from precis.pipelines.corpus.task import DeadLetter
from precis.pipelines.tables.schema import SUMMARY_SCHEMA
from precis.pipelines.transforms.beam_rows import row_schema
from precis.pipelines.transforms.beam_transforms import (
    ReadCorpus,
    SummarizeDocuments,
    WriteSummaries,
)
from precis.pipelines.transforms.groups import SummarizeGroups
from precis.pipelines.transforms.saved_model_handler import SavedModelHandler

__all__ = [
    "SUMMARY_SCHEMA",
    "DeadLetter",
    "Document",
    "ReadCorpus",
    "SavedModelHandler",
    "SummarizeDocuments",
    "SummarizeGroups",
    "WriteSummaries",
    "row_schema",
]
