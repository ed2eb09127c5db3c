"""The speed of `precis evaluate` in one process and in one process per core, and of our
ROUGE beside that of rouge-score.

    python benchmarks/evaluate.py [--rows 10000] [--systems 12] [--pairs 600]

prints `name value unit` lines. The rows are documents of the built-in corpus; a system
is three random sentences. All systems of a row share its reference and some of its
sentences, as the extractive methods of `precis summarize` do. Every system and the
reference have measures. Where rouge-score is installed, it scores the first pairs of
the same texts.
"""

import argparse
import contextlib
import importlib
import io
import os
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from precis.model import rouge
from precis.model.text.article import Article
from precis.pipelines.corpus.sample import generator
from precis.pipelines.evaluate.evaluate import evaluate
from precis.pipelines.evaluate.scoring import NEEDED_COLUMNS, extractive_summaries
from precis.pipelines.run.key_tables import write_parquet
from precis.pipelines.tables.schema import SUMMARY_SCHEMA

SENTENCES = 3
ROUNDS = 3  # of both selectors in turn, whose medians count
ROWS_A_GROUP = 512  # of the Parquet file


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, writes the rows and prints the speed of scoring them."""
    parser = argparse.ArgumentParser(description="The speed of `precis evaluate`.")
    parser.add_argument(
        "--rows", type=int, default=10_000, help="documents (default: 10000)"
    )
    parser.add_argument(
        "--systems", type=int, default=12, help="summaries a document (default: 12)"
    )
    parser.add_argument(
        "--pairs",
        type=int,
        default=600,
        help="pairs that rouge-score scores (default: 600)",
    )
    flags = parser.parse_args(argv)
    rows = [made_up_row(index, systems=flags.systems) for index in range(flags.rows)]
    with tempfile.TemporaryDirectory() as folder:
        pattern = os.path.join(folder, "part-00000-of-00001.parquet")
        write_rows(pattern, rows)
        modes = {"one_process": 1}
        cores = os.cpu_count() or 1
        if cores > 1:
            modes["one_process_a_core"] = cores
        for name, workers in modes.items():
            seconds = evaluate_seconds(pattern, os.path.join(folder, name), workers)
            print(f"{name} {seconds:.1f} s")
            print(f"{name}.rows_per_s {flags.rows / seconds:.0f} rows/s")
    compare_with_rouge_score(rows, pairs=flags.pairs)


def made_up_row(index: int, *, systems: int) -> dict[str, Any]:
    """A document with extractive summaries: `lead`, its first sentences, and
    `systems - 1` of random sentences.
    """
    document = generator.document(index)
    sentences = Article.from_text(document.article).sentences
    count = min(SENTENCES, len(sentences))
    rng = random.Random(index)
    choices: dict[str, Sequence[int]] = {"lead": range(count)}
    for system in range(1, systems):
        choices[f"method{system}"] = rng.sample(range(len(sentences)), count)
    extractive = [
        {"method": name, "rank": rank, "score": 1 / rank, **sentences[place]._asdict()}
        for name, places in choices.items()
        for rank, place in enumerate(places, start=1)
    ]
    return {
        "document_id": document.document_id,
        "run_id": "r",
        "reference_summary": document.highlights,
        "extractive": extractive,
        "abstractive_summary": None,
        "truncated": None,
        "other_quality": [
            {"system": name, **made_up_measures(rng)} for name in choices
        ],
        "reference_quality": made_up_measures(rng),
    }


def made_up_measures(rng: random.Random) -> dict[str, Any]:
    """The measures of a summary; every fifth has a flag."""
    return {
        "words": rng.randrange(20, 60),
        "novel_2grams_percent": 100 * rng.random(),
        "repetition_rate": rng.random(),
        "flags": ["unsupported_name"] if rng.random() < 0.2 else [],
    }


def write_rows(path: str, rows: Sequence[dict[str, Any]]) -> None:
    """Writes the columns that an evaluation reads, in groups of ROWS_A_GROUP rows."""
    names = (*NEEDED_COLUMNS, "other_quality", "reference_quality")
    schema = pa.schema([SUMMARY_SCHEMA.field(name) for name in names])
    starts = range(0, len(rows), ROWS_A_GROUP)
    groups = (rows[start : start + ROWS_A_GROUP] for start in starts)
    tables = (pa.Table.from_pylist(list(group), schema=schema) for group in groups)
    write_parquet(path, tables, schema)


def evaluate_seconds(pattern: str, output: str, workers: int) -> float:
    """Seconds of a whole evaluation, including its result files."""
    started = time.monotonic()
    with contextlib.redirect_stdout(io.StringIO()):
        evaluate(input=pattern, output=output, workers=workers)
    return time.monotonic() - started


def compare_with_rouge_score(rows: Sequence[dict[str, Any]], *, pairs: int) -> None:
    """Prints pairs a second of both over the same texts, and whether their scores are
    equal.
    """
    try:
        selector = importlib.import_module("rouge_score.rouge_scorer").RougeScorer(
            list(rouge.MEASURES), use_stemmer=True
        )
    except ImportError:
        print("rouge_score not installed")
        return
    texts = first_pairs(rows, pairs)

    def ours(reference: str, summaries: Sequence[str]) -> list[Any]:
        counted = rouge.Reference(reference)
        return [counted.score(summary) for summary in summaries]

    def theirs(reference: str, summaries: Sequence[str]) -> list[Any]:
        scored = (selector.score(reference, summary) for summary in summaries)
        return [{name: each[name].fmeasure for name in each} for each in scored]

    rates: dict[str, list[float]] = {"ours": [], "rouge_score": []}
    are_equal = True
    for first in range(ROUNDS):
        # New texts in each round, as caches of words are then as full as in a job.
        of_round = texts[first::ROUNDS]
        count = sum(len(summaries) for _, summaries in of_round)
        results = []
        for score, of_scorer in zip((ours, theirs), rates.values(), strict=True):
            started = time.monotonic()
            results.append([score(*pair) for pair in of_round])
            of_scorer.append(count / (time.monotonic() - started))
        are_equal &= results[0] == results[1]
    medians = {name: statistics.median(each) for name, each in rates.items()}
    for name, rate in medians.items():
        print(f"rouge.{name} {rate:.0f} pairs/s")
    print(f"rouge.ratio {medians['ours'] / medians['rouge_score']:.1f} times")
    print(f"rouge.equal {are_equal} claim")


def first_pairs(
    rows: Sequence[dict[str, Any]], count: int
) -> list[tuple[str, list[str]]]:
    """The references and summaries of as many rows as have `count` summaries."""
    texts: list[tuple[str, list[str]]] = []
    total = 0
    for row in rows:
        if total >= count:
            break
        summaries = list(extractive_summaries(row["extractive"]).values())
        texts.append((row["reference_summary"], summaries))
        total += len(summaries)
    return texts


if __name__ == "__main__":
    main()
