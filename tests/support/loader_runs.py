"""Runs with columns of every kind and texts that SQL could misread."""

import datetime
import decimal
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from precis.model import files
from precis.pipelines.tables.partitions import HIVE_NULL
from precis.pipelines.tables.schema import SUMMARY_SCHEMA
from support.damaged_results import write_success
from support.warehouse_runs import write_run

_SUMMARY_COLUMNS = (
    "document_id source_file source_position split summary quality_flags extractive "
    "abstractive abstractive_quality reference_quality model_id decode_id run_id "
    "schema_version"
).split()
KEPT = (
    pa.field("section", pa.string()),
    pa.field("views", pa.int64()),
    pa.field("share", pa.float64()),
    pa.field("published", pa.timestamp("us", tz="UTC")),
    pa.field("day", pa.date32()),
    pa.field("price", pa.decimal128(9, 2)),
    pa.field("thumbnail", pa.binary()),
    pa.field("is_live", pa.bool_()),
)
SCHEMA = pa.schema([*(SUMMARY_SCHEMA.field(name) for name in _SUMMARY_COLUMNS), *KEPT])
ODD_NAME = 'it\'s "odd" `x\\y`'
ODD_SCHEMA = pa.schema([*SCHEMA, pa.field(ODD_NAME, pa.string())])
TEXTS = (
    'It\'s "quoted" and `ticked`; -- no comment',
    "tab\tline\nreturn\r\nend",
    "back\\slash \\n \\N \\. \\u0000 %s $1 {x}",
    "\\.",
    "a line\n\\.\nand \\N",
    "emoji \U0001f642 e\u0301 \u4e2d\u6587 \u2028",
    "",
    " ",
)
# Where the warehouses see a run.
LOCATIONS = {
    "bigquery": "gs://bucket/runs/a",
    "snowflake": "@news/runs/a",
    "databricks": "/Volumes/main/news/a",
    "clickhouse": "s3://bucket/runs/a",
    "duckdb": "s3://bucket/runs/a",
}
_MOMENT = datetime.datetime(2026, 3, 4, 5, 6, 7, 891011, tzinfo=datetime.UTC)


def make_row(number: int, run_id: str = "a", **columns: Any) -> dict[str, Any]:
    """A row; every second one is by a network and has no null."""
    text = TEXTS[number % len(TEXTS)]
    is_written = number % 2 == 1
    quality = {
        "words": number,
        **{f"novel_{n}grams_percent": n / 4 for n in (1, 2, 3, 4)},
        **{"coverage": 0.5, "density": 1.5, "compression": None, "length_ratio": 0.1},
        "repetition_rate": 0.0,
        "unsupported_numbers": [text, "4.5"],
        "unsupported_dates": [],
        "unsupported_names": None if number % 4 == 1 else [text],
        "mean_log_prob": -0.125,
        "beam_margin": None,
        "support_score": 0.25,
        "line_confidence": 0.75,
        "flags": ["repeated"],
    }
    support = [{"start": 0, "end": 9, "confidence": 0.5}]
    candidates = [
        {"rank": 1, "score": -1.25, "text": text, "support": None},
        {"rank": 2, "score": -2.5, "text": "x", "support": support},
    ]
    row = {
        "document_id": f"d{number:02} {text.strip()}",
        "source_file": "news.jsonl",
        "source_position": f"{number}",
        "split": "test",
        "summary": text,
        "quality_flags": ["too_short", text][: number % 3],
        "extractive": [
            {
                **{"method": "lead", "rank": rank, "score": 0.1 * rank},
                **{"start": 2**40, "end": 2**40 + 1, "text": text},
            }
            for rank in range(1, number % 3 + 1)
        ],
        "abstractive": candidates if is_written else None,
        "abstractive_quality": quality if is_written else None,
        "reference_quality": None,
        "model_id": "m" if is_written else None,
        "decode_id": "k" if is_written else None,
        "run_id": run_id,
        "schema_version": 4,
        "section": text if is_written else None,
        "views": 2**62 if is_written else None,
        "share": [float("inf"), 0.1, -1e-300][number % 3] if is_written else None,
        "published": _MOMENT if is_written else None,
        "day": datetime.date(2026, 3, number + 1) if is_written else None,
        "price": decimal.Decimal("-12.50") if is_written else None,
        "thumbnail": b"\x00\xff\\'" if is_written else None,
        "is_live": number % 4 == 1 if is_written else None,
    }
    return {**row, **columns}


def write_rows(folder: Path, numbers: Sequence[int], **columns: Any) -> str:
    """Writes a run with these rows in two parts; its name is the run_id."""
    rows = [make_row(number, folder.name, **columns) for number in numbers]
    half = len(rows) // 2
    parts = {
        f"data/part-{folder.name}-00000-of-00002.parquet": rows[:half],
        f"data/part-{folder.name}-00001-of-00002.parquet": rows[half:],
    }
    return write_run(folder, parts, schema=SCHEMA)


def write_partitions(folder: Path) -> str:
    """Writes a run by `split` and `day`: an empty text, a slash, a null."""
    names = (
        "data/split=a%2Fb%27s/day=2026-03-04/part-0.parquet",
        f"data/split={HIVE_NULL}/day=2026-03-04/part-1.parquet",
        f"data/split=test/day={HIVE_NULL}/part-2.parquet",
    )
    columns = {"split": "string", "day": "date32[day]"}
    schema = pa.schema([field for field in SCHEMA if field.name not in columns])
    rows = pa.Table.from_pylist(
        [make_row(number, folder.name) for number in range(3)], schema=schema
    ).to_pylist()
    parts = {name: [row] for name, row in zip(names, rows, strict=True)}
    run = write_run(folder, parts, schema=schema, partition_by=columns)
    manifest = files.read_json(f"{run}/manifest.json")
    manifest["files"][1]["partition"]["split"] = ""  # It has the folder of a null.
    files.write_json(f"{run}/manifest.json", manifest)
    write_success(Path(run) / "manifest.json")
    return run


def read_rows(run: str) -> dict[str, dict[str, Any]]:
    """The rows of an unpartitioned run by document, as pyarrow reads them."""
    rows = [
        row
        for path in sorted(Path(run).rglob("*.parquet"))
        for row in pq.ParquetFile(path).read().to_pylist()
    ]
    return {row["document_id"]: row for row in rows}


def by_document(rows: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Rows by document, of which each has one."""
    rows = list(rows)
    found = {row["document_id"]: row for row in rows}
    assert len(found) == len(rows)
    return found


def check_loads(
    folder: Path,
    load: Callable[..., Any],
    rows_in: Callable[[str], list[dict[str, Any]]],
    as_stored: Callable[[dict[str, Any]], dict[str, Any]] = dict,
) -> None:
    """Asserts that a database has every value of the runs that it loads.

    Args:
      folder: for the runs.
      load: loads a run into a table, `summaries` if the second argument is left out.
      rows_in: gives the rows of a table or a view.
      as_stored: a row as the database has it.
    """
    runs = [write_rows(folder / "a", range(8))]
    runs.append(write_rows(folder / "b", range(6, 10), split="new"))
    rows: dict[str, dict[str, Any]] = {}
    for run in (runs[0], runs[0], runs[1]):
        load(run)
        read = {key: as_stored(row) for key, row in read_rows(run).items()}
        rows |= read
        assert by_document(rows_in("summaries")) == rows
    flat = by_document(rows_in("summaries_flat"))
    for document, row in rows.items():
        quality = row["abstractive_quality"] or {}
        for name in ("words", "flags", "compression"):
            of_view = flat[document][f"abstractive_quality_{name}"]
            assert of_view == quality.get(name), name
        for name in {field.name for field in KEPT} & row.keys():
            assert flat[document][name] == row[name]
    items = [
        tuple(row[f"extractive_{name}"] for name in ("position", "rank", "text"))
        for row in sorted(rows_in("summaries_extractive"), key=_item)
    ]
    assert items == [
        (place, item["rank"], item["text"])
        for _, row in sorted(rows.items())
        for place, item in enumerate(row["extractive"])
    ]
    for name in ("c", "d"):
        load(write_partitions(folder / name), "folders")
    places = sorted((row["split"], str(row["day"])) for row in rows_in("folders"))
    assert places == [("", "2026-03-04"), ("a/b's", "2026-03-04"), ("test", "None")]
    odd = [make_row(1, **{ODD_NAME: "x"})]
    load(write_run(folder / "e", odd, schema=ODD_SCHEMA), "odd")
    (row,) = rows_in("odd")
    assert row[ODD_NAME] == "x"


def check_columns_stay(
    folder: Path,
    load: Callable[[str, str], Any],
    rows_in: Callable[[str], list[dict[str, Any]]],
    add_note: Callable[[], Any],
) -> None:
    """Asserts that columns that a run does not have stay, in the table and its view.

    Args:
      folder: for the runs.
      load: loads a run into a table.
      rows_in: gives the rows of a table or a view.
      add_note: adds a column `note` to the table `stays`, and writes `read` into it.
    """
    load(write_rows(folder / "a", [1, 3]), "stays")
    add_note()
    fields = [field for field in SCHEMA if field.name not in ("section", "views")]
    rows = [make_row(number, "b", split="new") for number in (3, 5)]
    load(write_run(folder / "b", rows, schema=pa.schema(fields[::-1])), "stays")
    names = ("run_id", "split", "section", "views", "note")
    text = make_row(3)["section"]
    for place in ("stays", "stays_flat"):
        found = by_document(rows_in(place)).items()
        assert {key[:3]: tuple(row[name] for name in names) for key, row in found} == {
            "d01": ("a", "test", make_row(1)["section"], 2**62, "read"),
            "d03": ("b", "new", text, 2**62, "read"),
            "d05": ("b", "new", None, None, None),
        }
    assert "abstractive_quality_words" in rows_in("stays_flat")[0]


def _item(row: dict[str, Any]) -> tuple[str, int]:
    return row["document_id"], row["extractive_position"]


def flags_for(name: str, tmp_path: Path) -> dict[str, Any]:
    """The flags of a dialect for any run."""
    if name == "postgresql":
        return {"for_": name, "copy_rows": tmp_path / "rows.copy"}
    return {"for_": name, "location": LOCATIONS[name]}
