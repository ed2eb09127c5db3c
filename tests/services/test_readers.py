"""polars reads every value of a run, however its files lie."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from support.command_line import exit_code, write_jsonl
from support.loader_runs import by_document
from support.summarize_runs import story

pytestmark = pytest.mark.services
LAYOUTS = {
    "nested": (),
    "partitioned": ("--partition_by", "section"),
    "flat": ("--flat",),
}
# None of them is a number, which a reader could take for one.
SECTIONS = ("a/b", "Zürich", "100% sure?", "x y")


def write_layout(folder: Path, layout: str) -> str:
    """Summarizes stories with a kept field in a layout; returns the run."""
    records = [
        story(number, section=SECTIONS[number % 4], emoji=f"\U0001f642 \\ '{number}'\n")
        for number in range(12)
    ]
    corpus = write_jsonl(folder / "news.jsonl", records)
    run = str(folder / layout)
    flags = ("--keep_fields", "section,emoji", "--output", run, *LAYOUTS[layout])
    assert exit_code("summarize", "--corpus", corpus, *flags) == 0
    return run


def rows_of_run(run: str) -> dict[str, dict[str, Any]]:
    """The rows by document; columns of folders have the values of the manifest."""
    manifest = json.loads((Path(run) / "manifest.json").read_text())
    found = {}
    for entry in manifest["files"]:
        values = entry.get("partition", {})
        for row in pq.ParquetFile(Path(run) / entry["file"]).read().to_pylist():
            found[row["document_id"]] = row | values
    assert len(found) == 12
    return found


@pytest.fixture(scope="module", params=LAYOUTS)
def run(request, tmp_path_factory):
    return write_layout(tmp_path_factory.mktemp("runs"), request.param)


def test_polars_reads_every_value(run):
    frame = pl.read_parquet(
        f"{run}/data/**/*.parquet", hive_partitioning=True, try_parse_hive_dates=True
    )
    assert by_document(frame.to_dicts()) == rows_of_run(run)
