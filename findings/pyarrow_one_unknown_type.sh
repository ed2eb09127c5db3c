#!/bin/sh
# pyarrow reads no column of a Parquet file in which Polars wrote one as Int128.
#
# One would guess that columns=["text"] reads the column text whatever the others are,
# and that pq.read_metadata, which shows what is in a file, works. Parquet has no such
# type: Polars 2.1.0 stores 16 plain bytes, and names Int128 only in the Arrow schema in
# the footer. pyarrow 25.0.1 decodes this schema when it opens the file, and has no
# option to leave it out:
#
#     read_metadata: Integers with more than 64 bits not implemented
#
# With another key in place of ARROW:schema, pyarrow reads the whole file.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyarrow==25.0.1 polars==2.1.0
"$folder/venv/bin/python" - "$folder/a.parquet" <<'PYTHON'
import sys

import polars
import pyarrow as pa
import pyarrow.parquet as pq

path = sys.argv[1]
number = polars.Series([1], dtype=polars.Int128)
polars.DataFrame({"text": ["A."]}).with_columns(number=number).write_parquet(path)
for read in (pq.read_metadata, lambda path: pq.read_table(path, columns=["text"])):
    try:
        read(path)
    except pa.ArrowNotImplementedError as error:
        print(error)
    else:
        raise AssertionError("pyarrow reads it")
with open(path, "rb") as file:
    content = file.read().replace(b"ARROW:schema", b"ARROW:ignore")
(row,) = pq.read_table(pa.BufferReader(content)).to_pylist()
print(row)
assert row == {"text": "A.", "number": (1).to_bytes(16, "little")}
PYTHON
