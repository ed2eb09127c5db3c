"""What must hold for every finished run of `precis summarize`, checked on disk with
DuckDB and plain Python against the records of its corpus.
"""

import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from precis.pipelines.tables.schema import SUMMARY_SCHEMA
from support.incremental_runs import check_accounts
from support.random_corpora import BAD, EMPTY, ROW, Record


def outcomes(records: Sequence[Record], split: str) -> dict[str, list[Record]]:
    """The records by what must become of them, with `--split`."""
    found: dict[str, list[Record]] = {ROW: [], EMPTY: [], BAD: [], "other_split": []}
    for record in records:
        is_other = split and record.outcome != BAD and record.split_or_hash() != split
        found["other_split" if is_other else record.outcome].append(record)
    return found


def read_rows(output: Path, records: Sequence[Record]) -> list[dict[str, Any]]:
    """The rows of the parts on disk, in the order of the corpus."""
    parts = sorted((output / "data").rglob("*.parquet"))
    tables = [pq.ParquetFile(part).read() for part in parts]
    rows = pa.concat_tables(tables).to_pylist() if tables else []
    order = {record.place: number for number, record in enumerate(records)}
    return sorted(rows, key=lambda row: order[_place(row)])


def read_dead_letters(output: Path) -> list[dict[str, Any]]:
    """The dead letters on disk."""
    return [
        json.loads(line)
        for path in sorted((output / "dead_letters").glob("*"))
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]


def _place(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["source_file"], row["source_position"]


def check_run(
    output: Path, records: Sequence[Record], *, split: str, deduplicates: bool
) -> None:
    """Asserts everything that holds for a finished run.

    Args:
      output: the run.
      records: of its corpus, in order.
      split: the flag --split.
      deduplicates: whether equal texts are summarized once.
    """
    manifest = json.loads((output / "manifest.json").read_bytes())
    expected = outcomes(records, split)
    rows = read_rows(output, records)
    _check_files(output, manifest)
    _check_places(rows, read_dead_letters(output), expected)
    check_accounts(output, Counter(record.source_file for record in records))
    for row, record in zip(rows, expected[ROW], strict=True):
        assert (row["reference_summary"] or "") == record.highlights
        assert row["split"] == record.split_or_hash()
        for item in row["extractive"]:
            assert record.article[item["start"] : item["end"]] == item["text"]
    ids = [record.id_or_hash() for record in expected[ROW]]
    assert [row["document_id"] for row in rows] == ids
    if deduplicates:
        _check_duplicates(rows, expected[ROW])
    else:
        assert {row["duplicate_of"] for row in rows} <= {None}


def contents(
    rows: Sequence[Mapping[str, Any]], records: Sequence[Record]
) -> list[tuple[str, str]]:
    """What the summaries of each row depend on: the article, and for the method oracle
    the reference.
    """
    return [
        (
            row["content_sha256"],
            record.highlights if row["extractive_method"] == "oracle" else "",
        )
        for row, record in zip(rows, records, strict=True)
    ]


def _check_files(output: Path, manifest: Mapping[str, Any]) -> None:
    """Asserts that the folder has the files of the manifest, whole, and no other."""
    listed = [*manifest["files"], *manifest["dead_letters"]]
    names = {str(path.relative_to(output)) for path in output.rglob("*")}
    files = {name for name in names if (output / name).is_file()}
    assert files == {"manifest.json", "_SUCCESS", *(file["file"] for file in listed)}
    assert names - files <= {"data", "dead_letters"}
    for file in listed:
        content = (output / file["file"]).read_bytes()
        assert len(content) == file["bytes"]
        assert hashlib.sha256(content).hexdigest() == file["sha256"]
    for file in manifest["files"]:
        metadata = pq.read_metadata(output / file["file"])
        assert metadata.num_rows == file["rows"] > 0
        schema = metadata.schema.to_arrow_schema()
        assert schema.equals(SUMMARY_SCHEMA, check_metadata=False)
    digest = hashlib.sha256((output / "manifest.json").read_bytes()).hexdigest()
    success = (output / "_SUCCESS").read_text().split()
    assert success == [manifest["fingerprint"], digest]


def _check_places(
    rows: Sequence[Mapping[str, Any]],
    dead_letters: Sequence[Mapping[str, Any]],
    expected: Mapping[str, Sequence[Record]],
) -> None:
    """Asserts that each record is where it must be, once."""
    empty = [letter for letter in dead_letters if letter["reason"] == "empty_article"]
    failed = [letter for letter in dead_letters if letter["reason"] != "empty_article"]
    places = sorted(_place(row) for row in rows)
    assert places == sorted(record.place for record in expected[ROW])
    for found, outcome in ((empty, EMPTY), (failed, BAD)):
        # Equal letters in a row are one, with the place of the first.
        places = [_place(letter) for letter in found]
        assert len(places) == len({*places})
        assert {*places} <= {record.place for record in expected[outcome]}
        assert sum(letter["records"] for letter in found) == len(expected[outcome])


def _check_duplicates(
    rows: Sequence[Mapping[str, Any]], records: Sequence[Record]
) -> None:
    """Asserts that a row names the first row of its content, and equal texts have one
    content.
    """
    first: dict[tuple[str, str], str] = {}
    of_key: dict[str, str] = {}
    for row, record, content in zip(
        rows, records, contents(rows, records), strict=True
    ):
        assert of_key.setdefault(record.key, content[0]) == content[0]
        assert row["duplicate_of"] == first.get(content)
        first.setdefault(content, row["document_id"])
