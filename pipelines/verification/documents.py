"""The rows of a run against the corpus that they were made of.

The corpus is read once, a task at a time. The rows of a task lie in a few row groups,
which are found by the least and the greatest position that each has of a file.
"""

import os
import re
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from precis.model import files
from precis.model.progress.stages import stage
from precis.model.text.article import Article
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import TaskReader, list_tasks, read_task
from precis.pipelines.corpus.task import FileFailure, Task
from precis.pipelines.tables.part_files import read_row_groups
from precis.pipelines.verification.findings import Finding
from precis.pipelines.verification.letters import LetterPlaces

_OPEN_GROUPS = 4  # row groups that are held in memory
_COLUMNS = (
    *("document_id", "source_file", "source_position"),
    *("content_sha256", "extractive"),
)
_Place = tuple[str, str]


class RowGroup(NamedTuple):
    """A row group of a part.

    Attributes:
      part: the name of the part.
      number: of the row group in the part.
      first: the place of its first row in the part.
      is_in_corpus: for each row whether its document was found.
    """

    part: str
    number: int
    first: int
    is_in_corpus: np.ndarray


class Stretch(NamedTuple):
    """The positions that a row group has of one file: all lie between two."""

    least: tuple[int, ...]
    greatest: tuple[int, ...]
    group: int


class MovedFiles(NamedTuple):
    """A corpus that lies in another folder than the run has read it from.

    Attributes:
      root: of the files of the corpus, with a slash at its end.
      root_in_run: of the files that the run has read.
    """

    root: str
    root_in_run: str

    @classmethod
    def of(cls, tasks: Sequence[Task], sources: Collection[str]) -> "MovedFiles":
        """Compares the files of a corpus with those of a run."""
        paths = sorted({path for task in tasks for path in task.paths})
        if set(paths) & set(sources):
            return cls("", "")
        return cls(_folder_of(paths), _folder_of(sorted(sources)))

    def name_in_run(self, path: str) -> str:
        """The path of a file as the run has it."""
        if not path.startswith(self.root):
            return path
        return self.root_in_run + path[len(self.root) :]


def _folder_of(paths: Sequence[str]) -> str:
    """The folder that holds all files, with a slash at its end."""
    folder, slash, _ = os.path.commonprefix(paths).rpartition("/")
    return folder + slash


def check_documents(
    folder: str,
    manifest: Mapping[str, Any],
    corpus: CorpusOptions,
    whole: Collection[str],
) -> Iterator[Finding]:
    """Compares every row with its document, and looks for every document.

    Args:
      folder: of the run.
      manifest: of the run.
      corpus: how the run has read it.
      whole: the files of the run that are not damaged. Where others are missing,
          documents are not.

    Raises:
      UsageError: the corpus cannot be listed.
    """
    parts = [file["file"] for file in manifest["files"] if file["file"] in whole]
    letter_files = [file["file"] for file in manifest["dead_letters"]]
    letters = LetterPlaces(folder, [name for name in letter_files if name in whole])
    is_complete = (
        len(parts) == len(manifest["files"])
        and set(letter_files) <= set(whole)
        # Such a run has the records alone that another run had lost.
        and not manifest["provenance"]["flags"].get("retry_failures")
    )
    rows = RunRows(folder, parts)
    lost = set(letters.lost_files)
    tasks = list_tasks(corpus)
    moved = MovedFiles.of(tasks, manifest["sources"])
    with stage("compare", total=manifest["counts"].get("read")) as comparing:
        for task in tasks:
            reader = read_task(task, corpus)
            try:
                findings = list(_check_task(reader, rows, letters, lost, moved))
            except FileFailure as error:
                yield Finding(error.path, error.detail)
                lost.add(error.path)
                continue
            comparing.advance(reader.read.total())
            if not is_complete:
                findings = [finding for finding in findings if finding.file in parts]
            yield from findings
    yield from rows.without_document()
    if is_complete:
        yield from letters.findings()


def _check_task(
    reader: TaskReader,
    rows: "RunRows",
    letters: LetterPlaces,
    lost: Collection[str],
    moved: MovedFiles,
) -> Iterator[Finding]:
    """Looks for the rows and dead letters of the documents of a task."""
    articles: dict[_Place, Article] = {}
    others: list[_Place] = []
    for record in reader:
        content = record.document if isinstance(record, Article) else record
        place = moved.name_in_run(content.source_file), content.source_position
        if isinstance(record, Article):
            articles[place] = record
        else:
            others.append(place)
    rows_of: Counter[_Place] = Counter()
    for group in rows.groups_of(list(articles)):
        yield from rows.check(group, articles, rows_of)
    has_letter = letters.find([*articles, *others])
    for place, is_dead in zip(articles, has_letter, strict=False):
        number = rows_of[place] + int(is_dead)
        if number > 1:
            yield Finding(place[0], "has more than one row or dead letter", place[1])
        elif not number and place[0] not in lost:
            yield Finding(place[0], "has neither a row nor a dead letter", place[1])
    for place, is_dead in zip(others, has_letter[len(articles) :], strict=True):
        if not is_dead and place[0] not in lost:
            yield Finding(place[0], "cannot be used and has no dead letter", place[1])


class RunRows:
    """The rows of a run, found by the places of their documents."""

    def __init__(self, folder: str, parts: Sequence[str]) -> None:
        """Reads the places of all rows.

        Args:
          folder: of the run.
          parts: the names of its parts, which are whole.
        """
        self._folder = folder
        self._groups: list[RowGroup] = []
        self._stretches: dict[str, list[Stretch]] = {}
        self._open: OrderedDict[int, list[dict[str, Any]]] = OrderedDict()
        for part in parts:
            self._add(part)

    def _add(self, part: str) -> None:
        with files.open_read(files.join(self._folder, part)) as opened:
            parquet = pq.ParquetFile(opened, pre_buffer=False)
            first = 0
            for number in range(parquet.num_row_groups):
                size = parquet.metadata.row_group(number).num_rows
                columns = ["source_file", "source_position"]
                table = parquet.read_row_group(number, columns, use_threads=False)
                pairs = zip(*(column.to_pylist() for column in table), strict=True)
                group = RowGroup(part, number, first, np.zeros(size, bool))
                for source, (least, greatest) in _ranges(pairs).items():
                    stretch = Stretch(least, greatest, len(self._groups))
                    self._stretches.setdefault(source, []).append(stretch)
                self._groups.append(group)
                first += size

    def groups_of(self, places: Sequence[_Place]) -> list[int]:
        """The row groups that may hold the rows of documents."""
        groups = set()
        for source, (least, greatest) in _ranges(places).items():
            for stretch in self._stretches.get(source, ()):
                if stretch.least <= greatest and least <= stretch.greatest:
                    groups.add(stretch.group)
        return sorted(groups)

    def check(
        self, number: int, articles: Mapping[_Place, Article], rows_of: Counter[_Place]
    ) -> Iterator[Finding]:
        """Compares the rows of a group that are of some articles with them.

        Args:
          number: of the group.
          articles: by place.
          rows_of: counts the rows of each place.
        """
        group = self._groups[number]
        for row, values in enumerate(self._rows(number)):
            place = values["source_file"], values["source_position"]
            article = articles.get(place)
            if article is not None:
                group.is_in_corpus[row] = True
                rows_of[place] += 1
                for problem in _differences(values, article):
                    yield Finding(group.part, problem, f"row {group.first + row}")

    def _rows(self, number: int) -> list[dict[str, Any]]:
        if number not in self._open:
            group = self._groups[number]
            with files.open_read(files.join(self._folder, group.part)) as opened:
                parquet = pq.ParquetFile(opened, pre_buffer=False)
                table = read_row_groups(parquet, [group.number], _COLUMNS)
            self._open[number] = table.to_pylist()
            if len(self._open) > _OPEN_GROUPS:
                self._open.popitem(last=False)
        self._open.move_to_end(number)
        return self._open[number]

    def without_document(self) -> Iterator[Finding]:
        """The rows that no document was found for."""
        for group in self._groups:
            for row in np.flatnonzero(~group.is_in_corpus):
                yield Finding(
                    group.part,
                    "source_file and source_position name no document of the corpus",
                    f"row {group.first + row}",
                )


def _ranges(
    places: Any,
) -> dict[str, tuple[tuple[int, ...], tuple[int, ...]]]:
    """For each file the least and the greatest position."""
    ranges: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {}
    for source, position in places:
        key = tuple(map(int, re.findall(r"\d+", position)))
        least, greatest = ranges.get(source, (key, key))
        ranges[source] = min(least, key), max(greatest, key)
    return ranges


def _differences(row: Mapping[str, Any], article: Article) -> Iterator[str]:
    """What is in a row and not in its document."""
    document = article.document
    if row["document_id"] != document.document_id:
        yield "document_id is not that of the document"
    if row["content_sha256"] != article.content_sha256:
        yield "content_sha256 is not that of the article; the document was changed"
    if any(
        document.article[item["start"] : item["end"]] != item["text"]
        for item in row["extractive"]
    ):
        yield "a sentence is not what the article has at its offsets"
