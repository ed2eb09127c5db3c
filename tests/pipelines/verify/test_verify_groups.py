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
    ("change", "counts", "expected"),
    [
        (
            lambda rows: rows[1].update(members=2),
            {"members": 8},
            [
                "manifest.json: members of groups: 9, but the files have 8",
                "PART, row 1: members is 2, but the documents with a row are 3",
            ],
        ),
        (
            lambda rows: rows.pop(0),
            {},
            [
                "manifest.json: groups of groups: 3, but the files have 2",
                "manifest.json: members of groups: 9, but the files have 6",
                "groups, null: a group has no row",
            ],
        ),
        (
            lambda rows: rows[2].update(group_id="a"),
            {},
            ["PART, row 2: its group has another row", "groups, b: a group has no row"],
        ),
        (
            lambda rows: rows[0]["sentences"][0].update(start=1),
            {},
            ["PART, row 0: a sentence is not in the row of its document"],
        ),
        (
            lambda rows: rows[0]["sentences"][0].update(document_id="d1"),
            {},
            ["PART, row 0: a sentence is not in the row of its document"],
        ),
        (
            lambda rows: rows[2].update(summary=rows[2]["summary"] + "\nMore."),
            {},
            ["PART, row 2: its summary does not have one line per sentence"],
        ),
        (
            lambda rows: rows[1].update(run_id="0" * 16),
            {},
            ["PART, row 1: run_id differs from the manifest"],
        ),
    ],
)
def test_wrong_rows_are_named(run, change, counts, expected):
    lines = edit(run, change, counts)
    assert {*expected} <= {*lines}
