#!/bin/sh
# pyarrow imports pandas to make an array of a Python list, if pandas is installed.
#
# One would guess that only `to_pandas` and `from_pandas` need it, or that
# `sys.modules["pandas"] = None`, which says that there is no such module, keeps it out.
# pyarrow 25.0.1 imports pandas at the first `pyarrow.array`, `pyarrow.table` or scalar
# of a Python value or NumPy array, to ask whether it is a pandas object, and in
# `pyarrow.parquet.read_table`. With the None in `sys.modules` this fails, as compiled
# code takes the None for the module:
#
#     AttributeError: 'NoneType' object has no attribute '__version__'
#
# `ParquetFile`, the readers of JSON, tables that others make (here DuckDB),
# computations on them and `to_pylist` import nothing. So a short job, or each worker of
# a pipeline, pays for the import of pandas with its first list of ids, far more than
# its own work takes. A finder that raises ModuleNotFoundError for pandas keeps it out.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyarrow==25.0.1 pandas==2.3.3 duckdb==2.0.0
cat >"$folder/probe.py" <<'PYTHON'
import importlib.abc
import os
import sys
import time

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json
import pyarrow.parquet

os.chdir(os.path.dirname(__file__))
connection = duckdb.connect()
connection.sql("COPY (SELECT 1 AS key) TO 'keys.parquet'")
connection.sql("COPY (SELECT 1 AS key) TO 'keys.json'")


class NoPandas(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "pandas":
            raise ModuleNotFoundError(name)


def without_pandas():
    sys.meta_path.insert(0, NoPandas())
    return pa.array([1])


def with_none():
    sys.modules["pandas"] = None
    try:
        pa.array([1])
    except AttributeError as error:
        assert "__version__" in str(error), error
        return
    raise AssertionError("None in sys.modules keeps pandas out")


WAYS = {
    "array of a list": lambda: pa.array([1]),
    "array of NumPy": lambda: pa.array(np.ones(1)),
    "table": lambda: pa.table({"key": [1]}),
    "scalar": lambda: pa.scalar(1),
    "read_table": lambda: pyarrow.parquet.read_table("keys.parquet"),
    "ParquetFile": lambda: pyarrow.parquet.ParquetFile("keys.parquet").read(),
    "json": lambda: pyarrow.json.read_json("keys.json").to_pylist(),
    "duckdb": lambda: pc.sum(connection.sql("SELECT 1 AS a").to_arrow_table()["a"]),
    "finder": without_pandas,
    "none": with_none,
}
start = time.process_time()
WAYS[sys.argv[1]]()
imported = sys.modules.get("pandas") is not None
print(f"{sys.argv[1]:18}pandas {imported!s:6} {time.process_time() - start:.2f} s")
assert imported is (sys.argv[2] == "imports")
PYTHON
for way in "array of a list" "array of NumPy" table scalar read_table; do
    "$folder/venv/bin/python" "$folder/probe.py" "$way" imports 2>/dev/null
done
for way in ParquetFile json duckdb finder none; do
    "$folder/venv/bin/python" "$folder/probe.py" "$way" nothing 2>/dev/null
done
