#!/bin/sh
# DuckDB rounds a decimal in a VARIANT with to_json, and keeps it with a cast to JSON.
#
# One would guess that to_json(v) and v::JSON give one text, as for a DECIMAL. For a
# VARIANT, which is how Spark and DuckDB store JSON in Parquet, DuckDB 2.0.0 gives all
# digits with the cast alone. to_json goes through a double, and so does the cast of a
# struct or list that holds the VARIANT; a cast of these to VARIANT first, and then to
# JSON, is exact. The to_json of Spark 4.3 gives all digits.
#
#     v::JSON               12345678901234567890.12
#     to_json(v)            12345678901234567000.0
#     {'x': v}::JSON        {"x":12345678901234567000.0}
#     {'x': v}::VARIANT::JSON   {"x":12345678901234567890.12}
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet duckdb==2.0.0
"$folder/venv/bin/python" - <<'PYTHON'
import duckdb

exact = "12345678901234567890.12"
decimal = f"{exact}::DECIMAL(38, 2)"


def text(form, value):
    query = f"SELECT ({form})::VARCHAR FROM (SELECT {value} AS v)"
    ((found,),) = duckdb.sql(query).fetchall()
    print(f"{form:26}{found}")
    return found


variant = f"{decimal}::VARIANT"
assert text("to_json(v)", decimal) == exact
assert text("v::JSON", variant) == exact
assert exact in text("{'x': v}::VARIANT::JSON", variant)
for form in ("to_json(v)", "{'x': v}::JSON", "[v]::JSON"):
    assert "12345678901234567000.0" in text(form, variant), form
PYTHON
