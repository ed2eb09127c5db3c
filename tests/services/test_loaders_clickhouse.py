"""ClickHouse, as a library, loads runs with the statements of `precis loaders`."""

import datetime
import json

import pytest
from chdb.session import Session
from support.loader_runs import (
    check_columns_stay,
    check_loads,
    make_row,
    write_rows,
)

from precis.pipelines.warehouse.loaders import loaders

pytestmark = pytest.mark.services
_QUERY_SETTINGS = (
    "SETTINGS output_format_json_quote_64bit_integers = 0, "
    "output_format_json_quote_denormals = 1, date_time_output_format = 'iso'"
)


@pytest.fixture
def session(tmp_path_factory):
    # There is one session in a process.
    opened = Session(str(tmp_path_factory.mktemp("clickhouse")))
    opened.query("CREATE DATABASE news")
    yield opened
    opened.close()


def as_clickhouse(row):
    """A row as ClickHouse has it: no null lists or structs."""
    row = {
        **row,
        "abstractive": [
            {**item, "support": item["support"] or []}
            for item in row["abstractive"] or []
        ],
    }
    for name in ("abstractive_quality", "reference_quality"):
        quality = row[name]
        if quality is None:
            quality = dict.fromkeys(make_row(1)["abstractive_quality"])
            if name == "reference_quality":
                known = ("words", "novel_2grams_percent", "repetition_rate", "flags")
                quality = dict.fromkeys(known)
        lists = ("flags", "unsupported_names", "unsupported_numbers")
        row[name] = {
            key: value
            if value is not None or key not in (*lists, "unsupported_dates")
            else []
            for key, value in quality.items()
        }
    if row["published"]:
        row["published"] = f"{row['published']:%Y-%m-%dT%H:%M:%S.%f}Z"
    if row["day"]:
        row["day"] = row["day"].isoformat()
    if row["price"] is not None:
        row["price"] = float(row["price"])
    if row["share"] == float("inf"):
        row["share"] = "inf"
    return {name: value for name, value in row.items() if name != "thumbnail"}


def test_clickhouse_has_every_value_and_the_second_load_changes_nothing(
    session, tmp_path
):
    def load(run, table="summaries"):
        texts = loaders(run=run, for_="clickhouse", table=f"news.{table}").files
        for text in texts.values():
            session.query(text)

    def select(query):
        answer = session.query(f"{query} {_QUERY_SETTINGS}", "JSONEachRow")
        return [json.loads(line) for line in answer.data().split("\n") if line]

    def rows_in(table):
        # Bytes are no JSON, and a view has FINAL in itself.
        is_view = table.endswith(("_flat", "_extractive"))
        columns = "*" if table.endswith("_extractive") else "* EXCEPT thumbnail"
        return select(
            f"SELECT {columns} FROM news.{table} {'' if is_view else 'FINAL'}"
        )

    check_loads(tmp_path, load, rows_in, as_clickhouse)
    # Also when ClickHouse has merged its parts.
    rows = select("SELECT document_id FROM news.summaries FINAL ORDER BY document_id")
    session.query("OPTIMIZE TABLE news.summaries FINAL")
    assert select("SELECT document_id FROM news.summaries ORDER BY document_id") == rows
    (row,) = select(
        "SELECT hex(thumbnail) AS bytes FROM news.summaries FINAL "
        "WHERE thumbnail IS NOT NULL LIMIT 1"
    )
    assert bytes.fromhex(row["bytes"]) == make_row(1)["thumbnail"]
    names = {row["name"] for row in select("SHOW TABLES FROM news")}
    assert not any("staging" in name for name in names)
    moment = datetime.datetime(1969, 12, 31, 23, 59, 59, tzinfo=datetime.UTC)
    load(write_rows(tmp_path / "f", [1], published=moment), "moments")
    (row,) = select("SELECT published FROM news.moments FINAL")
    assert row["published"] == "1969-12-31T23:59:59.000000Z"

    def add_note():
        session.query("ALTER TABLE news.stays ADD COLUMN note Nullable(String)")
        session.query("ALTER TABLE news.stays ADD COLUMN is_new Bool DEFAULT true")
        changes = "UPDATE note = 'read', is_new = false WHERE true"
        session.query(f"ALTER TABLE news.stays {changes} SETTINGS mutations_sync = 2")

    check_columns_stay(tmp_path / "stays", load, rows_in, add_note)
    kept = select("SELECT is_new FROM news.stays FINAL ORDER BY document_id")
    assert [row["is_new"] for row in kept] == [False, False, True]
