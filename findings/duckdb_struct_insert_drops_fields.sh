#!/bin/sh
# DuckDB drops the fields of a struct that the column lacks, and nothing is said.
#
# One would guess that INSERT and MERGE refuse a struct with a field too many, as INSERT
# BY NAME refuses a column too many (Binder Error), or that INSERT BY NAME at least does
# so for a struct. DuckDB 2.0.0 casts structs by name when the row is written: a field
# that only the column has becomes null, a field that only the value has is lost, also
# within lists. Only a struct without any common field is refused.
#
#     CREATE TABLE t (s STRUCT(a INTEGER))
#     INSERT INTO t SELECT {'a': 1, 'b': 2}            {'a': 1}
#     INSERT INTO t BY NAME SELECT {'a': 1, 'b': 2} AS s   {'a': 1}
#     INSERT INTO t BY NAME SELECT 1 AS b              Binder Error
#
# So a merge of rows whose schema has grown within a struct keeps the old shape. ALTER
# TABLE t ADD COLUMN s.b INTEGER before the load keeps the values.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet duckdb==2.0.0
"$folder/venv/bin/python" - <<'PYTHON'
import duckdb

VALUE = "{'a': 1, 'b': 2}"
WAYS = (
    f"INSERT INTO t (s) SELECT {VALUE}",
    f"INSERT INTO t BY NAME SELECT {VALUE} AS s",
    f"INSERT INTO t (l) SELECT [{VALUE}]",
    f"MERGE INTO t USING (SELECT {VALUE} AS s) AS new ON t.s.a = new.s.a "
    "WHEN NOT MATCHED THEN INSERT (s) VALUES (new.s)",
)


def rows(statement, before=""):
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (s STRUCT(a INTEGER), l STRUCT(a INTEGER)[])")
        connection.execute(before)
        connection.execute(statement)
        return connection.sql("FROM t").fetchall()


for way in WAYS:
    found = rows(way)
    print(f"{way[:46]:48}{found}")
    assert found in ([({"a": 1}, None)], [(None, [{"a": 1}])])
for refused in ("INSERT INTO t BY NAME SELECT 1 AS b", "INSERT INTO t (s) SELECT {'b': 2}"):
    try:
        rows(refused)
    except duckdb.BinderException as error:
        print(f"{refused[:46]:48}{str(error).splitlines()[0][:60]}")
    else:
        raise AssertionError(refused)
grown = rows(WAYS[0], "ALTER TABLE t ADD COLUMN s.b INTEGER")
assert grown == [({"a": 1, "b": 2}, None)], grown
PYTHON
