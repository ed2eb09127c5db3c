"""`precis digest`: a run -> one hash of what its rows say.

    sha256(version, number of rows, sum of the sha256 of every row mod 2**256)

A sum does not depend on the order of rows, nor on how they are cut into files and row
groups. The hash of a row is that of its columns by name, those of its folder included.
Numbers with a fraction are rounded to four significant digits.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from precis.model import files
from precis.pipelines.flags import read_flags
from precis.pipelines.options.verify import DIGEST
from precis.pipelines.result_files import (
    DESCRIPTION_FILES,
    check_parts,
    read_run_manifest,
)
from precis.pipelines.verification.parts import with_partition

# Columns that differ where equal results were computed in another run, or were read
# from another place.
LEFT_OUT = (
    *("run_id", "settings_id", "reused_from"),
    *("source_file", "source_position"),
)
SIGNIFICANT_DIGITS = 4
_VERSION = "precis digest 1"
_BATCH_ROWS = 1024
_MODULUS = 1 << 256
_NULL = b"-"


def digest(**flags: Any) -> str:
    """A hash of the content of a run: equal for equal results, wherever and however
    they were computed.

    Args:
      **flags: the fields of `DigestOptions`.

    Returns:
      64 hexadecimal digits.

    Raises:
      UsageError: the folder does not exist.
      DataError: the run is not finished, or a file of it is damaged.
    """
    (options,) = read_flags(DIGEST, flags)
    folder = options.run.rstrip("/")
    check_parts(folder)
    manifest = read_run_manifest(files.join(folder, DESCRIPTION_FILES["summaries"]))
    total, count = 0, 0
    for file in manifest["files"]:
        path = files.join(folder, file["file"])
        for rows in _read_rows(path, file.get("partition", {})):
            for row in encode_rows(rows):
                total += int.from_bytes(hashlib.sha256(row).digest(), "big")
            count += rows.num_rows
    text = f"{_VERSION}\n{count}\n{total % _MODULUS:064x}\n"
    return hashlib.sha256(text.encode()).hexdigest()


def _read_rows(path: str, partition: Mapping[str, Any]) -> Iterator[pa.Table]:
    with files.open_read(path) as opened:
        parquet = pq.ParquetFile(opened, pre_buffer=False)
        columns = [name for name in parquet.schema_arrow.names if name not in LEFT_OUT]
        for batch in parquet.iter_batches(
            _BATCH_ROWS, columns=columns, use_threads=False
        ):
            yield with_partition(pa.Table.from_batches([batch]), partition)


def encode_rows(rows: pa.Table) -> list[bytes]:
    """Each row as bytes: the columns that are not null, sorted by name.

    Different rows have different bytes. A column that is null counts like one that is
    not there.
    """
    encoded = []
    for name in sorted(set(rows.column_names) - set(LEFT_OUT)):
        key = _text(name)
        values = _encode(rows.column(name).combine_chunks())
        encoded.append([b"" if value == _NULL else key + value for value in values])
    return [b"".join(row) for row in zip(*encoded, strict=True)]


def _encode(array: pa.Array) -> list[bytes]:
    """Each value as bytes, in a form of which none begins another."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _encode(array.dictionary_decode())
    if pa.types.is_struct(kind):
        values = _encode_struct(array)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        values = _encode_list(array)
    elif pa.types.is_floating(kind):
        values = _encode_numbers(array)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return [_NULL if v is None else _text(v) for v in array.to_pylist()]
    else:
        return [_NULL if v is None else b"v" + _text(str(v)) for v in array.to_pylist()]
    if not array.null_count:
        return values
    is_valid = array.is_valid().to_pylist()
    return [value if v else _NULL for value, v in zip(values, is_valid, strict=True)]


def _text(text: str) -> bytes:
    content = text.encode(errors="surrogatepass")
    return b"%d:%b" % (len(content), content)


def _encode_struct(array: pa.StructArray) -> list[bytes]:
    names = sorted(field.name for field in array.type)
    keys = [_text(name) for name in names]
    columns: list[Sequence[bytes]] = [
        _encode(child) for child in _children(array, names)
    ]
    return [
        b"{"
        + b"".join(
            key + value
            for key, value in zip(keys, values, strict=True)
            if value != _NULL
        )
        + b"}"
        for values in zip(*columns, strict=True)
    ]


def _children(array: pa.StructArray, names: Sequence[str]) -> list[pa.Array]:
    flat = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
    return [flat[name] for name in names]


def _encode_list(array: pa.ListArray) -> list[bytes]:
    items = _encode(array.flatten())
    lengths = array.value_lengths().fill_null(0).to_pylist()
    encoded = []
    start = 0
    for length in lengths:
        content = b"".join(items[start : start + length])
        encoded.append(b"[%d:%b" % (length, content))
        start += length
    return encoded


def _encode_numbers(array: pa.Array) -> list[bytes]:
    """Numbers as four significant digits and an exponent."""
    numbers = array.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    return [b"%b;" % text.encode() for text in _rounded(numbers)]


def _rounded(numbers: np.ndarray) -> list[str]:
    """Each number as text; minus zero is zero.

    A decimal text is rounded exactly; a computation in numbers would add an error.
    """
    form = f"%.{SIGNIFICANT_DIGITS - 1}e"
    return [form % number for number in (numbers + 0.0).tolist()]
