"""Beam transforms for other pipelines, published as `precis.transforms`.

    ReadCorpus           `--corpus` syntax -> documents, dead letters
    SummarizeDocuments   documents -> summary rows, dead letters
    WriteSummaries       summary rows, rows of groups -> Parquet files

Elements are documents and dicts in Python, and rows with a schema in Beam YAML
(`beam_rows`). The commands use the same functions per task instead of per element: they
read a task with `read_task`, summarize with `WindowSummarizer` and write with
`summary_table`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import apache_beam as beam
import pyarrow as pa
from apache_beam.io.parquetio import WriteToParquetBatched
from apache_beam.pvalue import PBegin, PCollection, Row, TaggedOutput
from apache_beam.typehints.decorators import with_output_types
from apache_beam.typehints.typehints import is_consistent_with
from apache_beam.utils.shared import Shared

from precis.model import files
from precis.model.errors import UsageError
from precis.model.processes import refuse_within_import
from precis.model.text.article import Article
from precis.model.text.document import Document, TextSettings
from precis.pipelines.corpus.corpus import list_tasks, read_task
from precis.pipelines.corpus.kept_fields import (
    kept_columns,
    parse_kept_fields,
    split_fields,
)
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.records import check_record_fields, to_document
from precis.pipelines.corpus.task import (
    DeadLetter,
    Fields,
    FileError,
    Place,
    Task,
    to_article,
)
from precis.pipelines.engines.remote_checks import refuse_hub_names
from precis.pipelines.run.options import read_flags
from precis.pipelines.summarize.summarize import with_search_processes
from precis.pipelines.summarize.summary_settings import SummarySettings, read_settings
from precis.pipelines.summarize.window_summarizer import WindowSummarizer
from precis.pipelines.tables.schema import SUMMARY_SCHEMA, summary_table
from precis.pipelines.transforms import beam_rows

OTHER_HIGHLIGHTS = "other_highlights"
# The schema of documents as rows, with the default field names of a corpus.
_DOCUMENT_SCHEMA = pa.schema(
    [
        *(
            pa.field(name, pa.string(), nullable=name == "highlights")
            for name in ("id", "article", "highlights", "split", *Place._fields)
        ),
        SUMMARY_SCHEMA.field("other_references").with_name(OTHER_HIGHLIGHTS),
    ]
)
DOCUMENTS = "documents"
DEAD_LETTERS: Literal["dead_letters"] = "dead_letters"
TaggedLetter = TaggedOutput[Literal["dead_letters"], DeadLetter]


class ReadCorpus(beam.PTransform):
    """Reads the documents of a corpus, each with an id and a split.

        corpus = pipeline | ReadCorpus(corpus="jsonl:news/*.jsonl", id_field="url")
        articles = corpus.documents | beam.Map(lambda document: document.article)
        lost = corpus.dead_letters | beam.Map(lambda letter: letter.reason)

    The outputs are `documents`, a PCollection of `Document`, and `dead_letters`, a
    PCollection of `DeadLetter`. The corpus is listed when the pipeline is built, and
    read by its workers.

    In Beam YAML documents are rows with the fields id, article, highlights, split,
    source_file, source_position, other_highlights, and the fields of `keep_fields`.
    """

    def __init__(
        self, corpus: str, *, error_handling: Any = None, **options: Any
    ) -> None:
        """Stores its arguments.

        Args:
          corpus: the value of `--corpus` of `precis summarize`.
          error_handling: as in Beam YAML; documents become rows.
          **options: the other fields of `CorpusOptions`, such as `article_field`.
        """
        super().__init__()
        self._corpus = corpus
        self._corpus_options = options
        self._errors = beam_rows.error_output(error_handling)

    def expand(self, root: PBegin) -> Any:
        """Lists the tasks of the corpus and adds the steps that read them.

        Raises:
          UsageError: nothing can be read, or the options do not fit the corpus.
        """
        (options,) = read_flags(
            [CorpusOptions], {"corpus": self._corpus, **self._corpus_options}
        )
        if options.language:
            raise UsageError(
                "give `language=` to SummarizeDocuments, not to ReadCorpus"
            )
        tasks = list_tasks(options)
        # The document type carries the types of the fields.
        columns = {"kept_columns": kept_columns(tasks, taken=())}
        kind = type("Document", (Document,), columns)
        read: Any = (
            root
            | "ListTasks" >> beam.Create(tasks)
            | "ReadTasks"
            >> beam.FlatMap(read_documents, options)
            .with_output_types(kind, dead_letters=DeadLetter)
            .with_outputs(DEAD_LETTERS, main=DOCUMENTS)
        )
        # Beam YAML stores its configuration in the annotations of a transform.
        if not self._errors and "yaml_type" not in self.annotations():
            return read
        kept = kept_columns(tasks, taken=_DOCUMENT_SCHEMA.names)
        schema = pa.schema([*_DOCUMENT_SCHEMA, *kept])
        rows = read.documents | "MakeRows" >> beam.Map(
            _document_row, schema
        ).with_output_types(beam_rows.row_type(schema))
        return beam_rows.with_errors(rows, read.dead_letters, self._errors)


def _document_row(document: Document, schema: pa.Schema) -> Row:
    values = {**document._asdict(), "id": document.document_id}
    return beam_rows.to_row({**document.metadata, **values}, schema)


def read_documents(
    task: Task, options: CorpusOptions
) -> Iterator[Document | TaggedLetter]:
    """Reads the documents of a task, and the dead letters between them.

    If a file of the task changes or fails while it is read, the last element is a dead
    letter with the reason `file_changed` or `file_unreadable`. The documents before it
    have already been emitted, and may come from the old or the new content.
    """
    try:
        for record in read_task(task, options):
            if isinstance(record, DeadLetter):
                yield TaggedLetter(DEAD_LETTERS, record)
            else:
                yield record.document
    except FileError as failure:
        yield TaggedLetter(DEAD_LETTERS, failure.letter)


ROWS = "rows"


class SummarizeDocuments(beam.PTransform):
    """Summarizes a PCollection of `Document`, or of rows with a schema.

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
    a failure only affects its own document.

    Rows with a schema, as in Beam YAML, give rows with a schema. The outputs are `good`
    and the name in `error_handling`; without it the rows are the result, and a document
    that cannot be summarized fails the pipeline.

    Documents are taken `window_documents` at a time, within a Beam bundle, and
    documents of similar length are searched together. Rows have the Beam window of
    their document, but no timestamp. The column `split` is empty if the document has no
    split; the command would use the hash of the id.
    """

    def __init__(
        self,
        *,
        article_field: str = "article",
        highlights_field: str = "",
        id_field: str = "",
        split_field: str = "",
        keep_fields: str | Sequence[str] = "",
        clean: str = "standard",
        language: str | None = None,
        run_id: str = "",
        error_handling: Any = None,
        **options: Any,
    ) -> None:
        """Stores its arguments.

        Args:
          article_field: the field of rows with the text.
          highlights_field, id_field, split_field: as the flags of `precis summarize`;
              by default the fields highlights, id and split, if the rows have them. A
              field `other_highlights` holds further references.
          keep_fields: fields of rows, or metadata of documents, that become columns of
              the result. Documents of `ReadCorpus` have types for `WriteSummaries`;
              otherwise give types, as in `day:date,topic:string`.
          clean, language: the values of these flags of `precis summarize`.
          run_id: the value of the column `run_id`, which no job sets here.
          error_handling: as in Beam YAML, `{output: NAME}`; for rows with a schema.
          **options: the flags of `precis summarize` that concern summaries, such as
              `bundle`, `extractive`, `beam_width` and `min_source_words`. Without a
              bundle, summaries are only extractive and TensorFlow is not needed.
        """
        super().__init__()
        names = Fields(article_field, highlights_field, id_field, split_field)
        self._fields = names.with_lines()
        if isinstance(keep_fields, str):
            keep_fields = split_fields(keep_fields)
        self._kept = tuple(keep_fields)
        self._text = TextSettings(clean, language)
        self._run_id = run_id
        self._errors = beam_rows.error_output(error_handling)
        self._summary_options = options

    def expand(self, documents: PCollection) -> Any:
        """Checks the options and adds the steps that summarize.

        Raises:
          UsageError: an invalid option, bundle or kept field, or elements that are
              neither documents nor rows with the given fields.
        """
        refuse_within_import()
        if "output" in self._summary_options:
            raise UsageError(
                "SummarizeDocuments does not take output; use WriteSummaries to write "
                "its rows"
            )
        given = {name.partition(":")[0] for name in self._kept}
        if taken := sorted(given & {*SUMMARY_SCHEMA.names}):
            raise UsageError(
                f"keep_fields {taken[0]}: the rows already have a column of this "
                "name; rename the field"
            )
        settings = transform_settings(self._summary_options, self._text, documents)
        fields: Fields | None = None
        kind: Any = dict[str, Any]
        names = self._kept
        if is_consistent_with(documents.element_type, Document):
            if kept := parse_kept_fields(",".join(names)):
                kind = beam_rows.KeptRows(documents.element_type, kept)
                names = tuple(kind.columns)
        else:
            types = beam_rows.fields_of(documents)
            if types is None:
                raise _no_documents(documents.element_type)
            fields = _present_fields(self._fields, self._kept, types)
            kept_types = {name: types[name] for name in names}
            kind = beam_rows.row_type(SUMMARY_SCHEMA, kept_types)
        result: Any = (
            documents
            | "Batch" >> in_batches(settings.options.window_documents)
            | "SummarizeBatches"
            >> beam.ParDo(_SummarizeBatch(settings, self._run_id, fields, names))
            .with_output_types(kind)
            .with_outputs(DEAD_LETTERS, main=ROWS)
        )
        if fields is None:
            return result
        return beam_rows.with_errors(result.rows, result.dead_letters, self._errors)


def transform_settings(
    flags: Mapping[str, Any], text: TextSettings, elements: PCollection
) -> SummarySettings:
    """The settings of a transform of the given elements.

    Raises:
      UsageError: as for `read_settings`, or a hub model for remote workers.
    """
    beam_options = elements.pipeline.options
    refuse_hub_names(beam_options, flags)
    return with_search_processes(read_settings(flags, text), beam_options)


def in_batches(size: int) -> beam.BatchElements:
    """Groups elements into lists of up to `size`, within a Beam bundle."""
    return beam.BatchElements(min_batch_size=size, max_batch_size=size)


def _no_documents(kind: Any) -> UsageError:
    return UsageError(
        "SummarizeDocuments needs elements of type precis.transforms.Document, or "
        f"rows with a schema, not {getattr(kind, '__name__', kind)}; convert them "
        "with beam.Map"
    )


def _present_fields(
    named: Fields, kept: Sequence[str], types: Mapping[str, Any]
) -> Fields:
    """The fields to read from rows; unnamed fields have default names.

    Raises:
      UsageError: the rows lack a field.
    """
    names = named.article, *filter(None, named[1:4]), *kept
    check_record_fields(types, names, named, "the PCollection")
    defaults = zip(named[1:4], ("highlights", "id", "split"), strict=True)
    highlights, document_id, split = (
        name or (usual if usual in types else "") for name, usual in defaults
    )
    return named._replace(highlights=highlights, document_id=document_id, split=split)


class _SummarizeBatch(beam.DoFn):
    """Summarizes a batch of documents or rows; yields rows and dead letters."""

    def __init__(
        self,
        settings: SummarySettings,
        run_id: str,
        fields: Fields | None,
        kept: Sequence[str],
    ) -> None:
        """Stores its arguments.

        Args:
          settings: how to summarize.
          run_id: the value of the column `run_id`.
          fields: the fields of rows with a schema; None for documents.
          kept: the names of the kept fields.
        """
        self._text = settings.text
        self._fields, self._kept = fields, kept
        self._summarizer = WindowSummarizer(
            settings, run_id=run_id, share=Shared().acquire
        )

    def setup(self) -> None:
        self._summarizer.load()

    def teardown(self) -> None:
        self._summarizer.close()

    def process(self, elements: Sequence[Any]) -> Iterator[Any]:
        articles = []
        for element in elements:
            record = self._read(element)
            if isinstance(record, Article):
                articles.append(record)
            else:
                yield TaggedOutput(DEAD_LETTERS, record)
        for window in self._summarizer.summarize(articles):
            for letter in window.dead_letters:
                yield TaggedOutput(DEAD_LETTERS, letter)
            for each in window.documents:
                if each.failure is None:
                    metadata = each.article.document.metadata
                    kept = {name: metadata.get(name) for name in self._kept}
                    if self._fields is None:
                        yield {**each.columns, **kept}
                    else:
                        yield beam_rows.to_row(each.columns, SUMMARY_SCHEMA, kept)

    def _read(self, element: Any) -> Article | DeadLetter:
        if self._fields is not None:
            record = element._asdict()
            place = (record.get(name) or "" for name in Place._fields)
            element = to_document(record, self._fields, Place(*map(str, place)))
            if isinstance(element, DeadLetter):
                name = record.get(self._fields.document_id)
                return element._replace(document_id=None if name is None else str(name))
            others = tuple(record.get(OTHER_HIGHLIGHTS) or element.other_highlights)
            element = element._replace(metadata=record, other_highlights=others)
        elif not isinstance(element, Document):
            raise _no_documents(type(element))
        return to_article(element, self._text)


# The rows in a row group, as in the files of `precis summarize`.
_ROW_GROUP_ROWS = 512


@with_output_types(str)
class WriteSummaries(beam.PTransform):
    """Writes rows of `SummarizeDocuments` or `SummarizeGroups` to Parquet and yields
    the names of the files.

        names = result.rows | WriteSummaries("gs://bucket/summaries")

    The files are `part-00000-of-00003.parquet` and so on, with the schema and
    compression of `precis summarize`; `precis evaluate --input 'DIR/*.parquet' --output
    DIR` scores them. Further fields of rows with a schema are further columns. A row
    with a missing or unknown column, or a value of the wrong type, fails the pipeline
    with an error that names the column. Kept fields of documents are columns if
    `row_schema` knows their types.
    """

    def __init__(self, output: str, *, num_shards: int = 0) -> None:
        """Stores its arguments.

        Args:
          output: the folder for the files.
          num_shards: the number of files; 0 lets Beam decide.
        """
        super().__init__()
        self._output = output
        self._num_shards = num_shards

    def expand(self, rows: PCollection) -> Any:
        """Adds the steps that check the rows and write the files.

        Raises:
          UsageError: as for `row_schema`.
        """
        schema = beam_rows.row_schema(rows)
        return (
            rows
            | "Batch" >> in_batches(_ROW_GROUP_ROWS)
            | "MakeTables" >> beam.Map(_table, schema).with_output_types(Any)
            | "WriteParquet"
            >> WriteToParquetBatched(
                files.join(self._output, "part"),
                schema,
                codec="zstd",
                use_compliant_nested_type=True,
                file_name_suffix=".parquet",
                num_shards=self._num_shards,
            )
        )


def _table(rows: Sequence[Any], schema: pa.Schema) -> pa.Table:
    return summary_table(list(map(beam_rows.from_row, rows)), schema)
