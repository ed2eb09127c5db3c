"""Tests of loading runs into Delta tables."""

import json

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from support.warehouse_runs import SCHEMA, load_run, rows_of, write_run

from precis.model.errors import DataError, JobError


@pytest.fixture
def address(tmp_path) -> str:
    return f"delta://{tmp_path}/table"


def table_of(address):
    return DeltaTable(address.removeprefix("delta://"))


def rows_in(address):
    """The rows by document, read by DuckDB from the files of the present version."""
    read = duckdb.read_parquet(table_of(address).file_uris(), union_by_name=True)
    rows = read.to_arrow_table().to_pylist()
    assert len({row["document_id"] for row in rows}) == len(rows)
    return {row["document_id"]: row for row in rows}


def test_runs_are_merged_by_their_key_and_loaded_once(tmp_path, address):
    first = write_run(tmp_path / "a", rows_of("xy"))
    result = load_run(first, address)
    assert (result.rows, result.replaced, result.version) == (2, 0, "0")
    result = load_run(write_run(tmp_path / "b", rows_of("yz", "b")), address)
    assert (result.rows, result.replaced, result.version) == (2, 1, "1")
    again = load_run(first, address)
    assert (again.was_noop, again.version) == (True, "1")
    rows = rows_in(address)
    found = {name: row["summary"] for name, row in rows.items()}
    assert found == {"x": "x by a", "y": "y by b", "z": "z by b"}
    assert rows["x"]["sentences"] == [{"text": "x", "rank": 1}]
    (latest, _) = table_of(address).history()
    assert latest["precis.run_id"] == "b"
    # A load is also known when the log is gone.
    table_of(address).create_checkpoint()
    for number in (0, 1):
        (tmp_path / "table" / "_delta_log" / f"{number:020}.json").unlink()
    assert load_run(first, address).was_noop


def test_columns_follow_the_runs_and_those_that_a_run_lacks_stay(tmp_path, address):
    load_run(write_run(tmp_path / "a", rows_of("xy")), address)
    schema = SCHEMA.append(pa.field("author", pa.string()))
    run = write_run(tmp_path / "b", rows_of("y", "b", author="Ann"), schema=schema)
    load_run(run, address)
    table = table_of(address)
    table.alter.add_columns([Field("note", "string")])
    table.update(updates={"note": "'read'"})
    load_run(write_run(tmp_path / "c", rows_of("yz", "c")), address)
    names = ("summary", "author", "note")
    rows = rows_in(address).items()
    assert {key: tuple(row[name] for name in names) for key, row in rows} == {
        "x": ("x by a", None, "read"),
        "y": ("y by c", "Ann", "read"),
        "z": ("z by c", None, None),
    }


@pytest.mark.parametrize("is_strict", [False, True])
def test_later_runs_bring_nulls_and_fields(tmp_path, address, is_strict):
    if is_strict:  # A table in which no column may be null.
        rows = pa.Table.from_pylist(rows_of("xyz"), schema=SCHEMA)
        write_deltalake(address.removeprefix("delta://"), rows)
    else:
        load_run(write_run(tmp_path / "a", rows_of("xyz")), address)
    rank = pa.field("rank", pa.int32())
    sentence = pa.struct([pa.field("text", pa.string(), nullable=False), rank])
    added = pa.field("score", pa.float64(), nullable=False)
    for run_id, item in (("b", sentence), ("c", pa.struct([*sentence, added]))):
        kind = pa.list_(pa.field("element", item))
        # Later versions may describe a column in other words.
        words = {"description": f"by {run_id}"}
        changed = [
            pa.field("words", pa.int32()),
            pa.field("sentences", kind, metadata=words),
        ]
        sentences = [{"text": "y", "rank": None, "score": 0.5}, None]
        rows = rows_of("y", run_id, words=None, sentences=sentences)
        rows += rows_of("w", run_id, sentences=None)
        schema = pa.schema([*list(SCHEMA)[:-2], *changed])
        load_run(write_run(tmp_path / run_id, rows, schema=schema), address)
    # An earlier run, without the new field.
    load_run(write_run(tmp_path / "d", rows_of("z", "d")), address)
    rows = rows_in(address)
    by = {name: row["summary"][-1] for name, row in rows.items()}
    assert by == {"x": "a", "y": "c", "z": "d", "w": "c"}
    for name in "xz":  # delta-rs would make the lists of rows that stay null.
        assert rows[name]["sentences"] == [{"text": name, "rank": 1, "score": None}]
    assert (rows["y"]["words"], rows["y"]["sentences"]) == (None, sentences)
    assert (rows["w"]["words"], rows["w"]["sentences"]) == (3, None)
    fields = {field.name: field for field in table_of(address).schema().fields}
    required = {name for name, field in fields.items() if not field.nullable}
    assert required == {"document_id", "source_file", "source_position"}
    shown = fields["summary"].metadata["description"]
    assert shown.startswith("the text to show")


RANKED = pa.list_(pa.struct({"text": pa.string(), "rank": pa.int64()}))


def test_types_that_do_not_fit_are_refused(tmp_path, address):
    load_run(write_run(tmp_path / "a", rows_of("xy")), address)
    for name, kind, message in (
        ("words", pa.list_(pa.string()), "column 'words' is array in the run, but int"),
        ("words", pa.duration("s"), ".*Duration.s."),
        ("sentences", pa.list_(pa.int32()), ".*incompatible types: struct.*int32"),
        ("sentences", RANKED, ".*Cannot merge types integer and long"),
    ):
        schema = SCHEMA.set(SCHEMA.get_field_index(name), pa.field(name, kind))
        run = write_run(tmp_path / "b", rows_of("y", **{name: None}), schema=schema)
        message = f"the run does not fit into .*/table: {message}.*; l"
        with pytest.raises(DataError, match=message):
            load_run(run, address)
        assert table_of(address).version() == 0


@pytest.mark.parametrize(
    ("features", "properties", "message"),
    [
        ([], {"delta.appendOnly": "true"}, "Delta table is append-only"),
        (["clustering", "domainMetadata"], {}, ".*features required: .*ClusteredTable"),
        (["rowTracking"], {}, ".*features required: .RowTracking"),
        (["allowColumnDefaults"], {}, ".*features required: .AllowColumnDefaults"),
        (["identityColumns"], {}, ".*features required: .IdentityColumns"),
        (["checkConstraints"], {"delta.constraints.c": "words < 3"}, ".*1 rows failed"),
    ],
)
def test_tables_that_delta_rs_does_not_write_are_refused(
    tmp_path, address, features, properties, message
):
    load_run(write_run(tmp_path / "a", rows_of("xy", words=1)), address)
    log = tmp_path / "table" / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:  # As Spark writes them.
        action.get("metaData", {}).get("configuration", {}).update(properties)
        if "protocol" in action:
            reserved = ["appendOnly", "invariants"]
            action["protocol"] = {"minReaderVersion": 1, "minWriterVersion": 7}
            action["protocol"]["writerFeatures"] = [*reserved, *features]
    log.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
    schema = SCHEMA.append(pa.field("author", pa.string()))
    run = write_run(tmp_path / "b", rows_of("y", "b", author="Ann"), schema=schema)
    with pytest.raises(DataError, match=f"does not fit into .*table: .*{message}"):
        load_run(run, address)
    assert rows_in(address)["y"]["summary"] == "y by a"


def test_another_writer_is_reported(tmp_path, address, monkeypatch):
    load_run(write_run(tmp_path / "a", rows_of("xy")), address)
    run, merge = write_run(tmp_path / "c", rows_of("y", "c")), DeltaTable.merge

    def merge_late(*arguments, **flags):
        monkeypatch.undo()
        load_run(write_run(tmp_path / "b", rows_of("y", "b")), address)
        return merge(*arguments, **flags)

    monkeypatch.setattr(DeltaTable, "merge", merge_late)
    with pytest.raises(JobError, match="another writer changed .*; run the same"):
        load_run(run, address)
    assert rows_in(address)["y"]["summary"] == "y by b"
    assert load_run(run, address).replaced == 1


def test_partitions_are_of_the_run_and_have_no_empty_text(tmp_path, address):
    parts = {
        "split=test/part-0.parquet": rows_of("x"),
        "split=/part-0.parquet": rows_of("y", split=""),
    }
    refused = "table: 'split' is empty in a row, but a partition"
    run = write_run(tmp_path / "b", parts)
    with pytest.raises(DataError, match=refused):
        load_run(run, address)
    first, *_ = parts.items()
    load_run(write_run(tmp_path / "a", dict([first])), address)
    assert table_of(address).metadata().partition_columns == ["split"]
    run = write_run(tmp_path / "c", sum(parts.values(), []))
    with pytest.raises(DataError, match=refused):
        load_run(run, address)
