#!/bin/sh
# pyarrow cuts the fractions of Python numbers that it is told to store as integers.
#
# One would guess that a schema with int64 refuses 4.5, as Array.cast does ("Float value
# 4.500000 was truncated converting to int64") and as pa.array refuses True and "4" for
# int64. With pyarrow 25.0.1 rows of Python lose the fraction and nothing is said:
#
#     pa.array([4.5]).cast(pa.int64())                       ArrowInvalid
#     pa.array([4.5], pa.int64())                            [4]
#     pa.Table.from_pylist([{"price": 4.5}], schema int64)   4
#
# So a column that is converted by cast is checked, and one that is made of rows is not.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyarrow==25.0.1
"$folder/venv/bin/python" - <<'PYTHON'
import pyarrow as pa

try:
    pa.array([4.5]).cast(pa.int64())
except pa.ArrowInvalid as error:
    print("cast      ", error)
else:
    raise AssertionError("cast takes it")
schema = pa.schema([("price", pa.int64())])
rows = pa.Table.from_pylist([{"price": 4.5}], schema).to_pylist()
print("array     ", pa.array([4.5], pa.int64()).to_pylist())
print("from_pylist", rows)
assert pa.array([4.5], pa.int64()).to_pylist() == [4]
assert rows == [{"price": 4}]
for other in (True, "4"):
    try:
        pa.array([other], pa.int64())
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        print("array     ", error)
    else:
        raise AssertionError(f"array takes {other!r}")
PYTHON
