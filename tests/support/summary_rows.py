"""Rows as `precis summarize` writes them, of invented sentences, and runs with such
rows.
"""

import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from rouge_score import rouge_scorer

from precis.pipelines.run.key_tables import write_parquet
from precis.pipelines.run.result_files import describe_file
from precis.pipelines.tables import schema
from support.damaged_results import write_success

WORDS = "the mayor opened a new bridge on Monday after years of delay and cost".split()
# The least that a manifest says.
MANIFEST = {
    **{"counts": {}, "failures": {}, "dead_letters": []},
    **{"run_id": "0" * 16, "schema_version": 5},
}


def sentence(generator: random.Random) -> str:
    return " ".join(generator.choices(WORDS, k=generator.randint(3, 8))) + "."


def item(method: str, rank: int, start: int, text: str) -> dict[str, Any]:
    place = {"start": start, "end": start + len(text), "text": text}
    return {"method": method, "rank": rank, "score": 1.0 / rank, **place}


def make_row(
    number: int, *, network: bool = True, reference: bool = True, **columns: Any
) -> dict[str, Any]:
    """What an evaluation reads of a row with the methods lead and frequency.

    Args:
      number: makes different rows.
      network: whether a network wrote an abstractive summary.
      reference: whether the document has a reference.
      columns: replace columns of the row or are added to them.
    """
    generator = random.Random(number)
    sentences = [sentence(generator) for _ in range(6)]
    lengths = [len(text) + 1 for text in sentences]
    starts = [sum(lengths[:index]) for index in range(6)]
    chosen = [("lead", rank + 1, rank) for rank in range(3 if number else 2)]
    chosen += [("frequency", 1, 5), ("frequency", 2, 1)]
    extractive = [
        item(method, rank, starts[place], sentences[place])
        for method, rank, place in chosen
    ]
    abstract = sentence(generator)
    if reference:
        highlights = f"{sentence(generator)}\n{sentence(generator)}"
    else:
        highlights = [None, "", " \n"][number % 3]
    row = {
        "document_id": f"d{number}",
        "truncated": number % 4 == 0 if network else None,
        "extractive_method": "lead",
        "extractive": extractive,
        "abstractive_summary": abstract if network else None,
        "reference_summary": highlights,
        "run_id": "r",
    }
    return {**row, **columns}


def rows_of(numbers: Iterable[int], **settings: Any) -> list[dict[str, Any]]:
    return [make_row(number, **settings) for number in numbers]


def write_run(
    folder: Path, files_of_row_groups: Sequence[Sequence[Sequence[dict[str, Any]]]]
) -> str:
    """Writes a finished run.

    Args:
      folder: of the run.
      files_of_row_groups: a list of files, each a list of row groups, each a list of
          rows.

    Returns:
      The folder.
    """
    (folder / "data").mkdir(parents=True)
    total = len(files_of_row_groups)
    listed = []
    for number, groups in enumerate(files_of_row_groups):
        file_schema = schema_of(next((rows[0] for rows in groups if rows), make_row(0)))
        tables = (
            pa.Table.from_pylist(list(rows), schema=file_schema) for rows in groups
        )
        path = folder / "data" / f"part-{number:05d}-of-{total:05d}.parquet"
        rows = write_parquet(str(path), tables, file_schema)
        listed.append(describe_file(str(folder), f"data/{path.name}", rows=rows))
    (folder / "manifest.json").write_text(json.dumps({**MANIFEST, "files": listed}))
    write_success(folder / "manifest.json")
    return str(folder)


def schema_of(row: dict[str, Any]) -> pa.Schema:
    """The schema of rows with the columns of this row."""
    return pa.schema([(name, schema.SUMMARY_SCHEMA.field(name).type) for name in row])


def lines_of(row: dict[str, Any], method: str) -> str:
    """The summary of a method: its sentences in document order, one per line."""
    chosen = [each for each in row["extractive"] if each["method"] == method]
    chosen.sort(key=lambda each: each["start"])
    return "\n".join(" ".join(each["text"].split()) for each in chosen)


def direct(measure: str, reference: str, summary: str) -> float:
    """The F1 that rouge-score computes."""
    selector = rouge_scorer.RougeScorer([measure], use_stemmer=True)
    return selector.score(reference, summary)[measure].fmeasure
