"""Rows of earlier runs, which a job takes over instead of computing them again."""

import bisect
import contextlib
import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from precis.model import files
from precis.model.errors import DataError
from precis.model.text.article import Article
from precis.pipelines.tables.part_files import read_part, read_row_groups

_OPEN_GROUPS = 4  # row groups that are held in memory
_KEY_COLUMNS = ("content_sha256", "reference_summary", "extractive")


class EarlierPart(NamedTuple):
    """A Parquet part of an earlier run.

    Attributes:
      path: the file.
      sha256: of its content, by the manifest.
      run_id: the run.
      partition: the columns that its folder names, with their values.
      rows: how many it has.
    """

    path: str
    sha256: str
    run_id: str
    partition: Mapping[str, Any]
    rows: int = 0


class EarlierKey(NamedTuple):
    """What a document is compared with to find its row in an earlier run.

    Attributes:
      row: its place in the part.
      content_sha256: of the article.
      reference: the highlights where a summary depends on them, else None.
      offsets: tells the rows of one content apart whose offsets differ, because their
          texts differ in white space.
    """

    row: int
    content_sha256: str
    reference: str | None
    offsets: bytes


def check_part(part: EarlierPart) -> None:
    """Refuses a part that is not what its run has written.

    Raises:
      DataError: it is missing, or its checksum is another one.
    """
    if not files.exists(part.path) or files.sha256_file(part.path) != part.sha256:
        raise DataError(
            f"--reuse: {part.path} is missing or damaged: its checksum is not that of "
            "its manifest; repair that run by its own command, or reuse another"
        )


def read_part_keys(part: EarlierPart, *, uses_references: bool) -> Iterator[EarlierKey]:
    """The keys of the rows of a part, duplicates included: the offsets of a duplicate
    may be its own.

    Raises:
      DataError: the file is not what its run has written.
    """
    check_part(part)
    row = 0
    for table in read_part(part.path, _KEY_COLUMNS):
        columns = (column.to_pylist() for column in table.columns)
        for content, reference, extractive in zip(*columns, strict=True):
            used = (reference or "") if uses_references else None
            yield EarlierKey(row, content, used, _offsets_digest(extractive))
            row += 1


def _offsets_digest(extractive: Sequence[Mapping[str, int]]) -> bytes:
    offsets = [(item["start"], item["end"]) for item in extractive]
    return hashlib.blake2b(repr(offsets).encode(), digest_size=8).digest()


@contextlib.contextmanager
def _open_part(part: EarlierPart) -> Iterator[pq.ParquetFile]:
    """Opens a part whose checksum was right when its keys were read.

    Raises:
      DataError: it was damaged since then, in the block too; pages have checksums.
    """
    try:
        with files.open_read(part.path) as opened:
            yield pq.ParquetFile(
                opened, pre_buffer=False, page_checksum_verification=True
            )
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(
            f"--reuse: {part.path} cannot be read any more "
            f"({str(error).splitlines()[0]}); repair that run by its own command, or "
            "remove this --output and reuse another"
        ) from error


class EarlierRows:
    """Reads rows of the parts of earlier runs, mostly in the order of the parts."""

    def __init__(self, parts: Sequence[EarlierPart]) -> None:
        self._parts = parts
        self._groups: OrderedDict[tuple[int, int], pa.Table] = OrderedDict()
        self._ends: dict[int, list[int]] = {}

    def read(self, part: int, row: int) -> dict[str, Any]:
        """A row as a dict, with the columns that the folder of its part names.

        Args:
          part: the number of the part.
          row: its place in the part.
        """
        ends = self._row_group_ends(part)
        group = bisect.bisect_right(ends, row)
        first = ends[group - 1] if group else 0
        (values,) = self._group(part, group).slice(row - first, 1).to_pylist()
        return {**values, **self._parts[part].partition}

    def run_id(self, part: int) -> str:
        """The run that wrote a part."""
        return self._parts[part].run_id

    def _row_group_ends(self, part: int) -> list[int]:
        if part not in self._ends:
            with _open_part(self._parts[part]) as parquet:
                metadata = parquet.metadata
            end = 0
            self._ends[part] = []
            for group in range(metadata.num_row_groups):
                end += metadata.row_group(group).num_rows
                self._ends[part].append(end)
        return self._ends[part]

    def _group(self, part: int, group: int) -> pa.Table:
        key = (part, group)
        if key not in self._groups:
            with _open_part(self._parts[part]) as parquet:
                self._groups[key] = read_row_groups(parquet, [group])
            if len(self._groups) > _OPEN_GROUPS:
                self._groups.popitem(last=False)
        self._groups.move_to_end(key)
        return self._groups[key]


def holds_for(row: Mapping[str, Any], article: Article) -> bool:
    """Whether a row is of the content of an article, and its offsets hold for the text
    as it was read, which may have other white space.
    """
    text = article.document.article
    return row["content_sha256"] == article.content_sha256 and all(
        text[item["start"] : item["end"]] == item["text"] for item in row["extractive"]
    )
