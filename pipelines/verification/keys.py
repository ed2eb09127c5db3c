"""Keys of millions of rows: no document has two, and each row that is named exists.

A key is 16 bytes of a sha256. Keys go to files by their first bits, and the files are
checked one after another, so memory does not grow with the rows.
"""

import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from precis.pipelines.verification.findings import Finding

_BUCKETS = 64
_HELD = 1 << 16  # keys in memory before they are written
_REFERENCE = 0
_NAMED = 3  # repeated ids that are named
_KEY = np.dtype(
    [
        ("high", "<u8"),  # the document_id
        ("low", "<u8"),
        ("content", "<u8"),  # the first digits of content_sha256
        ("place", "<u8"),  # of the document in the corpus; 0 where a row names the id
        ("part", "<i4"),
        ("row", "<i8"),
    ]
)


class RowKeys(NamedTuple):
    """The keys of some rows of a part.

    Attributes:
      first: the place of the first of them.
      ids: document_id.
      source_files, source_positions: of the documents.
      contents: content_sha256.
      named: duplicate_of.
    """

    first: int
    ids: Sequence[str]
    source_files: Sequence[str]
    source_positions: Sequence[str]
    contents: Sequence[str]
    named: Sequence[str | None]


class KeyCheck:
    """Collects the keys of all rows, then checks them.

    with KeyCheck() as keys:
        keys.add("data/part-0.parquet", RowKeys(...))
        findings = list(keys.findings())
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._waiting: list[np.ndarray] = []
        self._held = 0

    def __enter__(self) -> "KeyCheck":
        self._folder = tempfile.TemporaryDirectory(prefix="precis-verify-")
        return self

    def __exit__(self, *error: object) -> None:
        self._folder.cleanup()

    def add(self, part: str, rows: RowKeys) -> None:
        """Adds the keys of rows of a part."""
        if not self._parts or self._parts[-1] != part:
            self._parts.append(part)
        named = [row for row, name in enumerate(rows.named) if name is not None]
        texts = [*rows.ids, *(str(rows.named[row]) for row in named)]
        places = [*range(len(rows.ids)), *named]
        keys = np.empty(len(texts), _KEY)
        digests = b"".join(map(_digest, texts))
        keys["high"], keys["low"] = np.frombuffer(digests, "<u8").reshape(-1, 2).T
        contents = np.array([_content(text) for text in rows.contents], "<u8")
        keys["content"] = contents[places]
        places_of_rows = map(_place, rows.source_files, rows.source_positions)
        keys["place"] = [*places_of_rows, *[_REFERENCE] * len(named)]
        keys["part"] = len(self._parts) - 1
        keys["row"] = np.array(places, "<i8") + rows.first
        self._waiting.append(keys)
        self._held += len(keys)
        if self._held >= _HELD:
            self._write()

    def _write(self) -> None:
        keys = np.concatenate(self._waiting)
        buckets = keys["high"] % _BUCKETS
        keys = keys[np.argsort(buckets, kind="stable")]
        ends = np.cumsum(np.bincount(buckets.astype(np.int64), minlength=_BUCKETS))
        for bucket, group in enumerate(np.split(keys, ends[:-1])):
            with open(self._path(bucket), "ab") as file:
                file.write(group.tobytes())
        self._waiting = []
        self._held = 0

    def _path(self, bucket: int) -> str:
        return os.path.join(self._folder.name, str(bucket))

    def findings(self, *, has_lost: bool = False) -> Iterator[Finding]:
        """Documents with two rows, and rows that name a document that is not there; as
        a note, how many rows repeat an id.

        Args:
          has_lost: whether documents without a row may be named, too.
        """
        if self._waiting:
            self._write()
        repeated: list[str] = []
        count = 0
        for bucket in range(_BUCKETS):
            if os.path.exists(self._path(bucket)):
                keys = np.fromfile(self._path(bucket), _KEY)
                yield from self._bucket_findings(keys, has_lost)
                rows = keys[keys["place"] != _REFERENCE]
                rows = rows[np.lexsort((rows["row"], rows["part"], *_columns(rows)))]
                of_ids = rows[1:][_equals_next(rows)]
                count += len(of_ids)
                repeated += [
                    f"row {row['row']} of {self._parts[row['part']]}" for row in of_ids
                ][:_NAMED]
        if count:
            yield Finding(
                "document_id",
                f"{count} rows have that of a row before them, such as "
                f"{', '.join(repeated[:_NAMED])}; a table whose key it is takes one "
                "row of each",
                is_note=True,
            )

    def _bucket_findings(self, keys: np.ndarray, has_lost: bool) -> Iterator[Finding]:
        is_reference = keys["place"] == _REFERENCE
        rows = keys[~is_reference]
        rows = rows[np.lexsort((rows["row"], rows["part"], *_columns(rows, "place")))]
        for row in rows[1:][_equals_next(rows, "place")]:
            yield self._finding(row, "its document has another row")
        references = keys[is_reference]
        has_id = _is_among(references, rows, ())
        for row in references[~has_id] if not has_lost else ():
            yield self._finding(row, "duplicate_of names no document of the run")
        is_shared = _equals_next(rows)
        is_alone = ~np.append(is_shared, False) & ~np.insert(is_shared, 0, False)
        alone = rows[is_alone[: len(rows)]]
        is_own = _is_among(references, alone, ("part", "row"))
        for row in references[is_own]:
            yield self._finding(row, "duplicate_of is its own document_id")
        named = references[has_id]
        for row in named[~_is_among(named, rows, ("content",))]:
            yield self._finding(
                row, "duplicate_of names a document with another content_sha256"
            )

    def _finding(self, row: np.void, problem: str) -> Finding:
        return Finding(self._parts[row["part"]], problem, f"row {row['row']}")


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()[:16]


def _place(source_file: str, source_position: str) -> int:
    """A number of a place in the corpus; never that of a reference."""
    digest = _digest(f"{source_file}\0{source_position}")
    return int.from_bytes(digest[:8], "little") | 1


def _content(text: str) -> int:
    try:
        return int(text[:16], 16)
    except ValueError:  # Another check names a content_sha256 that is none.
        return 0


def _columns(keys: np.ndarray, *names: str) -> tuple[np.ndarray, ...]:
    return tuple(keys[name] for name in (*names, "low", "high"))


def _equals_next(keys: np.ndarray, *names: str) -> np.ndarray:
    """For each of the sorted keys but the first whether it equals the one before."""
    columns = _columns(keys, *names)
    return np.all([column[1:] == column[:-1] for column in columns], axis=0)


def _is_among(keys: np.ndarray, others: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Whether each key is one of the others, compared by id and further fields."""
    fields = ["high", "low", *names]
    both = np.concatenate([others[fields], keys[fields]])
    _, inverse = np.unique(both, return_inverse=True)
    is_there = np.zeros(inverse.max(initial=-1) + 1, bool)
    is_there[inverse[: len(others)]] = True
    return is_there[inverse[len(others) :]]
