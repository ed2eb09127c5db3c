"""Beam transforms for pipelines of the reader's own, offered as `precis.transforms`.

    ReadCorpus           `--corpus` syntax -> documents, dead letters
    SummarizeDocuments   documents -> summary rows, dead letters
    WriteSummaries       summary rows -> Parquet files

The commands use the same functions, once per task instead of per element: a task is
read by `read_task`, summarized by `WindowSummarizer` and written with `summary_table`.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import apache_beam as beam
from apache_beam.io.parquetio import WriteToParquetBatched
from apache_beam.utils.shared import Shared

from precis.model import files
from precis.model.errors import UsageError
from precis.model.inference.process_limits import refuse_within_import
from precis.model.text.article import Article
from precis.model.text.document import Document
from precis.pipelines.corpus.dead_letters import file_failure_letter
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import list_tasks, read_task
from precis.pipelines.corpus.task import DeadLetter, FileFailure, Task, to_article
from precis.pipelines.engines.remote_checks import refuse_hub_names
from precis.pipelines.run.options import read_flags
from precis.pipelines.summarize.summarize import limit_search_processes
from precis.pipelines.summarize.summary_settings import SummarySettings, read_settings
from precis.pipelines.summarize.window_summarizer import WindowSummarizer
from precis.pipelines.tables.schema import SUMMARY_SCHEMA, summary_table

DOCUMENTS = "documents"
DEAD_LETTERS: Literal["dead_letters"] = "dead_letters"
TaggedLetter = beam.pvalue.TaggedOutput[Literal["dead_letters"], DeadLetter]


class ReadCorpus(beam.PTransform):
    """Reads the documents of a corpus, each with an id and a split.

        corpus = pipeline | ReadCorpus(corpus="jsonl:news/*.jsonl", id_field="url")
        articles = corpus.documents | beam.Map(lambda document: document.article)
        lost = corpus.dead_letters | beam.Map(lambda letter: letter.reason)

    The outputs are `documents`, a PCollection of `Document`, and `dead_letters`, a
    PCollection of `DeadLetter`. The corpus is looked at when the pipeline is built, and
    read by its workers.
    """

    def __init__(self, corpus: str, **options: Any) -> None:
        """Stores its arguments.

        Args:
          corpus: as `--corpus` of `precis summarize`.
          **options: the other fields of `CorpusOptions`, such as `article_field`.
        """
        super().__init__()
        self._corpus = corpus
        self._corpus_options = options

    def expand(self, root: beam.pvalue.PBegin) -> Any:
        """Lists the tasks of the corpus and adds their reading.

        Raises:
          UsageError: nothing is there to read, or not what the options say.
        """
        (options,) = read_flags(
            [CorpusOptions], {"corpus": self._corpus, **self._corpus_options}
        )
        return (
            root
            | "ListTasks" >> beam.Create(list_tasks(options))
            | "ReadTasks"
            >> beam.FlatMap(read_documents, options).with_outputs(
                DEAD_LETTERS, main=DOCUMENTS
            )
        )


def read_documents(
    task: Task, options: CorpusOptions
) -> Iterator[Document | TaggedLetter]:
    """The documents of a task, and the dead letters between them.

    Where a file of the task changes while it is read, or cannot be read to its end, a
    dead letter with the reason `file_changed` or `file_unreadable` is the last element.
    The documents before it were sent on already; they may be of both contents.
    """
    try:
        for record in read_task(task, options):
            if isinstance(record, DeadLetter):
                yield TaggedLetter(DEAD_LETTERS, record)
            else:
                yield record.document
    except FileFailure as failure:
        yield TaggedLetter(DEAD_LETTERS, file_failure_letter(failure))


ROWS = "rows"


@beam.typehints.with_input_types(Document)
class SummarizeDocuments(beam.PTransform):
    """Summarizes a PCollection of `Document`.

        result = (
            pipeline
            | beam.io.ReadFromBigQuery(table="news.articles")
            | beam.Map(lambda row: Document(row["url"], article=row["body"]))
            | SummarizeDocuments(bundle="gs://models/news", beam_width=4)
        )
        texts = result.rows | beam.Map(lambda row: (row["document_id"], row["summary"]))
        lost = result.dead_letters | beam.Map(lambda letter: letter.reason)

    The outputs are `rows`, a PCollection of dicts with the columns of `SUMMARY_SCHEMA`,
    and `dead_letters`, a PCollection of `DeadLetter`. Every document is in one of them;
    a document that cannot be summarized costs its own row only.

    Documents are taken `window_documents` at a time, as far as a Beam bundle reaches,
    and those of similar length are searched together. Rows have the Beam window of
    their document, and no timestamp of their own. The column `split` is empty where the
    document names none; the command would decide by the hash of the id.
    """

    def __init__(
        self,
        *,
        clean: str = "standard",
        run_id: str = "",
        **options: Any,
    ) -> None:
        """Stores its arguments.

        Args:
          clean: as `--clean` of `precis summarize`.
          run_id: the column `run_id`; there is no job that could name it.
          **options: the flags of `precis summarize` that concern summaries, such as
              `bundle`, `extractive`, `beam_width` and `min_source_words`. Without a
              bundle there are extractive summaries only, and TensorFlow is not needed.
        """
        super().__init__()
        self._clean = clean
        self._run_id = run_id
        self._summary_options = options

    def expand(self, documents: beam.PCollection) -> Any:
        """Checks the options and adds the summaries.

        Raises:
          UsageError: an option or a bundle that cannot be.
        """
        refuse_within_import()
        if "output" in self._summary_options:
            raise UsageError(
                "SummarizeDocuments takes no output; WriteSummaries writes its rows"
            )
        refuse_hub_names(documents.pipeline.options, self._summary_options)
        settings = read_settings(self._summary_options, self._clean)
        options = limit_search_processes(settings.options, documents.pipeline.options)
        settings = settings._replace(options=options)
        size = options.window_documents
        return (
            documents
            | "Batch" >> beam.BatchElements(min_batch_size=size, max_batch_size=size)
            | "SummarizeBatches"
            >> beam.ParDo(_SummarizeBatch(settings, self._run_id))
            .with_output_types(dict[str, Any])
            .with_outputs(DEAD_LETTERS, main=ROWS)
        )


class _SummarizeBatch(beam.DoFn):
    """Turns a batch of documents into rows and dead letters."""

    def __init__(self, settings: SummarySettings, run_id: str) -> None:
        self._clean = settings.clean
        self._summarizer = WindowSummarizer(
            settings, run_id=run_id, share=Shared().acquire
        )

    def setup(self) -> None:
        self._summarizer.load()

    def teardown(self) -> None:
        self._summarizer.close()

    def process(self, documents: Sequence[Document]) -> Iterator[Any]:
        articles = []
        for document in documents:
            if not isinstance(document, Document):
                raise UsageError(
                    "SummarizeDocuments takes elements of precis.transforms.Document, "
                    f"not {type(document).__name__}; make them with beam.Map"
                )
            record = to_article(document, clean=self._clean)
            if isinstance(record, Article):
                articles.append(record)
            else:
                yield beam.pvalue.TaggedOutput(DEAD_LETTERS, record)
        for window in self._summarizer.summarize(articles):
            for letter in window.dead_letters:
                yield beam.pvalue.TaggedOutput(DEAD_LETTERS, letter)
            yield from window.rows


# A row group holds as many rows, as it does in the files of `precis summarize`.
_ROW_GROUP_ROWS = 512


@beam.typehints.with_input_types(dict[str, Any])
@beam.typehints.with_output_types(str)
class WriteSummaries(beam.PTransform):
    """Writes rows of `SummarizeDocuments` to Parquet and yields the names of the files.

        names = result.rows | WriteSummaries("gs://bucket/summaries")

    The files are `part-00000-of-00003.parquet` and so on, in the schema and compression
    of `precis summarize`; `precis evaluate --input 'DIR/*.parquet' --output DIR` scores
    them. A row with a column too many or too few, or a value of another type, fails the
    pipeline with an error that names the column.
    """

    def __init__(self, output: str, *, num_shards: int = 0) -> None:
        """Stores its arguments.

        Args:
          output: the folder for the files.
          num_shards: how many files there are; 0 leaves it to Beam.
        """
        super().__init__()
        self._output = output
        self._num_shards = num_shards

    def expand(self, rows: beam.PCollection) -> beam.PCollection:
        """Adds the check of the rows and the files."""
        return (
            rows
            | "Batch"
            >> beam.BatchElements(
                min_batch_size=_ROW_GROUP_ROWS, max_batch_size=_ROW_GROUP_ROWS
            )
            | "MakeTables" >> beam.Map(summary_table).with_output_types(Any)
            | "WriteParquet"
            >> WriteToParquetBatched(
                files.join(self._output, "part"),
                SUMMARY_SCHEMA,
                codec="zstd",
                use_compliant_nested_type=True,
                file_name_suffix=".parquet",
                num_shards=self._num_shards,
            )
        )
