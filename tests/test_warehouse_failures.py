"""Tests of loads that are refused, interrupted or disturbed by other writers."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.utils.config import Config
from support.warehouse_runs import (
    SCHEMA,
    data_files,
    files_on_disk,
    iceberg_table,
    rows_of,
    summaries,
    write_run,
)

from precis.model.errors import DataError, JobError, UsageError
from precis.pipelines.options.table_address import CATALOG_FILE, read_address
from precis.pipelines.warehouse import iceberg
from precis.pipelines.warehouse.iceberg_files import DataFileWriter
from precis.pipelines.warehouse.load_run import check_table, load_run

PART = "part-00000-of-00001.parquet"


@pytest.fixture
def address(tmp_path) -> str:
    return f"iceberg+sqlite://{tmp_path}/warehouse/news.daily"


class Killed(BaseException):
    """The end of a process, which no `except Exception` sees."""


def is_file(path) -> bool:
    return Path(path).exists()


@pytest.mark.parametrize(
    ("owner", "step", "is_first"),
    [
        (DataFileWriter, "write", False),
        (DataFileWriter, "close", True),
        (SqlCatalog, "commit_table", True),
        (SqlCatalog, "commit_table", False),
        (SqlCatalog, "_write_metadata", False),
    ],
)
def test_a_killed_load_leaves_the_table_as_it_was(
    tmp_path, address, monkeypatch, owner, step, is_first
):
    if not is_first:
        load_run(write_run(tmp_path / "a", rows_of("xy")), address)

    def end(*_, **__):
        raise Killed

    run = write_run(tmp_path / "b", rows_of("yz", "b"))
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, end)
        patch.setattr(DataFileWriter, "discard", lambda self: None)
        with pytest.raises(Killed):
            load_run(run, address)
    if is_first:
        with pytest.raises(Exception, match="news.daily"):
            iceberg_table(address)
    else:
        assert summaries(iceberg_table(address)) == {"x": "x by a", "y": "y by a"}
    assert not load_run(run, address).was_noop
    expected = {} if is_first else {"x": "x by a"}
    expected |= {"y": "y by b", "z": "z by b"}
    table = iceberg_table(address)
    assert summaries(table) == expected
    assert len(table.snapshots()) == 2 - is_first


def test_a_load_that_fails_removes_its_files(tmp_path, address, monkeypatch):
    load_run(write_run(tmp_path / "a", rows_of("xy")), address)
    run = write_run(tmp_path / "b", rows_of("yz", "b"))
    monkeypatch.setattr(
        "precis.pipelines.warehouse.iceberg_files.parquet_file_to_data_file",
        lambda *_: 1 / 0,
    )
    with pytest.raises(ZeroDivisionError):
        load_run(run, address)
    table = iceberg_table(address)
    assert files_on_disk(tmp_path) == data_files(table)


def test_a_load_of_another_process_is_merged_with(tmp_path, address, monkeypatch):
    """The other load brings a key of this one between its plan and its commit."""
    load_run(write_run(tmp_path / "a", rows_of("xy")), address)
    other = write_run(tmp_path / "b", rows_of("yz", "b"))
    run = write_run(tmp_path / "c", rows_of("zv", "c"))
    stage = iceberg._stage
    disturbed = []

    def disturb(*arguments):
        if not disturbed:
            disturbed.append(True)
            load_run(other, address)
        return stage(*arguments)

    monkeypatch.setattr(iceberg, "_stage", disturb)
    result = load_run(run, address)
    assert (result.rows, result.replaced) == (2, 1)
    table = iceberg_table(address)
    assert summaries(table) == {
        "x": "x by a",
        "y": "y by b",
        "z": "z by c",
        "v": "v by c",
    }
    assert files_on_disk(tmp_path) >= data_files(table)


def test_two_first_loads_at_the_same_time(tmp_path, address, monkeypatch):
    run = write_run(tmp_path / "a", rows_of("xy"))
    commit = iceberg._commit

    def load_beside(*arguments):
        monkeypatch.setattr(iceberg, "_commit", commit)
        load_run(run, address)
        return commit(*arguments)

    monkeypatch.setattr(iceberg, "_commit", load_beside)
    assert load_run(run, address).was_noop
    table = iceberg_table(address)
    assert table.scan().count() == 2
    assert files_on_disk(tmp_path) == data_files(table)


def test_writers_that_always_come_first_are_reported(tmp_path, address, monkeypatch):
    load_run(write_run(tmp_path / "a", rows_of("xy")), address)
    commit = iceberg._commit
    attempts = []
    monkeypatch.setattr(iceberg, "_ATTEMPTS", 2)

    def come_first(*arguments):
        attempts.append(True)
        table = iceberg_table(address)
        table.append(table.scan().to_arrow().slice(0, 1))
        return commit(*arguments)

    monkeypatch.setattr(iceberg, "_commit", come_first)
    run = write_run(tmp_path / "b", rows_of("yz", "b"))
    message = "other writers changed news.daily during each of 2 attempts, and nothing"
    with pytest.raises(JobError, match=message):
        load_run(run, address)
    assert len(attempts) == 2
    table = iceberg_table(address)
    assert files_on_disk(tmp_path) == data_files(table)


def test_a_commit_without_an_answer_is_no_second_load(tmp_path, address, monkeypatch):
    load_run(write_run(tmp_path / "a", rows_of("xy")), address)
    run = write_run(tmp_path / "b", rows_of("yz", "b"))
    commit_table = SqlCatalog.commit_table

    def lose_answer(*arguments):
        commit_table(*arguments)
        raise TimeoutError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(SqlCatalog, "commit_table", lose_answer)
        with pytest.raises(
            JobError, match="which may have arrived .TimeoutError: no a"
        ):
            load_run(run, address)
    assert load_run(run, address).was_noop
    assert summaries(iceberg_table(address))["y"] == "y by b"


@pytest.mark.parametrize(
    ("rows", "key", "error", "message"),
    [
        (
            rows_of("xyx"),
            "document_id",
            DataError,
            "document_id 'x' is the key of more",
        ),
        (
            rows_of("xyx"),
            "document_id",
            DataError,
            "--on_duplicate_id fail",
        ),
        (
            rows_of("x"),
            "document_id,day",
            UsageError,
            "has no column 'day'; it has doc",
        ),
        (rows_of("x"), "sentences", UsageError, "'sentences' is list<.*a key is made"),
        (rows_of("x", author=None), "author", DataError, "'author' of the key is null"),
    ],
)
def test_keys_that_do_not_tell_rows_apart_are_refused(
    tmp_path, address, rows, key, error, message
):
    schema = SCHEMA.append(pa.field("author", pa.string()))
    run = write_run(tmp_path / "a", rows, schema=schema)
    with pytest.raises(error, match=message):
        load_run(run, address, key=key.split(","))
    assert not files_on_disk(tmp_path)


def test_an_empty_key_is_refused(tmp_path, address):
    with pytest.raises(UsageError, match="--table_key is empty; name the columns"):
        load_run(write_run(tmp_path / "a", rows_of("x")), address, key=[])


def test_any_columns_make_a_key(tmp_path, address):
    load_run(
        write_run(tmp_path / "a", rows_of("xy")), address, key=["words", "summary"]
    )
    rows = [*rows_of("x"), *rows_of("y", words=4)]
    run = write_run(tmp_path / "b", rows)
    assert load_run(run, address, key=["words", "summary"]).replaced == 1
    assert iceberg_table(address).scan().count() == 3


def test_a_run_without_rows_changes_nothing(tmp_path, address):
    result = load_run(write_run(tmp_path / "a", {}), address)
    assert (result.rows, result.was_noop) == (0, True)
    assert not is_file(tmp_path / "warehouse")


def damage(run, change):
    """Changes the manifest of a run."""
    path = Path(run) / "manifest.json"
    manifest = json.loads(path.read_bytes())
    change(manifest)
    path.write_text(json.dumps(manifest))


def test_runs_that_are_not_finished_are_refused(tmp_path, address):
    run = write_run(tmp_path / "a", rows_of("x"))
    (tmp_path / "a" / "_SUCCESS").unlink()
    with pytest.raises(UsageError, match="a run that is not finished: _SUCCESS is not"):
        load_run(run, address)
    with pytest.raises(
        UsageError, match="elsewhere holds no run: manifest.json is not"
    ):
        load_run(str(tmp_path / "elsewhere"), address)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda manifest: manifest.pop("run_id"),
            "is damaged or no manifest of a run ",
        ),
        (lambda manifest: manifest.update(files=[1]), "is damaged or no manifest of a"),
        (
            lambda manifest: manifest["files"][0].update(file="../x"),
            "it names the file '../x', which",
        ),
        (
            lambda manifest: manifest["files"][0].update(rows=3),
            "has 2 rows and the mani",
        ),
        (
            lambda manifest: manifest["files"][0].update(sha256="0"),
            "is not the file tha",
        ),
        (lambda manifest: manifest["files"][0].update(file="x"), "x cannot be read: "),
    ],
)
def test_damaged_runs_are_refused(tmp_path, address, change, message):
    run = write_run(tmp_path / "a", rows_of("xy"))
    damage(run, change)
    with pytest.raises(DataError, match=message):
        load_run(run, address)


def test_a_manifest_that_is_not_that_of_success_is_refused(tmp_path, address):
    run = write_run(tmp_path / "a", rows_of("x"))
    (tmp_path / "a" / "_SUCCESS").write_text(f"fingerprint\n{'0' * 64}\n")
    message = "manifest.json: was changed: .*; run the same `precis summarize` again"
    with pytest.raises(DataError, match=message):
        load_run(run, address)
    assert not is_file(tmp_path / "warehouse")


def test_a_damaged_part_is_named(tmp_path, address):
    run = write_run(tmp_path / "a", rows_of("xy"))
    path = tmp_path / "a" / PART
    content = bytearray(path.read_bytes())
    content[10] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=f"{PART} is not the file that the run wrote"):
        load_run(run, address)


def test_parts_of_several_schemas_are_refused(tmp_path, address):
    write_run(
        tmp_path / "b",
        {"part-1.parquet": [{"x": 1}]},
        schema=pa.schema({"x": pa.int32()}),
    )
    run = write_run(tmp_path / "a", {"part-0.parquet": rows_of("x")})
    other = json.loads((tmp_path / "b" / "manifest.json").read_bytes())["files"]
    (tmp_path / "b" / "part-1.parquet").rename(tmp_path / "a" / "part-1.parquet")
    damage(run, lambda manifest: manifest["files"].extend(other))
    with pytest.raises(
        DataError, match="part-1.parquet has other columns than .*part-0"
    ):
        load_run(run, address)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "news.daily",
            "'news.daily' names no table; it is iceberg://CATALOG/NAMESPACE",
        ),
        ("hive://a/b.c", "'hive://a/b.c' names no table"),
        ("iceberg://prod", "is incomplete; it is iceberg://CATALOG/NAMESPACE.TABLE"),
        (
            "iceberg://prod/daily",
            "is incomplete; it is iceberg://CATALOG/NAMESPACE.TAB",
        ),
        ("iceberg+sqlite:///w/n.", "it is iceberg.sqlite://FOLDER/NAMESPACE.TABLE"),
        ("delta://", "has no folder, as in delta://FOLDER"),
    ],
)
def test_addresses_that_name_no_table_are_refused(text, message):
    with pytest.raises(UsageError, match=message):
        read_address(text)


def test_addresses_are_read():
    assert read_address("iceberg://prod/a.b.c") == ("iceberg", "prod", "a.b.c")
    local = read_address("iceberg+sqlite:///data/wh/news.daily")
    assert local == ("iceberg+sqlite", "/data/wh", "news.daily")
    assert read_address("delta://some/where") == ("delta", "some/where", "")


def test_a_catalogue_is_found_in_the_configuration(tmp_path, monkeypatch):
    folder = tmp_path / "wh"
    folder.mkdir()
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", f"sqlite:///{folder}/c.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__WAREHOUSE", f"file://{folder}")
    # pyiceberg reads the environment when it is imported.
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    run = write_run(tmp_path / "a", rows_of("xy"))
    assert load_run(run, "iceberg://prod/news.daily").rows == 2
    assert load_run(run, "iceberg://prod/news.daily").was_noop
    with pytest.raises(UsageError, match="takes no table 'eu.news.daily': .*hierarchi"):
        load_run(run, "iceberg://prod/eu.news.daily")
    message = "'other' cannot be opened: .*PYICEBERG_CATALOG__OTHER__URI, or name a fol"
    with pytest.raises(UsageError, match=message):
        load_run(run, "iceberg://other/news.daily")


def test_a_catalogue_that_cannot_be_written_is_named(tmp_path, address):
    folder = tmp_path / "warehouse"
    (folder / CATALOG_FILE).mkdir(parents=True)
    with pytest.raises(UsageError, match=f"{folder} cannot be written: unable to open"):
        load_run(write_run(tmp_path / "a", rows_of("xy")), address)


def test_renamed_columns_are_refused(tmp_path, address):
    load_run(write_run(tmp_path / "a", rows_of("xy")), address)
    with iceberg_table(address).update_schema() as update:
        update.rename_column("summary", "text")
    run = write_run(tmp_path / "b", rows_of("y", "b"))
    with pytest.raises(
        UsageError, match="column 'summary' of .* is 'text' now; rewrite"
    ):
        load_run(run, address)


def test_removed_columns_are_refused(tmp_path, address):
    load_run(write_run(tmp_path / "a", rows_of("xy")), address)
    with iceberg_table(address).update_schema(
        allow_incompatible_changes=True
    ) as update:
        update.delete_column("words")
    run = write_run(tmp_path / "b", rows_of("y", "b"))
    with pytest.raises(UsageError, match="'words' of .* is not in the table any more"):
        load_run(run, address)


def test_a_type_that_iceberg_does_not_have_is_refused(tmp_path, address):
    schema = SCHEMA.append(pa.field("later", pa.duration("s")))
    run = write_run(tmp_path / "a", rows_of("x", later=None), schema=schema)
    with pytest.raises(
        DataError, match="column 'later' is duration.s., which Iceberg tables d"
    ):
        load_run(run, address)


def test_a_table_is_checked_before_a_run_begins(tmp_path, address):
    check_table(address)
    check_table(f"delta://{tmp_path}/table")
    assert not files_on_disk(tmp_path) and not is_file(tmp_path / "table")
    with pytest.raises(UsageError, match="the catalogue 'nowhere' cannot be opened"):
        check_table("iceberg://nowhere/news.daily")
