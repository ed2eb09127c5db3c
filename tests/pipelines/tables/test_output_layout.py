"""Tests of where the rows of a run lie: partitions, sizes, footers, flat columns."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.command_line import write_jsonl
from support.incremental_runs import without_run
from support.summarize_runs import manifest_of, story

from precis.model.errors import UsageError
from precis.pipelines.summarize.summarize import summarize
from precis.pipelines.tables.finished_run import open_run
from precis.pipelines.tables.partitions import HIVE_NULL
from precis.pipelines.tables.schema import SUMMARY_SCHEMA
from precis.pipelines.verify.digest import digest

SECTIONS = ["a/b", "Zürich ", None, "a/b", "100% = $1?", "", "a/b", "x"]
STORIES = [
    story(
        index,
        split=("train", "test")[index % 2],
        section=section,
        day=f"2026-01-{index % 3 + 1:02}",
        page=index % 2,
        is_news=index > 3,
    )
    for index, section in enumerate(SECTIONS)
]
# A text that stands twice, in two partitions.
STORIES.append({**STORIES[0], "id": "again", "section": "y", "split": "test"})
NAMES = "split", "section", "day", "page", "is_news"


@pytest.fixture(scope="module")
def flags(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stories")
    corpus = write_jsonl(folder / "news.jsonl", STORIES)
    kept = "section,day:date,page:int64,is_news:bool"
    flags = {"task_bytes": 4_000, "deduplicate": True, "keep_fields": kept}
    return {"corpus": corpus, "split_field": "split", **flags}


@pytest.fixture(scope="module")
def runs(flags, tmp_path_factory):
    """The same rows in one folder, in partitions, and flat in partitions."""
    folder = tmp_path_factory.mktemp("runs")
    layouts = {
        "plain": {},
        "partitioned": {"partition_by": ",".join(NAMES)},
        # In one task, where a null and an empty text have one folder.
        "flat": {"partition_by": ["section"], "flat": True, "task_bytes": 1 << 20},
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        for name, layout in layouts.items():
            summarize(output=folder / name, **{**flags, **layout})
    return {name: folder / name for name in layouts}


def rows_of(run: Path):
    """The rows with nested columns, by document, without their run."""
    rows = [row for table in open_run(str(run)).tables() for row in table.to_pylist()]
    for row in rows:
        del row["run_id"]
    return sorted(rows, key=lambda row: row["document_id"])


def test_partitions_hold_the_rows_that_their_folders_say(runs):
    run, manifest = runs["partitioned"], manifest_of(runs["partitioned"])
    types = "string", "string", "date32[day]", "int64", "bool"
    assert manifest["partition_by"] == dict(zip(NAMES, types, strict=True))
    first = "split=train/section=a%2Fb/day=2026-01-01/page=0/"
    names = {Path(file["file"]).parent.as_posix() for file in manifest["files"]}
    assert f"data/{first}is_news=false" in names
    assert any("/section=100%25 %3D $1%3F/" in name for name in names)  # as Hive
    assert len(names) == len(manifest["files"]) == 9
    # A null, and an empty text.
    (_, null) = sorted(name for name in names if f"section={HIVE_NULL}/" in name)
    for file in manifest["files"]:
        assert not {*file["partition"]} & {*pq.read_schema(run / file["file"]).names}
        if file["file"].startswith(null):
            values = "train", None, "2026-01-03", 0, False
            assert file["partition"] == dict(zip(NAMES, values, strict=True))


def test_a_partitioned_and_a_flat_run_have_the_same_rows(runs):
    plain = rows_of(runs["plain"])
    assert [row["document_id"] for row in plain if row["duplicate_of"]] == ["again"]
    assert [row["section"] for row in plain] == ["y", *SECTIONS]
    for name in ("partitioned", "flat"):
        assert rows_of(runs[name]) == plain
    # A column of the folders alone is also a column of the run.
    assert digest(run=runs["flat"]) == digest(run=runs["plain"])
    run = open_run(str(runs["partitioned"]))
    assert run.partition_columns == [*NAMES]
    assert run.schema.field("day").type == pa.date32()
    described = SUMMARY_SCHEMA.field("summary").metadata
    assert run.schema.field("summary").metadata == described
    rows = pa.Table.from_batches(run.batches()).to_pylist()
    found = {row["document_id"]: row | {"day": str(row["day"])} for row in rows}
    for given in STORIES:
        row = found[given["id"]]
        assert all(row[name] == given[name] for name in ("section", "day", "is_news"))


@pytest.mark.parametrize("name", ["partitioned", "flat"])
def test_every_row_of_a_layout_is_reused(runs, name, flags, tmp_path):
    manifest = summarize(output=tmp_path / "run", **flags, reuse=runs[name])
    counts = manifest["counts"]
    assert (counts["written"], counts["reused"], counts["duplicates"]) == (0, 8, 1)
    assert without_run(rows_of(tmp_path / "run")) == without_run(rows_of(runs["plain"]))
    assert digest(run=tmp_path / "run") == digest(run=runs["plain"])


def test_impossible_partitions_are_refused(tmp_path):
    corpus = write_jsonl(tmp_path / "news.jsonl", [story(0, score=0.5)])
    flags = {"corpus": corpus, "keep_fields": "score:double"}
    for name, message in (
        ("author", "author: no such column; possible are "),
        ("score", "score: the column is double; name a column of strings, "),
    ):
        with pytest.raises(UsageError, match=message):
            summarize(output=tmp_path / "run", partition_by=name, **flags)
    assert not (tmp_path / "run").exists()
