"""The keys of a run's rows, as digests of 16 bytes.

A million keys take 16 MB, however long they are, and any number of columns makes a key.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from precis.model.errors import DataError, UsageError
from precis.pipelines.warehouse.finished_run import FinishedRun

_DIGEST_BYTES = 16
NO_KEYS = np.empty(0, f"S{_DIGEST_BYTES}")


class RowKeys:
    """Keys of rows, sorted."""

    def __init__(self, columns: Sequence[str], digests: np.ndarray) -> None:
        self.columns = list(columns)
        self._digests = np.sort(digests)

    def mark(self, batch: pa.RecordBatch) -> np.ndarray:
        """Which rows of a batch have one of the keys: bool [rows]."""
        if not len(self._digests):
            return np.zeros(batch.num_rows, bool)
        digests = digest_keys(batch, self.columns)
        places = np.searchsorted(self._digests, digests)
        places[places == len(self._digests)] = 0
        return self._digests[places] == digests


def read_keys(run: FinishedRun, columns: Sequence[str]) -> RowKeys:
    """Reads the keys of a run.

    Raises:
      UsageError: a column that the run does not have, or whose type makes no key.
      DataError: two rows have the same key, or a key is null.
    """
    for name in columns:
        _check_column(run, name)
    return RowKeys(columns, _unique_digests(run, columns, _key_batches(run, columns)))


def check_unique(run: FinishedRun, columns: Sequence[str]) -> None:
    """Refuses a run in which a key repeats; two nulls are equal.

    Raises:
      UsageError: a column that the run does not have, or whose type makes no key.
      DataError: two rows have the same key.
    """
    for name in columns:
        _check_column(run, name)
    _unique_digests(run, columns, run.batches(columns))


def _unique_digests(
    run: FinishedRun, columns: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> np.ndarray:
    """The digests of the keys of all rows.

    Raises:
      DataError: two rows have the same key.
    """
    digests = [digest_keys(batch, columns) for batch in batches]
    keys = np.concatenate([NO_KEYS, *digests])
    ordered = np.sort(keys)
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(repeated):
        key = _first_key(run.batches(columns), columns, repeated[0])
        named = ", ".join(f"{name} {value!r}" for name, value in key.items())
        raise DataError(
            f"{run.folder}: {named} is the key of more than one row, and "
            f"{len(repeated)} rows repeat a key; make the ids of the corpus unique, "
            "which --on_duplicate_id fail checks, or name a key with the place of a "
            "document, --table_key document_id,source_file,source_position"
        )
    return keys


def digest_keys(batch: pa.RecordBatch, columns: Sequence[str]) -> np.ndarray:
    """The digest of every row's key: S16 [rows]."""
    # A tuple's representation says where each value ends, so no two keys look alike.
    keys = zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
    digests = b"".join(
        hashlib.blake2b(
            repr(key).encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES
        ).digest()
        for key in keys
    )
    return np.frombuffer(digests, f"S{_DIGEST_BYTES}")


def _key_batches(run: FinishedRun, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The columns of the key.

    Raises:
      DataError: one of them is null.
    """
    for batch in run.batches(columns):
        for name in columns:
            if batch.column(name).null_count:
                raise DataError(
                    f"{run.folder}: column {name!r} of the key is null in at least one "
                    "row; name other columns with --table_key"
                )
        yield batch


def _check_column(run: FinishedRun, name: str) -> None:
    if name not in run.schema.names:
        raise UsageError(
            f"--table_key: {run.folder} has no column {name!r}; it has "
            f"{', '.join(run.schema.names)}"
        )
    kind = run.schema.field(name).type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not (is_text or pa.types.is_integer(kind) or pa.types.is_date(kind)):
        raise UsageError(
            f"--table_key: column {name!r} is {kind}; a key is made of strings, "
            "integers and dates"
        )


def _first_key(
    batches: Iterable[pa.RecordBatch],
    columns: Sequence[str],
    digest: bytes,
) -> dict[str, object]:
    """The key that a digest stands for."""
    for batch in batches:
        rows = np.flatnonzero(digest_keys(batch, columns) == digest)
        if len(rows):
            return {name: batch.column(name)[int(rows[0])].as_py() for name in columns}
    raise AssertionError("no row has the digest")
