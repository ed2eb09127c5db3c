"""Small finished runs, and the tables that they are loaded into."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyiceberg.table import Table

from precis.model import files
from precis.pipelines.run.key_tables import write_parquet
from precis.pipelines.run.result_files import describe_file
from precis.pipelines.tables.partitions import HIVE_NULL
from precis.pipelines.warehouse.iceberg import open_catalog
from precis.pipelines.warehouse.load import TableResult, load
from precis.pipelines.warehouse.options import read_address
from support.damaged_results import write_success

_KEY = ("document_id", "source_file", "source_position", "split")
_SENTENCE = pa.struct(
    [pa.field("text", pa.string(), False), pa.field("rank", pa.int32(), False)]
)
_SHOWN = {"description": "the text to show"}
SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.string(), nullable=False) for name in _KEY),
        pa.field("summary", pa.string(), nullable=False, metadata=_SHOWN),
        pa.field("words", pa.int32(), nullable=False),
        pa.field("sentences", pa.list_(pa.field("element", _SENTENCE, False)), False),
    ]
)


def rows_of(ids: Sequence[str], run_id: str = "a", **columns: Any) -> list[dict]:
    """A row for each id; its summary says which run wrote it."""
    return [
        {
            "document_id": document_id,
            "source_file": "news.jsonl",
            "source_position": "0",
            "split": "test",
            "summary": f"{document_id} by {run_id}",
            "words": 3,
            "sentences": [{"text": document_id, "rank": 1}],
            **columns,
        }
        for document_id in ids
    ]


def write_run(
    folder: Path,
    parts: Mapping[str, Sequence[Mapping[str, Any]]] | Sequence[Mapping[str, Any]],
    *,
    schema: pa.Schema = SCHEMA,
    **manifest: Any,
) -> str:
    """Writes a finished run.

    Args:
      folder: of the run; its name is the run_id.
      parts: rows by the name of their part, or the rows of one part.
      schema: of the parts.
      manifest: further entries of the manifest.
    """
    if not isinstance(parts, Mapping):
        parts = {"part-00000-of-00001.parquet": parts}
    entries = []
    for name, rows in parts.items():
        table = pa.Table.from_pylist(list(rows), schema=schema)
        write_parquet(str(folder / name), table.to_batches(max_chunksize=2), schema)
        described = describe_file(str(folder), name, rows=len(rows))
        entries.append({**described, "partition": _partition(name)})
    content = {
        "run_id": folder.name,
        "fingerprint": f"fingerprint of {folder.name}",
        "precis_version": "0.1.0",
        "schema_version": 4,
        "files": entries,
        **{"counts": {}, "failures": {}, "dead_letters": []},
        **manifest,
    }
    files.write_json(str(folder / "manifest.json"), content)
    write_success(folder / "manifest.json")
    return str(folder)


def load_run(run: str, table: str, **flags: str) -> TableResult:
    """Loads a run into a table."""
    return load(run=run, table=table, **flags)


def _partition(name: str) -> dict[str, str | None]:
    """The values in the names of the folders of a part."""
    folders = (folder.split("=") for folder in name.split("/")[:-1] if "=" in folder)
    return {
        column: None if value == HIVE_NULL else unquote(value)
        for column, value in folders
    }


def iceberg_table(address: str) -> Table:
    """The table of an address."""
    place = read_address(address)
    return open_catalog(place).load_table(place.identifier)


def summaries(table: Table) -> dict[str, str]:
    """The column `summary` by document."""
    rows = table.scan().to_arrow().to_pylist()
    assert len({row["document_id"] for row in rows}) == len(rows)
    return {row["document_id"]: row["summary"] for row in rows}


def data_files(table: Table) -> set[str]:
    """The paths of the data files of the present snapshot."""
    tasks = table.scan().plan_files()
    return {task.file.file_path.removeprefix("file://") for task in tasks}
