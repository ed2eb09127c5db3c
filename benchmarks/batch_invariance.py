"""How much a row of `precis summarize` depends on how the job is run, with and without
`--batch_invariant`.

    python benchmarks/batch_invariance.py [--documents 500] [--bundle DIR]
        [--extractive_bundle DIR] [--keyphrase_bundle DIR] [--beam_widths 1,4]
        [--batch_invariant off,on]

summarizes the same documents of the built-in corpus with other windows, search
processes, workers of Beam and another order, and compares the rows with those of the
first run. Without `--bundle`, a network `tiny` with random weights writes the
summaries. It prints a table: the documents with another text, list or flag; the scores
that differ as they are written; and, with all digits of the scores, the largest
difference in units of the score (of 1 for a margin, which can be near zero).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from machine import chip
from overhead import random_bundle

from precis.pipelines import score_rounding
from precis.pipelines.corpus.sample import generator

# Written files, so that four workers have something to do.
FILES = 4
ALL_DIGITS = 17
# Of each run: documents of a window, search processes, and workers of Beam where they
# are processes. The first is the one that the others are compared with.
RUNS = (
    {"window_documents": 512, "search_processes": 2},
    {"window_documents": 512, "search_processes": 2, "reversed": True},
    {"window_documents": 512, "search_processes": 1},
    {"window_documents": 512, "search_processes": 4},
    {"window_documents": 64, "search_processes": 2},
    {"window_documents": 7, "search_processes": 1},
    {"window_documents": 1, "search_processes": 1},
    {"window_documents": 64, "search_processes": 1, "workers": 4},
)
METHODS = "frequency,lead,lexrank,textrank,lsa,pacsum"
# They differ from run to run, or say which search it was.
NOT_COMPARED = ("run_id", "created_at", "decode_id")


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, does the runs and prints the table."""
    flags = parse_flags(argv)
    print(f"chip: {chip()}, {os.cpu_count()} cores; {flags.documents} documents")
    print("| beam width | batch_invariant | run | other text | other score | largest |")
    print("|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        if not flags.bundle:
            flags.bundle = random_bundle(os.path.join(folder, "bundle"), "tiny").bundle
        for is_reversed in (False, True):
            write_corpus(
                corpus_folder(folder, is_reversed), flags.documents, is_reversed
            )
        for width in flags.beam_widths.split(","):
            for switch in flags.batch_invariant.split(","):
                settings = {"beam_width": int(width), "batch_invariant": switch == "on"}
                for line in compare_runs(folder, flags, settings):
                    print(f"| {width} | {switch} | {line} |", flush=True)


def parse_flags(argv: Sequence[str] | None) -> argparse.Namespace:
    """The flags of the benchmark."""
    parser = argparse.ArgumentParser(
        description="How much a row depends on how the job is run."
    )
    parser.add_argument(
        "--documents", type=int, default=500, help="documents (default: 500)"
    )
    parser.add_argument("--bundle", default="", help="default: random weights")
    parser.add_argument("--extractive_bundle", default="", help="adds the method")
    parser.add_argument("--keyphrase_bundle", default="", help="adds keyphrases")
    parser.add_argument("--beam_widths", default="1,4", help="(default: 1,4)")
    parser.add_argument(
        "--batch_invariant", default="off,on", help="off, on or both (default: off,on)"
    )
    return parser.parse_args(argv)


def corpus_folder(folder: str, is_reversed: bool) -> str:
    """Where the documents lie in one of the two orders."""
    return os.path.join(folder, "reversed" if is_reversed else "corpus")


def write_corpus(folder: str, documents: int, is_reversed: bool) -> None:
    """Writes documents of the built-in corpus, some hundred words long and shorter."""
    os.makedirs(folder)
    lines = []
    for index in range(documents):
        document = generator.document(len(generator.hand_written()) + index)
        # The documents of this corpus are of similar length.
        article = document.article[: 400 + 211 * index % 1600]
        lines.append(json.dumps({"id": f"{index:05}", "article": article}))
    if is_reversed:
        lines.reverse()
    for number in range(FILES):
        path = os.path.join(folder, f"{number}.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines[number::FILES])


def compare_runs(
    folder: str, flags: argparse.Namespace, settings: Mapping[str, Any]
) -> Iterator[str]:
    """Does all runs and yields a row of the table for each but the first."""
    jobs = [job_of(folder, flags, {**settings, **run}) for run in RUNS]
    worker = subprocess.run(
        [sys.executable, os.path.abspath(__file__), json.dumps(jobs)],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    answers = [line for line in worker.stdout.splitlines() if line.startswith("{")]
    reference, *others = map(json.loads, answers)
    for run, rows in zip(RUNS[1:], others, strict=True):
        name = ", ".join(f"{key} {value}" for key, value in run.items())
        yield f"{name} | {differences(reference, rows, is_rounded='workers' in run)}"


def job_of(
    folder: str, flags: argparse.Namespace, run: Mapping[str, Any]
) -> dict[str, Any]:
    """The flags of `precis summarize`, and what `RUNS` holds beside them."""
    return {
        **run,
        "corpus": f"jsonl:{corpus_folder(folder, 'reversed' in run)}/*.jsonl",
        "output": tempfile.mkdtemp(dir=folder),
        "bundle": flags.bundle,
        "extractive": METHODS + (",neural" if flags.extractive_bundle else ""),
        "extractive_bundle": flags.extractive_bundle,
        "keyphrase_bundle": flags.keyphrase_bundle,
        "n_best": min(2, run["beam_width"]),
    }


def work(job: dict[str, Any]) -> None:
    """Does a run in this process and prints its rows by document on one line.

    The scores have all digits where Beam's workers are not other processes.
    """
    import pyarrow.dataset

    import precis

    job.pop("reversed", None)
    beam_args = []
    workers = job.pop("workers", 0)
    if workers:
        beam_args = [
            "--direct_running_mode=multi_processing",
            f"--direct_num_workers={workers}",
        ]
    output = job["output"]
    precis.summarize(**job, task_bytes=1 << 30, beam_args=beam_args)
    parts = [
        os.path.join(place, name)
        for place, _, names in os.walk(output)
        for name in names
        if name.endswith(".parquet") and "dead_letters" not in place
    ]
    rows = pyarrow.dataset.dataset(parts).to_table().to_pylist()
    content = {
        row["document_id"]: {
            name: value for name, value in row.items() if name not in NOT_COMPARED
        }
        for row in rows
    }
    print(json.dumps(content), flush=True)


def differences(
    reference: Mapping[str, Any], rows: Mapping[str, Any], *, is_rounded: bool
) -> str:
    """The last cells of a row of the table.

    Args:
      reference: rows with all digits of the scores.
      rows: the rows to compare.
      is_rounded: whether their scores are rounded.
    """
    assert reference.keys() == rows.keys()
    texts = 0
    scores: Counter[str] = Counter()
    largest: Counter[str] = Counter()
    for key, row in rows.items():
        texts += without_scores(row) != without_scores(reference[key])
        pairs = zip(named_scores(reference[key]), named_scores(row), strict=False)
        for (name, first), (other_name, second) in pairs:
            if name != other_name or None in (first, second):
                continue
            scores[name] += written(name, first) != written(name, second)
            size = 1.0 if name == "beam_margin" else abs(first) or 1.0
            largest[name] = max(largest[name], abs(first - second) / size)
    others = [f"{name} {count}" for name, count in scores.items() if count]
    furthest = [f"{name} {value:.1e}" for name, value in largest.items() if value]
    cells = [", ".join(others) or "0", ", ".join(furthest) or "0"]
    if is_rounded:
        cells[1] = "not measured"
    return " | ".join([f"{texts}", *cells])


def written(name: str, score: float) -> float | None:
    """A score with all its digits, as the rows hold it."""
    if name == "beam_margin":
        return score_rounding.round_margin(score)
    return score_rounding.round_score(score)


def named_scores(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The scores of a row with their names."""
    for extract in row["extractive"]:
        yield f"extractive {extract['method']}", extract["score"]
    for phrase in row["keyphrases"] or ():
        yield "keyphrases", phrase["score"]
    for summary in row["abstractive"] or ():
        yield "abstractive", summary["score"]
    quality = row["abstractive_quality"] or {}
    for name in ("mean_log_prob", "beam_margin"):
        yield name, quality.get(name)


def without_scores(value: Any) -> Any:
    """A value without the numbers of `named_scores`."""
    if isinstance(value, Mapping):
        return {
            name: without_scores(part)
            for name, part in value.items()
            if name not in ("score", "mean_log_prob", "beam_margin")
        }
    if isinstance(value, list):
        return [without_scores(part) for part in value]
    return value


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].startswith("["):
        # Their scores keep all digits; those of other processes of Beam are rounded.
        score_rounding.SCORE_DIGITS = ALL_DIGITS
        score_rounding.MARGIN_DECIMALS = ALL_DIGITS
        for one_job in json.loads(sys.argv[1]):
            work(one_job)
    else:
        main()
