"""Rows as `precis summarize` writes them, of made-up sentences, and runs that hold
them.
"""

import datetime
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from rouge_score import rouge_scorer

from precis.pipelines import schema

WORDS = [
    "the",
    "mayor",
    "opened",
    "a",
    "new",
    "bridge",
    "on",
    "Monday",
    "after",
    "years",
    "of",
    "delay",
    "and",
    "cost",
]
NOW = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
# Columns of later schemas, which a row may have or not.
LATER = {
    "summary": pa.string(),
    "keyphrases": pa.list_(
        pa.struct({"method": pa.string(), "phrase": pa.string(), "score": pa.float64()})
    ),
    "reference_keyphrases": pa.list_(pa.string()),
}


def sentence(generator: random.Random) -> str:
    return " ".join(generator.choices(WORDS, k=generator.randint(3, 8))) + "."


def item(method: str, rank: int, start: int, text: str) -> dict[str, Any]:
    return {
        "method": method,
        "rank": rank,
        "score": 1.0 / rank,
        "start": start,
        "end": start + len(text),
        "text": text,
    }


def make_row(
    number: int, *, network: bool = True, reference: bool = True, **columns: Any
) -> dict[str, Any]:
    """A row with the methods lead and frequency; `columns` replace its own or are added
    to them.
    """
    generator = random.Random(number)
    sentences = [sentence(generator) for _ in range(6)]
    starts = [sum(len(s) + 1 for s in sentences[:n]) for n in range(6)]
    count = 3 if number else 2
    extractive = [item("lead", n + 1, starts[n], sentences[n]) for n in range(count)]
    extractive += [
        item("frequency", 1, starts[5], sentences[5]),
        item("frequency", 2, starts[1], sentences[1]),
    ]
    abstract = sentence(generator)
    row = {
        "document_id": f"d{number}",
        "split": "test",
        "content_sha256": "0" * 64,
        "source_tokens": 12 if network else None,
        "seen_tokens": 10 if network else None,
        "truncated": number % 4 == 0 if network else None,
        "article_words": 9,
        "extractive_summary": "\n".join(sentences[:count]),
        "extractive_method": "lead",
        "extractive": extractive,
        "abstractive_summary": abstract if network else None,
        "abstractive": [{"rank": 1, "score": -0.5, "text": abstract}]
        if network
        else None,
        "reference_summary": f"{sentence(generator)}\n{sentence(generator)}"
        if reference
        else [None, "", " \n"][number % 3],
        "model_id": "m" if network else None,
        "decode_id": "k" if network else None,
        "run_id": "r",
        "schema_version": 1,
        "created_at": NOW,
    }
    return {**row, **columns}


def rows_of(numbers: Iterable[int], **settings: Any) -> list[dict[str, Any]]:
    return [make_row(number, **settings) for number in numbers]


def write_run(
    folder: Path, files_of_row_groups: Sequence[Sequence[Sequence[dict[str, Any]]]]
) -> str:
    """A finished run with the given rows: a list of files, each a list of row groups,
    each a list of rows.
    """
    (folder / "summaries").mkdir(parents=True)
    total = len(files_of_row_groups)
    for number, groups in enumerate(files_of_row_groups):
        columns = next((rows[0] for rows in groups if rows), make_row(0))
        own = pa.schema(
            [
                pa.field(
                    name, LATER.get(name) or schema.SUMMARY_SCHEMA.field(name).type
                )
                for name in columns
            ]
        )
        path = folder / "summaries" / f"part-{number:05d}-of-{total:05d}.parquet"
        schema.write_parquet(
            str(path),
            (pa.Table.from_pylist(list(rows), schema=own) for rows in groups),
            own,
        )
    (folder / "manifest.json").write_text("{}")
    (folder / "_SUCCESS").write_text("")
    return str(folder)


def lines_of(row: dict[str, Any], method: str) -> str:
    """A method's summary: its sentences in document order, one a line."""
    chosen = sorted(
        (s["start"], s["text"]) for s in row["extractive"] if s["method"] == method
    )
    return "\n".join(text for _, text in chosen)


def direct(measure: str, reference: str, summary: str) -> float:
    """F1 by rouge-score itself."""
    return (
        rouge_scorer.RougeScorer([measure], use_stemmer=True)
        .score(reference, summary)[measure]
        .fmeasure
    )
