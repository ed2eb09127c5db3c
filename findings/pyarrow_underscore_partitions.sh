#!/bin/sh
# pyarrow writes a folder partitioned by a column `_day` and reads no row of it back.
#
# Readers of such folders skip names that begin with "_" or ".", such as _SUCCESS. Spark
# excepts names with "=" (HadoopFSUtils.scala), so that the folders of a column `_day`
# are read. One would guess that pyarrow reads what it writes, or raises an error. With
# pyarrow 25.0.1 the folders are there, DuckDB 2.0.0 reads three rows, and pyarrow none:
#
#     pq.write_to_dataset(table, "out", partition_cols=["_day"])
#     pq.read_table("out").num_rows                            0
#     pq.read_table("out", ignore_prefixes=["."]).num_rows     3
#
# Nothing is said, and the table that is read has no columns either.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyarrow==25.0.1 duckdb==2.0.0
"$folder/venv/bin/python" - "$folder/out" <<'PYTHON'
import sys

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

out = sys.argv[1]
table = pa.table({"id": [1, 2, 3], "_day": ["a", "b", "b"]})
pq.write_to_dataset(table, out, partition_cols=["_day"])
by_duckdb = len(duckdb.sql(f"FROM '{out}/*/*.parquet'").fetchall())
read = pq.read_table(out)
rows = read.num_rows, ds.dataset(out, partitioning="hive").count_rows()
told = pq.read_table(out, ignore_prefixes=["."]).num_rows
print("DuckDB", by_duckdb, "pyarrow", *rows, read.column_names, "told", told)
assert (by_duckdb, *rows, read.column_names, told) == (3, 0, 0, [], 3)
PYTHON
