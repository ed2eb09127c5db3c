"""`precis digest`: hashes the content of a run's rows.

    sha256(version, number of rows, sum of the sha256 of every row mod 2**256)

A sum does not depend on the order of rows or their distribution over files and row
groups. The hash of a row covers its columns by name, with the folder's columns.
Fractional numbers are rounded to four significant digits. Rows of groups are hashed
too.
"""

import hashlib
import itertools
from typing import Any

import numpy as np
import pyarrow as pa

from precis.model.progress.stages import stage
from precis.pipelines.run.options import read_flags
from precis.pipelines.tables.finished_run import open_run
from precis.pipelines.verify.options import DIGEST

# Columns that differ if another run computed equal results, or read its corpus from
# another place.
LEFT_OUT = (
    *("run_id", "settings_id", "reused_from", "source_file", "source_position"),
    *("prompt_tokens", "written_tokens", "writing_seconds"),
)
SIGNIFICANT_DIGITS = 4
_VERSION = "precis digest 1"
_BATCH_ROWS = 1024
_MODULUS = 1 << 256
_NULL = b"-"
_LEAST = 1e-300
_LEAST_EXPONENT = -310
# 1e-310 to 1e308. Powers that are parsed from text are equal on all machines.
_POWERS = np.array([float(f"1e{n}") for n in range(_LEAST_EXPONENT, 309)])


def digest(**flags: Any) -> str:
    """A hash of the content of a run, which is the same for equal results, wherever and
    however they were computed.

    Args:
      **flags: the fields of `DigestOptions`.

    Returns:
      64 hexadecimal digits.

    Raises:
      UsageError: the folder does not exist.
      DataError: the run is not finished, or a file of it is damaged.
    """
    (options,) = read_flags(DIGEST, flags)
    run = open_run(options.run.rstrip("/"))
    run.check_output_files()
    total, count = 0, 0
    with stage("read", total=run.rows, unit="rows") as reading:
        for table in itertools.chain(run.tables(), run.tables(of_groups=True)):
            for start in range(0, table.num_rows, _BATCH_ROWS):
                for row in encode_rows(table.slice(start, _BATCH_ROWS)):
                    total += int.from_bytes(hashlib.sha256(row).digest(), "big")
                    count += 1
            reading.advance(table.num_rows)
    text = f"{_VERSION}\n{count}\n{total % _MODULUS:064x}\n"
    return hashlib.sha256(text.encode()).hexdigest()


def encode_rows(rows: pa.Table) -> list[bytes]:
    """Encodes each row as bytes: its columns that are not null, sorted by name.

    Different rows have different bytes. A null column is the same as a missing one.
    """
    encoded = []
    for name in sorted(set(rows.column_names) - set(LEFT_OUT)):
        key = _text(name)
        values = _encode(rows.column(name).combine_chunks())
        encoded.append([b"" if value == _NULL else key + value for value in values])
    return [b"".join(row) for row in zip(*encoded, strict=True)]


def _encode(array: pa.Array) -> list[bytes]:
    """Encodes each value as bytes such that no encoding is a prefix of another."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _encode(array.dictionary_decode())
    if pa.types.is_struct(kind):
        values = _encode_struct(array)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        values = _encode_list(array)
    elif pa.types.is_floating(kind):
        values = _encode_fractions(array)
    elif pa.types.is_boolean(kind) or (
        pa.types.is_integer(kind) and not pa.types.is_uint64(kind)
    ):
        numbers = array.cast(pa.int64()).fill_null(0).to_pylist()
        values = [
            b"i%b" % number.to_bytes(8, "little", signed=True) for number in numbers
        ]
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        values = [_text(text or "") for text in array.to_pylist()]
    else:
        values = [b"v" + _text(str(value)) for value in array.to_pylist()]
    if not array.null_count:
        return values
    is_valid = array.is_valid().to_pylist()
    return [value if v else _NULL for value, v in zip(values, is_valid, strict=True)]


def _text(text: str) -> bytes:
    content = text.encode(errors="surrogatepass")
    return b"%d:%b" % (len(content), content)


def _encode_struct(array: pa.StructArray) -> list[bytes]:
    """Encodes the fields of each struct in the order of their names."""
    names = (field.name for field in array.type)
    fields = dict(zip(names, array.flatten(), strict=True))
    columns = [_encode(fields[name]) for name in sorted({*fields} - {*LEFT_OUT})]
    return list(map(b"".join, zip(itertools.repeat(b"{"), *columns, strict=False)))


def _encode_list(array: pa.ListArray) -> list[bytes]:
    items = iter(_encode(array.flatten()))
    lengths = array.value_lengths().fill_null(0).to_pylist()
    contents = (b"".join(itertools.islice(items, length)) for length in lengths)
    return [b"[%d:%b" % each for each in zip(lengths, contents, strict=True)]


def _encode_fractions(array: pa.Array) -> list[bytes]:
    """Encodes numbers as four digits and an exponent: 0.012346 as (1235, -5).

    Minus zero and numbers below 1e-300 in size are encoded as zero.
    """
    numbers = array.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    is_finite = np.isfinite(numbers)
    size = np.where(is_finite, np.abs(numbers), 1.0)
    is_zero = size < _LEAST
    exponents = np.floor(np.log10(np.where(is_zero, 1.0, size))).astype(np.int64)
    exponents -= SIGNIFICANT_DIGITS - 1
    digits = np.rint(size / _POWERS[exponents - _LEAST_EXPONENT])
    # 9999.7 is rounded to 10000, which has one more digit.
    is_longer = digits >= 10**SIGNIFICANT_DIGITS
    encoded = np.zeros(len(numbers), [("kind", "S1"), ("d", "<i4"), ("e", "<i4")])
    encoded["kind"] = b"f"
    encoded["d"] = np.copysign(np.where(is_longer, digits / 10, digits), numbers)
    encoded["e"] = exponents + is_longer
    encoded["d"][is_zero] = encoded["e"][is_zero] = 0
    encoded["e"][~is_finite] = 1000
    encoded["d"][~is_finite] = np.nan_to_num(np.sign(numbers[~is_finite]), nan=7)
    return [number.tobytes() for number in encoded]
