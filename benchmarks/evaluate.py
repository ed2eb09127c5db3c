"""The speed of `precis evaluate`, in one process and in one a core, and of its ROUGE
beside rouge-score's.

    python benchmarks/evaluate.py [--rows 10000] [--systems 12] [--pairs 600]

prints `name value unit` lines. The rows are documents of the built-in corpus; a system
is three sentences drawn by chance. All systems of a row share its reference and some of
its sentences, as the extractive methods of `precis summarize` do. rouge-score, if it is
installed, scores the first pairs of the same texts.
"""

import argparse
import contextlib
import importlib
import io
import os
import random
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from precis.model import rouge
from precis.model.text.article import Article
from precis.pipelines.corpus.sample import generator
from precis.pipelines.evaluate import evaluate
from precis.pipelines.schema import SUMMARY_SCHEMA, write_parquet
from precis.pipelines.scoring import NEEDED_COLUMNS, extractive_summaries

SENTENCES, ROWS_A_GROUP = 3, 512


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, writes the rows and prints what scoring them takes."""
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
        schema = pa.schema([SUMMARY_SCHEMA.field(name) for name in NEEDED_COLUMNS])
        groups = (
            rows[first : first + ROWS_A_GROUP]
            for first in range(0, len(rows), ROWS_A_GROUP)
        )
        write_parquet(
            pattern,
            (pa.Table.from_pylist(group, schema=schema) for group in groups),
            schema,
        )
        cores = os.cpu_count() or 1
        modes = (
            {"one_process": 1, "one_process_a_core": cores}
            if cores > 1
            else {"one_process": 1}
        )
        for name, workers in modes.items():
            seconds = evaluate_seconds(pattern, os.path.join(folder, name), workers)
            print(f"{name} {seconds:.1f} s")
            print(f"{name}.rows_per_s {flags.rows / seconds:.0f} rows/s")
    compare_with_rouge_score(rows, pairs=flags.pairs)


def made_up_row(index: int, *, systems: int) -> dict[str, Any]:
    """A document with that many extractive summaries, one of them its first sentences."""
    document = generator.document(index)
    found = Article.from_text(document.article).sentences
    chance = random.Random(index)
    chosen = []
    for system in range(systems):
        picked = (
            chance.sample(range(len(found)), min(SENTENCES, len(found)))
            if system
            else range(min(SENTENCES, len(found)))
        )
        name = f"method{system}" if system else "lead"
        chosen += [
            {"method": name, "rank": rank, "score": 1 / rank, **found[place]._asdict()}
            for rank, place in enumerate(picked, start=1)
        ]
    own = {
        "document_id": document.document_id,
        "run_id": "r",
        "reference_summary": document.highlights,
        "extractive": chosen,
    }
    return {**own, "abstractive_summary": None, "truncated": None}


def evaluate_seconds(pattern: str, output: str, workers: int) -> float:
    """Seconds of a whole evaluation, from its first line to rouge.json."""
    mode = "multi_processing" if workers > 1 else "in_memory"
    started = time.monotonic()
    with contextlib.redirect_stdout(io.StringIO()):
        evaluate(
            input=pattern,
            output=output,
            beam_args=[
                f"--direct_num_workers={workers}",
                f"--direct_running_mode={mode}",
            ],
        )
    return time.monotonic() - started


def compare_with_rouge_score(rows: Sequence[dict[str, Any]], *, pairs: int) -> None:
    """Prints pairs a second of both over the same texts, and whether their figures are
    equal.
    """
    try:
        theirs = importlib.import_module("rouge_score.rouge_scorer").RougeScorer(
            list(rouge.MEASURES), use_stemmer=True
        )
    except ImportError:
        print("rouge_score not installed")
        return
    texts: list[tuple[str, list[str]]] = []
    while sum(len(own) for _, own in texts) < pairs and len(texts) < len(rows):
        row = rows[len(texts)]
        texts.append(
            (
                row["reference_summary"],
                list(extractive_summaries(row["extractive"]).values()),
            )
        )
    count = sum(len(own) for _, own in texts)
    started = time.monotonic()
    found = [
        [reference.score(text) for text in own]
        for reference, own in ((rouge.Reference(text), own) for text, own in texts)
    ]
    ours_seconds = time.monotonic() - started
    started = time.monotonic()
    expected = [
        [theirs.score(reference, text) for text in own] for reference, own in texts
    ]
    theirs_seconds = time.monotonic() - started
    print(f"rouge.ours {count / ours_seconds:.0f} pairs/s")
    print(f"rouge.rouge_score {count / theirs_seconds:.0f} pairs/s")
    print(f"rouge.ratio {theirs_seconds / ours_seconds:.1f} times")
    print(f"rouge.equal {found == expected} claim")


if __name__ == "__main__":
    main()
