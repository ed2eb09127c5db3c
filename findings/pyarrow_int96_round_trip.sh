#!/bin/sh
# pyarrow writes a timestamp as INT96 (the default of Spark) and reads another one back.
#
# One would guess that what pyarrow writes without an error it reads back, or that a time
# which does not fit the type it reads into is an error. With pyarrow 25.0.1 the file is
# right (DuckDB 2.0.0 reads 9999-12-31), but pyarrow reads INT96 into 64 bits of
# nanoseconds, which hold the years 1677 to 2262, and wraps without an error:
#
#     9999-12-31 -> 1816-03-29 05:56:08.066277376
#
# ParquetFile(..., coerce_int96_timestamp_unit="us") gives the time that was written.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyarrow==25.0.1
"$folder/venv/bin/python" - "$folder/a.parquet" <<'PYTHON'
import datetime
import sys

import pyarrow as pa
import pyarrow.parquet as pq

path, written = sys.argv[1], datetime.datetime(9999, 12, 31)
table = pa.table({"t": pa.array([written], pa.timestamp("us"))})
pq.write_table(table, path, use_deprecated_int96_timestamps=True)
for unit in (None, "us"):
    file = pq.ParquetFile(path, coerce_int96_timestamp_unit=unit)
    (text,) = file.read()["t"].cast(pa.string()).to_pylist()
    print(unit, text)
    assert text.startswith("9999-12-31" if unit else "1816-03-29 05:56:08"), text
PYTHON
