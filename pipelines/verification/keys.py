"""Keys of millions of rows: each is unique, and each row that is named exists.

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
_REFERENCE = -1
_KEY = np.dtype(
    [
        ("high", "<u8"),  # the document_id
        ("low", "<u8"),
        ("content", "<u8"),  # the first digits of content_sha256
        ("repeat", "<i4"),  # document_id_repeat; -1 where a row names the id
        ("part", "<i4"),
        ("row", "<i8"),
    ]
)


class RowKeys(NamedTuple):
    """The keys of some rows of a part.

    Attributes:
      first: the place of the first of them.
      ids: document_id.
      repeats: document_id_repeat.
      contents: content_sha256.
      named: duplicate_of.
    """

    first: int
    ids: Sequence[str]
    repeats: Sequence[int]
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
        keys["repeat"] = [*rows.repeats, *[_REFERENCE] * len(named)]
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

    def findings(self) -> Iterator[Finding]:
        """Keys that stand twice, and rows that name a row that is not there."""
        if self._waiting:
            self._write()
        for bucket in range(_BUCKETS):
            if os.path.exists(self._path(bucket)):
                yield from self._bucket_findings(np.fromfile(self._path(bucket), _KEY))

    def _bucket_findings(self, keys: np.ndarray) -> Iterator[Finding]:
        is_reference = keys["repeat"] == _REFERENCE
        rows = keys[~is_reference]
        rows = rows[np.lexsort((rows["row"], rows["part"], *_columns(rows, "repeat")))]
        repeated = _equals_next(rows, "repeat")
        for row in rows[1:][repeated]:
            yield self._finding(
                row, "document_id and document_id_repeat are those of another row"
            )
        references = keys[is_reference]
        has_id = _is_among(references, rows, ())
        for row in references[~has_id]:
            yield self._finding(row, "duplicate_of names no document of the run")
        named = references[has_id]
        for row in named[~_is_among(named, rows, ("content",))]:
            yield self._finding(
                row, "duplicate_of names a document with another content_sha256"
            )

    def _finding(self, row: np.void, problem: str) -> Finding:
        return Finding(self._parts[row["part"]], problem, f"row {row['row']}")


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()[:16]


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
