"""Tests of loading runs into Iceberg tables: rows, merge, columns, repeated loads."""

import importlib.metadata
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.warehouse_runs import (
    SCHEMA,
    data_files,
    files_on_disk,
    iceberg_table,
    rows_of,
    summaries,
    write_run,
)

from precis.model.errors import DataError, UsageError
from precis.pipelines.warehouse.load_run import DEFAULT_KEY, load_run


@pytest.fixture
def address(tmp_path) -> str:
    return f"iceberg+sqlite://{tmp_path}/warehouse/news.daily"


@pytest.fixture(scope="module")
def summarized(tmp_path_factory) -> str:
    """A run of `precis summarize`."""
    from precis.pipelines.summarize.summarize import summarize

    folder = tmp_path_factory.mktemp("summarized") / "run"
    summarize(corpus="sample:200", output=folder)
    return str(folder)


def test_a_run_becomes_one_snapshot_that_duckdb_reads(summarized, address):
    result = load_run(summarized, address)
    assert (result.rows, result.replaced, result.was_noop) == (200, 0, False)
    table = iceberg_table(address)
    (snapshot,) = table.snapshots()
    assert str(snapshot.snapshot_id) == result.version
    facts = snapshot.summary.additional_properties
    assert facts["precis.run_id"] == result.run_id
    assert facts["precis.version"] == importlib.metadata.version("precis")
    assert len(facts["precis.fingerprint"]) == 64
    parts = sorted(Path(summarized).rglob("*.parquet"))
    written = [row for part in parts for row in pq.read_table(part).to_pylist()]
    assert len(written) == 200
    # DuckDB reads the data files themselves.
    paths = [path.removeprefix("file://") for path in data_files(table)]
    read = duckdb.read_parquet(paths)
    assert read.columns == list(written[0])
    assert read.fetchall() == [tuple(row.values()) for row in written]
    # And the scan of pyiceberg, which makes empty lists of null lists of structs.
    query = "SELECT count(*), count(DISTINCT document_id), sum(len(extractive)) FROM t"
    sentences = sum(len(row["extractive"]) for row in written)
    connection = table.scan().to_duckdb("t")
    assert connection.sql(query).fetchall() == [(200, 200, sentences)]


def test_the_table_describes_its_columns_and_its_key(tmp_path, address):
    load_run(write_run(tmp_path / "a", rows_of("xy")), address)
    schema = iceberg_table(address).schema()
    assert schema.find_field("summary").doc == "the text to show"
    assert schema.identifier_field_names() == {
        *("document_id", "source_file", "source_position")
    }
    assert schema.find_field("sentences.element.rank").required


def test_a_second_load_changes_nothing(tmp_path, address):
    run = write_run(tmp_path / "a", rows_of("xy"))
    first = load_run(run, address)
    before = iceberg_table(address).metadata_location
    second = load_run(run, address)
    assert (second.was_noop, second.version) == (True, first.version)
    assert iceberg_table(address).metadata_location == before


def test_rows_with_the_same_key_are_replaced(tmp_path, address):
    parts = {
        "part-0.parquet": rows_of(["kept", "also kept"]),
        "part-1.parquet": rows_of(["old"]),
    }
    load_run(write_run(tmp_path / "a", parts), address)
    load_run(write_run(tmp_path / "b", rows_of(["all", "of it"], "b")), address)
    earlier = data_files(iceberg_table(address))
    run = write_run(tmp_path / "c", rows_of(["old", "all", "of it", "new"], "c"))
    result = load_run(run, address)
    assert (result.rows, result.replaced) == (4, 3)
    table = iceberg_table(address)
    assert summaries(table) == {
        "kept": "kept by a",
        "also kept": "also kept by a",
        "old": "old by c",
        "all": "all by c",
        "of it": "of it by c",
        "new": "new by c",
    }
    assert len(table.snapshots()) == 3
    assert not earlier & data_files(table)
    # Every snapshot can still be read.
    assert table.scan(snapshot_id=table.snapshots()[0].snapshot_id).count() == 3


def test_files_without_a_key_of_the_run_stay(tmp_path, address):
    load_run(write_run(tmp_path / "a", rows_of("xy")), address)
    earlier = data_files(iceberg_table(address))
    result = load_run(write_run(tmp_path / "b", rows_of("z", "b")), address)
    assert result.replaced == 0
    table = iceberg_table(address)
    assert earlier < data_files(table) and len(data_files(table)) == 2
    assert iceberg_table(address).scan().count() == 3


def test_a_load_is_known_when_its_snapshot_is_expired(tmp_path, address):
    first = write_run(tmp_path / "a", rows_of("xy"))
    loaded = load_run(first, address)
    load_run(write_run(tmp_path / "b", rows_of("xz", "b")), address)
    table = iceberg_table(address)
    table.maintenance.expire_snapshots().by_id(int(loaded.version)).commit()
    assert len(iceberg_table(address).snapshots()) == 1
    again = load_run(first, address)
    assert (again.was_noop, again.version) == (True, loaded.version)
    assert summaries(iceberg_table(address))["x"] == "x by b"


def test_a_load_is_known_behind_an_expired_snapshot(tmp_path, address):
    runs = [write_run(tmp_path / name, rows_of("x", name)) for name in "abc"]
    first, middle, _ = (load_run(run, address) for run in runs)
    table = iceberg_table(address)
    table.maintenance.expire_snapshots().by_id(int(middle.version)).commit()
    assert load_run(runs[0], address).version == first.version
    assert summaries(iceberg_table(address)) == {"x": "x by c"}


def test_a_load_that_was_rolled_back_is_made_again(tmp_path, address):
    first = load_run(write_run(tmp_path / "a", rows_of("x")), address)
    run = write_run(tmp_path / "b", rows_of("x", "b"))
    load_run(run, address)
    table = iceberg_table(address)
    table.manage_snapshots().rollback_to_snapshot(int(first.version)).commit()
    assert summaries(iceberg_table(address)) == {"x": "x by a"}
    assert not load_run(run, address).was_noop
    assert summaries(iceberg_table(address)) == {"x": "x by b"}


def test_other_rows_of_the_same_run_are_loaded(tmp_path, address):
    """Scores may differ in their last bits on another machine."""
    load_run(write_run(tmp_path / "a", rows_of("xy")), address)
    result = load_run(write_run(tmp_path / "2" / "a", rows_of("xy", words=4)), address)
    assert result.replaced == 2 and not result.was_noop
    words = iceberg_table(address).scan().to_arrow()["words"].to_pylist()
    assert words == [4, 4]


def test_columns_follow_the_runs(tmp_path, address):
    load_run(write_run(tmp_path / "a", rows_of("xy")), address)
    sentence = SCHEMA.field("sentences").type.value_type
    longer = pa.struct([*sentence, pa.field("score", pa.float64(), nullable=False)])
    schema = pa.schema(
        [
            *(SCHEMA.field(name) for name in DEFAULT_KEY),
            SCHEMA.field("split"),
            pa.field("words", pa.int64(), nullable=False),
            pa.field("sentences", pa.list_(pa.field("element", longer))),
            pa.field("author", pa.string(), nullable=False),
            pa.field("seen_at", pa.timestamp("ms", "Europe/Oslo")),
            pa.field("small", pa.uint16()),
            pa.field("kind", pa.dictionary(pa.int8(), pa.string())),
        ]
    )
    row = {
        "document_id": "y",
        "source_file": "news.jsonl",
        "source_position": "0",
        "split": "test",
        "words": 2**40,
        "sentences": [{"text": "y", "rank": 1, "score": 0.5}],
        "author": "Ann",
        "seen_at": 1_700_000_000_000,
        "small": 7,
        "kind": "news",
    }
    load_run(write_run(tmp_path / "b", [row], schema=schema), address)
    table = iceberg_table(address)
    x, y = sorted(table.scan().to_arrow().to_pylist(), key=lambda r: r["document_id"])
    assert (x["author"], x["summary"], x["words"]) == (None, "x by a", 3)
    assert x["sentences"] == [{"text": "x", "rank": 1, "score": None}]
    assert (y["author"], y["summary"], y["words"]) == ("Ann", None, 2**40)
    assert y["sentences"] == row["sentences"]
    assert y["seen_at"].timestamp() == 1_700_000_000
    assert (y["small"], y["kind"]) == (7, "news")
    # The earlier columns come back.
    load_run(write_run(tmp_path / "c", rows_of("yz", "c")), address)
    assert summaries(iceberg_table(address)) == {
        "x": "x by a",
        "y": "y by c",
        "z": "z by c",
    }


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("words", pa.string(), "column 'words' is string in the run and int in the t"),
        ("sentences", pa.string(), "column 'sentences' is string in the run and list<"),
        ("later", pa.null(), "column 'later' is null in the run and not supported"),
    ],
)
def test_types_that_do_not_fit_are_refused(tmp_path, address, name, kind, message):
    load_run(write_run(tmp_path / "a", rows_of("x")), address)
    before = iceberg_table(address).metadata_location
    names = [name, *(other for other in SCHEMA.names if other != name)]
    schema = pa.schema(
        [pa.field(name, kind), *(SCHEMA.field(other) for other in names[1:])]
    )
    rows = rows_of("x", "b", **{name: None})
    run = write_run(tmp_path / "b", rows, schema=schema)
    with pytest.raises(DataError, match=message):
        load_run(run, address)
    assert iceberg_table(address).metadata_location == before


def test_the_key_of_a_table_stays(tmp_path, address):
    load_run(write_run(tmp_path / "a", rows_of("x")), address)
    run = write_run(tmp_path / "b", rows_of("x", "b"))
    with pytest.raises(UsageError, match="source_position, not document_id,split; g"):
        load_run(run, address, key=["document_id", "split"])
    load_run(run, address)
    assert summaries(iceberg_table(address)) == {"x": "x by b"}


def test_a_table_of_others_needs_the_columns_of_the_key(tmp_path, address):
    load_run(write_run(tmp_path / "a", rows_of("x")), address)
    table = iceberg_table(address)
    other = pa.schema([("name", pa.string())])
    table.catalog.create_table("news.other", other)
    with pytest.raises(UsageError, match="news.other has no column 'document_id'"):
        load_run(str(tmp_path / "a"), address.replace("daily", "other"))


def partitioned_run(folder, run_id, splits):
    """A run with a part for each split, as --partition_by split writes them."""
    parts = {
        f"split={split}/part-00000.parquet": rows_of(ids, run_id)
        for split, ids in splits.items()
    }
    schema = SCHEMA.remove(SCHEMA.get_field_index("split"))
    rows = {
        name: [{k: v for k, v in row.items() if k != "split"} for row in part]
        for name, part in parts.items()
    }
    return write_run(folder / run_id, rows, schema=schema)


def test_a_partitioned_run_makes_a_partitioned_table(tmp_path, address):
    splits = {"test": ["x", "y"], "a%20b": ["z"]}
    load_run(partitioned_run(tmp_path, "a", splits), address)
    load_run(partitioned_run(tmp_path, "b", {"test": ["y"]}), address)
    table = iceberg_table(address)
    assert [field.name for field in table.spec().fields] == ["split"]
    tasks = list(table.scan(row_filter="split = 'a b'").plan_files())
    assert [task.file.record_count for task in tasks] == [1]
    rows = table.scan().to_arrow().to_pylist()
    found = {(row["document_id"], row["split"], row["summary"]) for row in rows}
    assert found == {
        ("x", "test", "x by a"),
        ("y", "test", "y by b"),
        ("z", "a b", "z by a"),
    }
    # A run of any layout is cut as the table is.
    mixed = [*rows_of("v", "c"), *rows_of("w", "c", split="train")]
    load_run(write_run(tmp_path / "c", mixed), address)
    assert iceberg_table(address).scan(row_filter="split = 'train'").count() == 1


def test_a_null_is_a_partition(tmp_path, address):
    schema = SCHEMA.append(pa.field("day", pa.date32()))
    rows = {
        "day=2026-01-02/part-0.parquet": rows_of("x", day=20_455),
        "day=__HIVE_DEFAULT_PARTITION__/part-0.parquet": rows_of("y", day=None),
    }
    load_run(write_run(tmp_path / "a", rows, schema=schema), address)
    rows = rows_of("xy", "b", day=None)
    load_run(write_run(tmp_path / "b", rows, schema=schema), address)
    table = iceberg_table(address)
    assert table.scan(row_filter="day is null").count() == 2
    assert summaries(table) == {"x": "x by b", "y": "y by b"}


def test_a_table_that_is_cut_by_a_function_of_a_column_is_refused(tmp_path, address):
    from pyiceberg.transforms import BucketTransform

    load_run(write_run(tmp_path / "a", rows_of("x")), address)
    with iceberg_table(address).update_spec() as update:
        update.add_field("document_id", BucketTransform(4), "bucket")
    run = write_run(tmp_path / "b", rows_of("y"))
    with pytest.raises(UsageError, match=r"bucket\[4\] of 'document_id', and rows are"):
        load_run(run, address)


def test_many_batches_make_few_row_groups(tmp_path, address, monkeypatch):
    from precis.pipelines.warehouse import finished_run, iceberg_files

    monkeypatch.setattr(finished_run, "_BATCH_ROWS", 3)
    monkeypatch.setattr(iceberg_files, "_BATCH_ROWS", 3)
    monkeypatch.setattr(iceberg_files, "_BUFFERED_BYTES", 1000)
    ids = [f"d{number:03}" for number in range(100)]
    load_run(write_run(tmp_path / "a", rows_of(ids)), address)
    load_run(write_run(tmp_path / "b", rows_of(ids[::2], "b")), address)
    table = iceberg_table(address)
    expected = {name: f"{name} by a" for name in ids}
    expected.update({name: f"{name} by b" for name in ids[::2]})
    assert summaries(table) == expected
    (path,) = data_files(table)
    groups = pq.ParquetFile(path.removeprefix("file://")).num_row_groups
    assert 2 < groups < 30


def test_a_file_ends_at_the_size_that_the_table_says(tmp_path, address):
    load_run(write_run(tmp_path / "a", rows_of("x")), address)
    table = iceberg_table(address)
    with table.transaction() as transaction:
        transaction.set_properties({"write.target-file-size-bytes": "1"})
    parts = {f"part-{name}.parquet": rows_of(name, "b") for name in "xyz"}
    load_run(write_run(tmp_path / "b", parts), address)
    assert summaries(iceberg_table(address))["z"] == "z by b"
    assert data_files(iceberg_table(address)) < files_on_disk(tmp_path)
