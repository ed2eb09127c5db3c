"""Tests of loading runs into Iceberg tables."""

import importlib.metadata
import re

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, ForbiddenError
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType, MapType, StringType
from pyiceberg.utils.config import Config
from support.warehouse_runs import (
    SCHEMA,
    data_files,
    iceberg_table,
    load_run,
    rows_of,
    summaries,
    write_run,
)

from precis.model.errors import DataError, JobError, UsageError
from precis.pipelines.summarize.summarize import summarize
from precis.pipelines.tables import finished_run
from precis.pipelines.warehouse import iceberg
from precis.pipelines.warehouse.options import read_address

KEY = {"document_id", "source_file", "source_position"}


@pytest.fixture
def address(tmp_path) -> str:
    return f"iceberg+sqlite://{tmp_path}/warehouse/news.daily"


def load(folder, run_id, ids, address, **columns):
    """Loads a run with a row for each id."""
    run = write_run(folder / run_id, rows_of(ids, run_id, **columns))
    return load_run(run, address)


def test_a_run_becomes_one_snapshot_that_duckdb_reads(tmp_path, address):
    summarize(corpus="sample:40", output=tmp_path / "run")
    result = load_run(str(tmp_path / "run"), address)
    assert (result.rows, result.replaced, result.was_noop) == (40, 0, False)
    table = iceberg_table(address)
    (snapshot,) = table.snapshots()
    assert str(snapshot.snapshot_id) == result.version
    facts = snapshot.summary.additional_properties
    assert facts["precis.run_id"] == result.run_id
    assert facts["precis.version"] == importlib.metadata.version("precis-corpus")
    assert len(facts["precis.fingerprint"]) == 64
    schema = table.schema()
    assert schema.find_field("summary").doc.startswith("the text to show")
    assert schema.identifier_field_names() == KEY
    assert {each.name for each in schema.fields if each.required} == KEY
    parts = sorted((tmp_path / "run").rglob("*.parquet"))
    written = [row for part in parts for row in pq.read_table(part).to_pylist()]
    assert len(written) == 40
    # DuckDB reads the data files themselves.
    read = duckdb.read_parquet([*data_files(table)])
    assert read.columns == list(written[0])
    assert read.fetchall() == [tuple(row.values()) for row in written]


def test_rows_with_the_same_key_are_replaced_once(tmp_path, address):
    kept = rows_of(["kept", "also kept"], sentences=[])
    parts = {"part-0.parquet": kept, "part-1.parquet": rows_of(["old"])}
    first = load_run(write_run(tmp_path / "a", parts), address)
    load(tmp_path, "b", ["all", "of it"], address)
    stays = load(tmp_path, "x", ["other"], address)
    earlier = data_files(iceberg_table(address))
    ids = ["old", "all", "of it", "new"]
    result = load(tmp_path, "c", ids, address)
    assert (stays.replaced, result.rows, result.replaced) == (0, 4, 3)
    table = iceberg_table(address)
    by_a = {name: f"{name} by a" for name in ("kept", "also kept")}
    by_c = {name: f"{name} by c" for name in ids}
    assert summaries(table) == {**by_a, "other": "other by x", **by_c}
    # Of the earlier files, the one without a key of the run stays.
    assert len(earlier & data_files(table)) == 1
    assert len(table.snapshots()) == 4
    assert table.scan(snapshot_id=table.snapshots()[0].snapshot_id).count() == 3
    again = load_run(str(tmp_path / "a"), address)
    assert (again.was_noop, again.version) == (True, first.version)
    assert iceberg_table(address).metadata_location == table.metadata_location


def test_lists_that_are_null_stay_null(tmp_path, address):
    place = SCHEMA.get_field_index("sentences")
    schema = SCHEMA.set(place, SCHEMA.field(place).with_nullable(True))
    rows = [*rows_of("xy", sentences=None), *rows_of("z", sentences=[])]
    load_run(write_run(tmp_path / "a", rows, schema=schema), address)
    load(tmp_path, "b", "y", address)
    read = duckdb.read_parquet([*data_files(iceberg_table(address))])
    rows = read.select("document_id", "sentences").fetchall()
    assert dict(rows) == {"x": None, "y": [{"text": "y", "rank": 1}], "z": []}


@pytest.mark.parametrize("expired", [0, 1])
def test_a_load_is_known_when_a_snapshot_is_expired(tmp_path, address, expired):
    versions = [load(tmp_path, name, "x", address).version for name in "abc"]
    maintenance = iceberg_table(address).maintenance
    maintenance.expire_snapshots().by_id(int(versions[expired])).commit()
    again = load_run(str(tmp_path / "a"), address)
    assert (again.was_noop, again.version) == (True, versions[0])
    assert summaries(iceberg_table(address)) == {"x": "x by c"}


def test_a_load_that_was_rolled_back_is_made_again(tmp_path, address):
    first = load(tmp_path, "a", "x", address)
    load(tmp_path, "b", "x", address)
    table = iceberg_table(address)
    table.manage_snapshots().rollback_to_snapshot(int(first.version)).commit()
    assert summaries(iceberg_table(address)) == {"x": "x by a"}
    assert not load_run(str(tmp_path / "b"), address).was_noop
    assert summaries(iceberg_table(address)) == {"x": "x by b"}


def test_columns_follow_the_runs(tmp_path, address):
    load_run(write_run(tmp_path / "a", rows_of("xy")), address)
    sentence = SCHEMA.field("sentences").type.value_type
    longer = pa.struct([*sentence, pa.field("score", pa.float64(), nullable=False)])
    scored = [{"text": "y", "rank": 1, "score": 0.5}]
    fields = {
        "words": (pa.int64(), 2**40),
        "sentences": (pa.list_(pa.field("element", longer)), scored),
        "author": (pa.string(), "Ann"),
        "seen_at": (pa.timestamp("ms", "Europe/Oslo"), 1_700_000_000_000),
        "small": (pa.uint16(), 7),
        "kind": (pa.dictionary(pa.int8(), pa.string()), "news"),
    }
    same = [SCHEMA.field(name) for name in (*KEY, "split")]
    schema = pa.schema([*same, *((name, kind) for name, (kind, _) in fields.items())])
    values = {name: value for name, (_, value) in fields.items()}
    load_run(write_run(tmp_path / "b", rows_of("y", **values), schema=schema), address)
    table = iceberg_table(address)
    x, y = sorted(table.scan().to_arrow().to_pylist(), key=lambda r: r["document_id"])
    assert (x["author"], x["summary"], x["words"]) == (None, "x by a", 3)
    assert x["sentences"] == [{"text": "x", "rank": 1, "score": None}]
    assert (y["author"], y["summary"], y["words"]) == ("Ann", "y by a", 2**40)
    assert y["sentences"] == scored
    assert y["seen_at"].timestamp() == 1_700_000_000
    assert (y["small"], y["kind"]) == (7, "news")
    # The earlier columns come back.
    load(tmp_path, "c", "yz", address)
    by = {name: text[-1] for name, text in summaries(iceberg_table(address)).items()}
    assert by == {"x": "a", "y": "c", "z": "c"}


def test_columns_that_a_run_does_not_have_stay(tmp_path, address):
    first = {"a.parquet": rows_of("wx"), "b.parquet": rows_of("y")}
    load_run(write_run(tmp_path / "a", first), address)
    table = iceberg_table(address)
    with update(table) as changes:
        changes.add_column("state", StringType(), default_value="new")
        changes.add_column("tags", MapType(90, StringType(), 91, LongType()))
    rows = table.refresh().scan().to_arrow()
    tags = pa.array([None, [("a", 1)], []], rows.schema.field("tags").type)
    table.overwrite(rows.set_column(rows.schema.get_field_index("tags"), "tags", tags))
    earlier = {row["document_id"]: row for row in table.scan().to_arrow().to_pylist()}
    fields = [field for field in SCHEMA if field.name not in ("words", "sentences")]
    run = write_run(tmp_path / "b", rows_of("zyx", "b"), schema=pa.schema(fields[::-1]))
    assert load_run(run, address).replaced == 2
    rows = iceberg_table(address).scan().to_arrow().to_pylist()
    found = {row["document_id"]: row for row in rows}
    (z,) = rows_of("z", "b", words=None, sentences=[], state=None, tags=None)
    x, y = (earlier[name] | {"summary": f"{name} by b"} for name in "xy")
    assert found == {"w": earlier["w"], "x": x, "y": y, "z": z}
    assert {row["state"] for row in earlier.values()} == {"new"}


def test_a_copied_row_has_the_default_of_a_column_that_was_added(tmp_path, address):
    load(tmp_path, "a", "xy", address)
    with update(iceberg_table(address)) as changes:
        changes.add_column("state", StringType(), default_value="new")
    load(tmp_path, "b", "y", address)
    rows = duckdb.read_parquet([*data_files(iceberg_table(address))])
    found = rows.select("document_id", "state").fetchall()
    assert sorted(found) == [("x", "new"), ("y", "new")]


def test_types_that_do_not_fit_are_refused(tmp_path, address):
    load(tmp_path, "a", "x", address)
    before = iceberg_table(address).metadata_location
    for name, kind, message in (
        ("words", pa.string(), "Cannot change column type: words: int -> string; load"),
        ("sentences", pa.string(), ".*is not a primitive; load it into another"),
        ("later", pa.null(), "Null type .*Field: later"),
        ("later", pa.duration("s"), ".*'later' has an unsupported type"),
    ):
        fields = [pa.field(name, kind), *(each for each in SCHEMA if each.name != name)]
        rows = rows_of("x", "b", **{name: None})
        run = write_run(tmp_path / "b", rows, schema=pa.schema(fields))
        with pytest.raises(DataError, match=f"does not fit into news.daily: {message}"):
            load_run(run, address)
        assert iceberg_table(address).metadata_location == before


def update(table):
    return table.update_schema(allow_incompatible_changes=True)


def test_tables_that_others_changed_are_refused(tmp_path):
    addresses = [f"iceberg+sqlite://{tmp_path}/wh/news.{name}" for name in "wxyz"]
    for address in addresses:
        load(tmp_path, "a", "xy", address)
    renamed, cut, keyed, short = map(iceberg_table, addresses)
    with update(renamed) as changes:
        changes.rename_column("summary", "text")
    with cut.update_spec() as changes:
        changes.add_field("document_id", BucketTransform(4), "bucket")
    with update(keyed) as changes:
        changes.set_identifier_fields("document_id")
    with update(short) as changes:
        changes.set_identifier_fields()
        changes.delete_column("source_file")
    for address, error, message in zip(
        addresses,
        (UsageError, DataError, UsageError, DataError),
        (
            "column 'summary' was renamed or removed; rewrite",
            r"partitioned by bucket\[4\] of .*_id'; load",
            "news.y has the key document_id, not document",
            "not fit into .*: .* add required column: so",
        ),
        strict=True,
    ):
        before = iceberg_table(address).metadata_location
        with pytest.raises(error, match=message):
            load(tmp_path, "b", "y", address)
        assert iceberg_table(address).metadata_location == before


def test_a_partitioned_run_makes_a_partitioned_table(tmp_path, address):
    """The parts are as --partition_by split writes them, without the column."""
    schema = SCHEMA.remove(SCHEMA.get_field_index("split"))
    for run_id, splits in ("a", {"test": "xy", "a%20b": "z"}), ("b", {"test": "y"}):
        parts = {
            f"split={split}/part-00000.parquet": rows_of(ids, run_id)
            for split, ids in splits.items()
        }
        load_run(write_run(tmp_path / run_id, parts, schema=schema), address)
    table = iceberg_table(address)
    assert [field.name for field in table.spec().fields] == ["split"]
    tasks = list(table.scan(row_filter="split = 'a b'").plan_files())
    assert [task.file.record_count for task in tasks] == [1]
    rows = table.scan().to_arrow().to_pylist()
    found = {row["document_id"]: (row["split"], row["summary"][-1]) for row in rows}
    assert found == {"x": ("test", "a"), "y": ("test", "b"), "z": ("a b", "a")}
    # A run of any layout is cut as the table is.
    mixed = [*rows_of("v", "c"), *rows_of("w", "c", split="train")]
    load_run(write_run(tmp_path / "c", mixed), address)
    assert iceberg_table(address).scan(row_filter="split = 'train'").count() == 1


def test_many_batches_make_few_files(tmp_path, address, monkeypatch):
    monkeypatch.setattr(finished_run, "_BATCH_ROWS", 3)
    monkeypatch.setattr(iceberg, "_BATCH_ROWS", 3)
    monkeypatch.setattr(iceberg, "_FILE_BYTES", 3000)
    ids = [f"d{number:03}" for number in range(100)]
    load(tmp_path, "a", ids, address)
    load(tmp_path, "b", ids[::2], address)
    table = iceberg_table(address)
    expected = {name: f"{name} by a" for name in ids}
    expected.update({name: f"{name} by b" for name in ids[::2]})
    assert summaries(table) == expected
    assert 2 < len(data_files(table)) < 15


class Killed(BaseException):
    """The end of a process, which no `except Exception` sees."""


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(
    ("owner", "step"),
    [
        (pq, "write_table"),
        (SqlCatalog, "commit_table"),
        (SqlCatalog, "_write_metadata"),
    ],
)
def test_a_killed_load_leaves_the_table_as_it_was(
    tmp_path, address, monkeypatch, owner, step, is_first
):
    if not is_first:
        load(tmp_path, "a", "xy", address)
    run = write_run(tmp_path / "b", rows_of("yz", "b"))

    def end(*_, **__):
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(owner, step, end)
        load_run(run, address)
    if is_first:
        with pytest.raises(Exception, match="news.daily"):
            iceberg_table(address)
    else:
        assert summaries(iceberg_table(address)) == {"x": "x by a", "y": "y by a"}
    assert not load_run(run, address).was_noop
    by_a = {} if is_first else {"x": "x by a"}
    table = iceberg_table(address)
    assert summaries(table) == by_a | {"y": "y by b", "z": "z by b"}
    assert len(table.snapshots()) == 2 - is_first


@pytest.mark.parametrize("is_first", [True, False])
def test_another_writer_is_reported(tmp_path, address, monkeypatch, is_first):
    """Another load brings a key of this one between its plan and its commit."""
    if not is_first:
        load(tmp_path, "a", "xy", address)
    run = write_run(tmp_path / "c", rows_of("zv", "c"))
    stage = iceberg._stage

    def load_beside(*arguments):
        monkeypatch.setattr(iceberg, "_stage", stage)
        staged = stage(*arguments)
        load(tmp_path, "b", "yz", address)
        return staged

    monkeypatch.setattr(iceberg, "_stage", load_beside)
    with pytest.raises(JobError, match="news.daily: another writer changed the table "):
        load_run(run, address)
    assert summaries(iceberg_table(address))["z"] == "z by b"
    assert load_run(run, address).replaced == 1
    by_a = {} if is_first else {"x": "x by a"}
    by_c = {"z": "z by c", "v": "v by c"}
    assert summaries(iceberg_table(address)) == by_a | {"y": "y by b"} | by_c


@pytest.mark.parametrize(
    "error", [ForbiddenError("no role"), CommitFailedException("no role")]
)
def test_a_commit_that_the_catalogue_refuses_is_no_conflict(
    tmp_path, address, monkeypatch, error
):
    load(tmp_path, "a", "xy", address)

    def refuse(*_):
        raise error

    monkeypatch.setattr(SqlCatalog, "commit_table", refuse)
    monkeypatch.setattr("time.sleep", lambda _: None)
    with pytest.raises(DataError, match="daily: the catalogue refused .*no role"):
        load(tmp_path, "b", "y", address)
    assert summaries(iceberg_table(address)) == {"x": "x by a", "y": "y by a"}


def test_a_commit_without_an_answer_is_no_second_load(tmp_path, address, monkeypatch):
    commit_table = SqlCatalog.commit_table

    def lose_answer(*arguments):
        commit_table(*arguments)
        raise TimeoutError("no answer")

    message = "gave no answer .* .TimeoutError: no answer.; run"
    with monkeypatch.context() as patch, pytest.raises(JobError, match=message):
        patch.setattr(SqlCatalog, "commit_table", lose_answer)
        load(tmp_path, "a", "xy", address)
    assert load_run(str(tmp_path / "a"), address).was_noop
    assert summaries(iceberg_table(address)) == {"x": "x by a", "y": "y by a"}


def test_keys_that_do_not_tell_rows_apart_are_refused(tmp_path, address):
    schema = SCHEMA.append(pa.field("author", pa.string()))
    run = write_run(tmp_path / "a", rows_of("xyx", author=None), schema=schema)
    for key, error, message in (
        ("document_id", DataError, "1 rows repeat a key, such as document_id 'x'"),
        ("document_id", DataError, "1 rows repeat a key, .*_duplicate_id f"),
        ("document_id,day", UsageError, "has no column 'day'; its columns are"),
        ("author", DataError, "key column 'author' is null"),
    ):
        with pytest.raises(error, match=message):
            load_run(run, address, table_key=key)
    assert not list(tmp_path.rglob("data/*.parquet"))


def test_addresses_that_name_no_table_are_refused():
    icebergs = "iceberg://news.daily", "iceberg://c/news", "iceberg+sqlite:///w/n."
    for text in ("news.daily", "s3://b/news.daily", *icebergs, "delta://"):
        message = re.escape(f"'{text}' is not a table; write iceberg")
        with pytest.raises(UsageError, match=message):
            read_address(text)


def test_a_catalogue_is_found_in_the_configuration(tmp_path, monkeypatch):
    folder = tmp_path / "wh"
    folder.mkdir()
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", f"sqlite:///{folder}/c.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__WAREHOUSE", f"file://{folder}")
    # pyiceberg reads the environment when it is imported.
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    assert load(tmp_path, "a", "xy", "iceberg://prod/news.daily").rows == 2
    assert load(tmp_path, "a", "xy", "iceberg://prod/news.daily").was_noop
    with pytest.raises(DataError, match="not fit into eu.news.daily: .*hierarchi"):
        load(tmp_path, "a", "xy", "iceberg://prod/eu.news.daily")


def test_a_catalogue_that_cannot_be_opened_is_refused(tmp_path):
    message = "'other' cannot be opened: .*PYICEBERG_CATALOG__OTHER__URI, or name a fol"
    with pytest.raises(UsageError, match=message):
        load(tmp_path, "a", "x", "iceberg://other/news.daily")
    (tmp_path / "no" / "catalog.db").mkdir(parents=True)
    with pytest.raises(UsageError, match="no cannot be written: unable to open"):
        load(tmp_path, "b", "x", f"iceberg+sqlite://{tmp_path}/no/news.daily")
