"""Tests of `precis verify` on rows of groups: every damage is named."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.command_line import write_jsonl
from support.damaged_results import edit_description, findings

from precis.pipelines.run.result_files import describe_file
from precis.pipelines.summarize.summarize import summarize

TEXT = "Rain fell on {0} Street. Nobody came to it, {0} times. It was cold at {0}."


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    lines = [
        {"id": f"d{n}", "article": TEXT.format(n), "topic": (None, "a", "b")[n % 3]}
        for n in range(9)
    ]
    corpus = write_jsonl(folder / "corpus.jsonl", lines)
    flags = {"corpus": corpus, "output": folder / "run", "group_by": "topic"}
    summarize(**flags, min_source_words=0)
    assert findings(folder / "run") == []
    return folder / "run"


@pytest.fixture
def run(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "run")


def edit(run, change, counts=None):
    """Changes the rows of groups, and the manifest as if they had been written so."""
    (path,) = run.glob("groups/*.parquet")
    table = pq.read_table(path)
    rows = table.to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, table.schema), path)
    entry = describe_file(str(run), f"groups/{path.name}", rows=len(rows))
    listed = json.loads((run / "manifest.json").read_bytes())["groups"]["counts"]
    listed |= counts or {}
    edit_description(
        run / "manifest.json",
        lambda manifest: manifest["groups"].update(files=[entry], counts=listed),
    )
    return [each.replace(entry["file"], "PART") for each in findings(run)]


def test_a_damaged_or_missing_file_is_named_once(run):
    (path,) = run.glob("groups/*.parquet")
    content = path.read_bytes()
    path.write_bytes(content[:-1] + b"?")
    (line,) = findings(run)
    assert line.startswith(f"groups/{path.name}: was changed after it was written")
    path.unlink()
    assert findings(run) == [f"groups/{path.name}: is missing"]


@pytest.mark.parametrize(
    ("row", "column", "value", "line"),
    [
        (0, "start", 1, "a sentence is not in the row of its document"),
        (0, "document_id", "d1", "a sentence is not in the row of its document"),
        (
            2,
            "summary",
            "A.\nB.\nC.\nD.",
            "its summary does not have one line per sentence",
        ),
        (1, "run_id", "0" * 16, "run_id differs from the manifest"),
        (1, "members", 2, "members is 2, but the documents with a row are 3"),
        (2, "group_id", "a", "its group has another row"),
    ],
)
def test_wrong_values_are_named(run, row, column, value, line):
    def change(rows):
        changed = rows[row] if column in rows[row] else rows[row]["sentences"][0]
        changed[column] = value

    lines = edit(run, change, {"members": 8} if column == "members" else {})
    assert any(each.startswith(f"PART, row {row}: {line}") for each in lines)
    counted = "manifest.json: members of groups: 9, but the files have 8"
    assert (counted in lines) == (column == "members")
    assert ("groups, b: a group has no row" in lines) == (column == "group_id")


def test_a_missing_row_is_named(run):
    assert {
        "manifest.json: groups of groups: 3, but the files have 2",
        "manifest.json: members of groups: 9, but the files have 6",
        "groups, null: a group has no row",
    } <= {*edit(run, lambda rows: rows.pop(0))}
