"""ClickHouse, as a library, loads runs with the statements of `precis loaders`."""

import datetime
import json

import pytest
from chdb.session import Session
from support.loader_runs import (
    KEPT,
    ODD_NAME,
    ODD_SCHEMA,
    make_row,
    read_rows,
    write_partitions,
    write_rows,
)
from support.warehouse_runs import write_run

from precis.pipelines.warehouse.loaders import loaders

pytestmark = pytest.mark.services
_QUERY_SETTINGS = (
    "SETTINGS output_format_json_quote_64bit_integers = 0, "
    "output_format_json_quote_denormals = 1, date_time_output_format = 'iso'"
)


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    # There is one session in a process.
    opened = Session(str(tmp_path_factory.mktemp("clickhouse")))
    yield opened
    opened.close()


@pytest.fixture
def database(session):
    session.query("DROP DATABASE IF EXISTS news")
    session.query("CREATE DATABASE news")
    return session


def load(session, run, **flags):
    table = {"table": "news.daily", **flags}
    for text in loaders(run=run, for_="clickhouse", **table).files.values():
        session.query(text)


def rows_in(session, query="SELECT * EXCEPT thumbnail FROM news.daily FINAL"):
    answer = session.query(f"{query} {_QUERY_SETTINGS}", "JSONEachRow")
    return [json.loads(line) for line in answer.data().split("\n") if line]


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


def compared(rows):
    """Rows by document, without the bytes, which are no JSON."""
    found = {}
    for row in rows:
        row.pop("thumbnail", None)
        found[row["document_id"]] = row
    assert len(found) == len(rows)
    return found


def test_every_value_is_there_after_two_loads(database, tmp_path):
    run = write_rows(tmp_path / "a", range(8))
    expected = {key: as_clickhouse(row) for key, row in read_rows(run).items()}
    for _ in range(2):
        load(database, run)
        assert compared(rows_in(database)) == expected
    (row,) = rows_in(
        database,
        "SELECT hex(thumbnail) AS bytes FROM news.daily FINAL "
        "WHERE thumbnail IS NOT NULL LIMIT 1",
    )
    assert bytes.fromhex(row["bytes"]) == make_row(1)["thumbnail"]
    # The staging table is gone.
    names = [row["name"] for row in rows_in(database, "SHOW TABLES FROM news")]
    assert names == ["daily", "daily_abstractive", "daily_extractive", "daily_flat"]


def test_a_later_run_replaces_its_rows_and_no_others(database, tmp_path):
    first = write_rows(tmp_path / "a", range(8))
    second = write_rows(tmp_path / "b", range(6, 10), split="new")
    load(database, first)
    load(database, second)
    rows = read_rows(first) | read_rows(second)
    expected = {key: as_clickhouse(row) for key, row in rows.items()}
    assert compared(rows_in(database)) == expected
    # Also when ClickHouse has merged its parts.
    database.query("OPTIMIZE TABLE news.daily FINAL")
    assert (
        compared(rows_in(database, "SELECT * EXCEPT thumbnail FROM news.daily"))
        == expected
    )


def test_the_views_and_the_columns_of_folders(database, tmp_path):
    run = write_partitions(tmp_path / "a")
    for _ in range(2):
        load(database, run)
    flat = rows_in(database, "SELECT * EXCEPT thumbnail FROM news.daily_flat")
    places = sorted([(row["split"], row["day"]) for row in flat], key=str)
    assert set(places) == {("", "2026-03-04"), ("a/b's", "2026-03-04"), ("test", None)}
    rows = [make_row(number) for number in range(3)]
    words = {row["document_id"]: row["abstractive_quality_words"] for row in flat}
    assert words == {
        row["document_id"]: (row["abstractive_quality"] or {}).get("words")
        for row in rows
    }
    assert {field.name for field in KEPT} - set(flat[0]) == {"thumbnail"}
    items = rows_in(
        database,
        "SELECT document_id, extractive_position, extractive_text "
        "FROM news.daily_extractive ORDER BY 1, 2",
    )
    assert [tuple(item.values()) for item in items] == [
        (row["document_id"], place, item["text"])
        for row in sorted(rows, key=lambda row: row["document_id"])
        for place, item in enumerate(row["extractive"])
    ]


def test_a_name_with_quotes_is_a_column(database, tmp_path):
    rows = [make_row(1, **{ODD_NAME: "x"})]
    load(database, write_run(tmp_path / "a", rows, schema=ODD_SCHEMA))
    (row,) = rows_in(database)
    assert row[ODD_NAME] == "x"


def test_a_moment_is_in_utc(database, tmp_path):
    moment = datetime.datetime(1969, 12, 31, 23, 59, 59, tzinfo=datetime.UTC)
    load(database, write_rows(tmp_path / "a", [1], published=moment))
    (row,) = rows_in(database, "SELECT published FROM news.daily FINAL")
    assert row["published"] == "1969-12-31T23:59:59.000000Z"
