"""Other readers read every value of a run, however its files lie."""

import contextlib
import json
import tempfile
from pathlib import Path
from typing import Any

import chdb
import duckdb
import polars as pl
import pyarrow
import pyarrow.dataset
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


READERS = ("pyarrow", "pandas", "polars", "daft", "spark", "DuckDB", "ClickHouse")
# Texts that are numbers for a reader that guesses, and texts that are escaped.
VALUES = (("007", "7", None), ("a/b", "100% sü?", "x y+z", "1.50", "it's #1:{=}", None))


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


@pytest.fixture(scope="module", params=VALUES, ids=["numbers", "escapes"])
def sections(request, tmp_path_factory):
    """A partitioned run, and its sections by document."""
    folder = tmp_path_factory.mktemp("sections")
    records = [story(place, section=each) for place, each in enumerate(request.param)]
    corpus = write_jsonl(folder / "news.jsonl", records)
    flags = ("--keep_fields", "section:string", "--partition_by", "section")
    run = ("--output", str(folder / "run"))
    assert exit_code("summarize", "--corpus", corpus, *run, *flags) == 0
    return folder / "run", {each["id"]: each["section"] for each in records}


def lines_of(reader: str, folder: str) -> list[str]:
    """The statements of docs/RESULTS.md for a reader, which read a folder."""
    page = (Path(__file__).parents[2] / "docs" / "RESULTS.md").read_text("utf-8")
    block = page[page.index("    hive = ") :].replace("\n      ", " ")
    block = block.replace("summaries/data", folder)
    lines = [line.strip() for line in block.splitlines()]
    return [line for line in lines if line.startswith(reader) or reader in line[-12:]]


def read_python(reader: str, lines: list[str]) -> Any:
    """The rows that the last line gives, as a table of Arrow or a frame."""
    with contextlib.ExitStack() as stack:
        names: dict[str, Any] = {"pyarrow": pyarrow}
        if reader == "spark":
            sessions = pytest.importorskip("support.spark_sessions")
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            names["spark"] = stack.enter_context(sessions.spark_session(folder, {}))
        else:
            names[reader] = pytest.importorskip(reader)
        for line in (*lines_of("hive", "")[:1], *lines[:-1]):
            exec(line, names)
        rows = eval(lines[-1], names)
        return rows.toArrow() if reader == "spark" else rows


@pytest.mark.parametrize("reader", READERS)
def test_the_typed_form_of_each_reader_has_every_value(reader, sections):
    run, expected = sections
    lines = lines_of(reader, f"{run}/data")
    if reader == "DuckDB":
        rows = duckdb.sql(lines[0]).select("document_id", "section").fetchall()
    elif reader == "ClickHouse":
        query = f"SELECT document_id, section FROM ({lines[0].partition(' -- ')[0]})"
        answer = str(chdb.query(query, "JSONCompactEachRow"))
        rows = [json.loads(line) for line in answer.splitlines()]
    else:
        table = read_python(reader, lines)
        columns = [table[name] for name in ("document_id", "section")]
        if reader == "daft":
            columns = table.select("document_id", "section").to_pydict().values()
        rows = zip(*(map(_plain, each) for each in columns), strict=True)
    assert dict(rows) == expected


def _plain(value: Any) -> Any:
    return value.as_py() if isinstance(value, pyarrow.Scalar) else value
