"""The rows of one task: what is new goes to the summarizer, what is not is written.

new         no equal text stands before it, in the corpus or in an earlier run
reused      an earlier run has its row
duplicate   an equal text stands before it in the corpus, and has its row
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from precis.model.inference.search_cost import SearchCost
from precis.model.quality.flags import QualityConfig
from precis.model.text.article import Article
from precis.model.text.document import Document
from precis.pipelines.corpus.dead_letters import (
    LetterFile,
    empty_article_letter,
    unreadable_letter,
)
from precis.pipelines.corpus.task import EmptyArticle, Unreadable
from precis.pipelines.summarize.compared_quality import quality_of_own_reference
from precis.pipelines.summarize.earlier_rows import EarlierPart, EarlierRows, holds_for
from precis.pipelines.summarize.join_keys import JoinedTask, Link
from precis.pipelines.summarize.pieces import (
    LINK_COLUMNS,
    PieceWriter,
    duplicate_schema,
    piece_schema,
)
from precis.pipelines.summarize.summarized_windows import SummarizedWindow
from precis.pipelines.summarize.summary_rows import UNLINKED, document_columns
from precis.pipelines.summarize.window_summarizer import WindowSummarizer
from precis.pipelines.tables.part_layout import PartLayout
from precis.pipelines.tables.schema import summary_table

_TABLE_ROWS = 512  # rows without a search that are written together
_NEW = Link(None, None, ())


@dataclasses.dataclass(frozen=True, kw_only=True)
class InferSettings:
    """What the step needs beside the settings of the summaries.

    Attributes:
      layout: the columns of the rows, and their partitions.
      buckets: of the join.
      earlier: the parts of earlier runs.
      suffix_ids: whether a repeated document_id gets a suffix.
      quality: the thresholds of the flags.
      starts_early: whether there is so much to search that the search processes start
          before the first window is read.
    """

    layout: PartLayout
    buckets: int
    earlier: tuple[EarlierPart, ...]
    suffix_ids: bool
    quality: QualityConfig
    starts_early: bool = False


class TaskRows:
    """Collects the rows of one task, whatever they come from, and counts them.

    Attributes:
      outcomes: documents by outcome and source file, without the dead letters.
      search: what the search cost.
      flagged: rows with a quality flag; those of duplicates are not among them.
    """

    def __init__(
        self,
        joined: JoinedTask,
        infer: InferSettings,
        pieces: PieceWriter,
        letters: LetterFile,
        constants: Mapping[str, Any],
    ) -> None:
        """Stores its arguments.

        Args:
          joined: what the join found for the task.
          infer: the settings of the step.
          pieces: where rows go.
          letters: where dead letters go.
          constants: the columns that all rows of the run share.
        """
        self.outcomes: dict[str, Counter[str]] = {
            name: Counter() for name in ("written", "reused", "duplicates")
        }
        self.search = SearchCost()
        self.flagged = 0
        self._joined = joined
        self._infer = infer
        self._pieces = pieces
        self._letters = letters
        self._constants = constants
        self._earlier = EarlierRows(infer.earlier)
        # The numbers of the documents that are being summarized, by their place.
        self._records: dict[tuple[str, str], int] = {}
        self._waiting: dict[str, list[dict[str, Any]]] = {
            "reused": [],
            "duplicates": [],
        }
        self._schemas = {
            "reused": piece_schema(infer.layout.schema),
            "duplicates": duplicate_schema(infer.layout.schema, infer.layout.kept),
        }

    def new_articles(
        self, records: Iterable[Article | EmptyArticle | Unreadable]
    ) -> Iterator[Article]:
        """Yields the articles that must be summarized, and writes all else."""
        for number, content in enumerate(records):
            if isinstance(content, Unreadable):
                self._letters.write(unreadable_letter(content))
            elif isinstance(content, EmptyArticle):
                self._letters.write(empty_article_letter(content))
            else:
                article = self._with_unique_id(number, content)
                if not self._is_known(number, article):
                    self._records[_place(article.document)] = number
                    yield article

    def _with_unique_id(self, number: int, article: Article) -> Article:
        repeat = self._joined.repeats.get(number)
        if not (repeat and self._infer.suffix_ids):
            return article
        document = article.document
        return article.with_id_and_split(
            f"{document.document_id}#{repeat + 1}", document.split
        )

    def _is_known(self, number: int, article: Article) -> bool:
        """Writes the row of a document that is not new; False where it is."""
        link = self._joined.links.get(number, _NEW)
        if link.copy is not None:
            self._write("duplicates", number, article, {})
            return True
        rows = (self._earlier.read(*place) for place in link.earlier)
        row = next((row for row in rows if holds_for(row, article)), None)
        if row is None:
            return False
        computed_by = row["reused_from"] or row["run_id"]
        is_own = computed_by == self._constants["run_id"]
        self._write(
            "reused",
            number,
            article,
            {
                **row,
                "duplicate_of": None,
                "reused_from": None if is_own else computed_by,
            },
        )
        return True

    def _write(
        self, kind: str, number: int, article: Article, row: Mapping[str, Any]
    ) -> None:
        """Writes the row of a document that is not new, with some others."""
        schema = self._schemas[kind]
        columns = self._finished(number, article.document, row)
        columns["content_sha256"] = article.content_sha256
        columns["reference_quality"] = quality_of_own_reference(
            article, row, self._infer.quality
        )
        waiting = self._waiting[kind]
        waiting.append({name: columns[name] for name in schema.names})
        if len(waiting) == _TABLE_ROWS:
            self._flush(kind)

    def _flush(self, kind: str) -> None:
        table = summary_table(self._waiting[kind], self._schemas[kind])
        if kind == "duplicates":
            sources = table.column("source_file").to_pylist()
            self.outcomes["duplicates"].update(sources)
        else:
            self._count(table)
        self._pieces.write(kind, table)
        self._waiting[kind] = []

    def _finished(
        self, number: int, document: Document, row: Mapping[str, Any]
    ) -> dict[str, Any]:
        """A row with the columns of its document, its links and its run."""
        link = self._joined.links.get(number, _NEW)
        return {
            **UNLINKED,  # duplicate_of is known when the rows are published
            **row,
            **document_columns(document, self._infer.layout.kept),
            **self._constants,
            "document_id_repeat": self._joined.repeats.get(number, 0),
            **_link_columns(number, link),
        }

    def write_window(
        self, summarized: SummarizedWindow, summarizer: WindowSummarizer
    ) -> None:
        """Writes the rows of a window that was summarized, and its dead letters."""
        documents = {
            _place(document.article.document): document.article.document
            for document in summarized.window.documents
        }
        rows = []
        for row in summarized.rows:
            place = row.columns["source_file"], row.columns["source_position"]
            number = self._records.pop(place)
            rows.append(self._finished(number, documents[place], row.columns))
        table, summarized = summarizer.table(summarized, rows, self._schemas["reused"])
        self._count(table)
        self._pieces.write("written", table)
        for letter in (*summarized.window.letters, *summarized.letters):
            self._letters.write(letter)
        searched = sum(row.columns["chunks"] is not None for row in summarized.rows)
        self.search.add(summarized.batches, documents=searched)

    def _count(self, table: pa.Table) -> None:
        """Counts rows by what became of their documents, and those with a flag."""
        self.flagged += flagged_rows(table)
        columns = ("source_file", "_first_task", "reused_from")
        values = (table.column(name).to_pylist() for name in columns)
        for source_file, first_task, reused_from in zip(*values, strict=True):
            name = "reused" if reused_from else "written"
            if first_task is not None:
                name = "duplicates"
            self.outcomes[name][source_file] += 1

    def finish(self) -> None:
        """Writes the rows that still wait."""
        for kind in self._waiting:
            self._flush(kind)


def flagged_rows(table: pa.Table) -> int:
    """How many rows have a quality flag."""
    flags = pc.list_value_length(table.column("quality_flags"))
    return int(pc.sum(pc.greater(flags, 0)).as_py() or 0)


def _place(document: Document) -> tuple[str, str]:
    return document.source_file, document.source_position


def _link_columns(number: int, link: Link) -> dict[str, int | None]:
    first = link.first or (None, None)
    copy = link.copy or (None, None)
    names = [field.name for field in LINK_COLUMNS]
    return dict(zip(names, (number, *first, *copy), strict=True))
