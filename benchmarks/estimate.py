"""`--estimate` against the job that it estimates, over corpora of different shape.

    python benchmarks/estimate.py [--quick] [--only short,long]

prints a line for each job: the seconds that the estimate says for the flags as they
are, those that the job then takes, and their ratio; the same for documents, bytes and,
with a network, tokens. The machine must be otherwise idle. A network is trained first,
on the built-in corpus; its summaries are poor and as long as others. A job whose
seconds are not within 30 % of its estimate makes the exit code 1.

    prepare   the built-in corpus, 12,000 documents
    network   the built-in corpus, 4,000 documents, with the network
    short     JSON lines of 120 to 400 characters, 60,000 documents in 12 gzip files
    long      Parquet with row groups of 20 documents of about 5,000 words, 600
    lines     plain JSON lines, 40,000 documents in tasks of 2 MB, by several workers
"""

import argparse
import dataclasses
import gzip
import json
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from accounting import write_corpus
from command_runs import check_ratios, run_command

from precis.model import files
from precis.pipelines.corpus.sample import generator

_FLAGS_OF_TRAINING = (
    *("--network", "tiny", "--steps", "30", "--batch_tokens", "4096"),
    *("--validation_steps", "0"),
)
_SHORT_FILES = 12
_ROW_GROUP = 20
_LONG_STORIES = 50


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """A job of the benchmark.

    Attributes:
      command: `prepare` or `summarize`.
      documents: of the corpus; a quick run has a tenth of them.
      corpus: writes that many documents into a folder and returns the flag --corpus.
      flags: the others.
      needs_bundle: whether the flags are to name the network.
    """

    command: str
    documents: int
    corpus: Callable[[str, int], str]
    flags: Sequence[str]
    needs_bundle: bool = False


def sample(_: str, documents: int) -> str:
    """The built-in corpus."""
    return f"sample:{documents}"


def short(folder: str, documents: int) -> str:
    """Short documents in compressed JSON lines."""
    stories = [generator.document(index).article for index in range(200)]
    for number in range(_SHORT_FILES):
        path = os.path.join(folder, f"{number:02d}.jsonl.gz")
        with gzip.open(path, "wt", encoding="utf-8", compresslevel=3) as file:
            for index in range(number, documents, _SHORT_FILES):
                length = 120 + 280 * (index % 7) // 6
                text = f"Report {index} was filed. {stories[index % 200][:length]}"
                file.write(json.dumps({"id": f"d{index}", "article": text}) + "\n")
    return f"jsonl:{folder}/*.jsonl.gz"


def lines(folder: str, documents: int) -> str:
    """The stories of the built-in corpus in one file of plain JSON lines."""
    path = os.path.join(folder, "all.jsonl")
    write_corpus(path, documents)
    return f"jsonl:{path}"


def long(folder: str, documents: int) -> str:
    """Long documents in one Parquet file."""
    schema = pa.schema([("id", pa.string()), ("article", pa.string())])
    with pq.ParquetWriter(os.path.join(folder, "long.parquet"), schema) as writer:
        for start in range(0, documents, _ROW_GROUP):
            rows = [
                {"id": f"d{number}", "article": _long_article(number)}
                for number in range(start, min(start + _ROW_GROUP, documents))
            ]
            writer.write_table(pa.Table.from_pylist(rows, schema=schema))
    return f"parquet:{folder}/*.parquet"


def _long_article(number: int) -> str:
    first = number * _LONG_STORIES
    stories = range(first, first + _LONG_STORIES)
    return "\n".join(generator.document(index).article for index in stories)


CASES = {
    "prepare": Case(
        command="prepare",
        documents=12_000,
        corpus=sample,
        flags=("--vocabulary_size", "4000"),
    ),
    "network": Case(
        command="summarize",
        documents=4_000,
        corpus=sample,
        flags=("--extractive", "lead", "--max_summary_tokens", "32"),
        needs_bundle=True,
    ),
    "short": Case(
        command="summarize",
        documents=60_000,
        corpus=short,
        flags=("--extractive", "lead,frequency"),
    ),
    "long": Case(
        command="summarize",
        documents=600,
        corpus=long,
        flags=("--extractive", "lead,lexrank"),
    ),
    "lines": Case(
        command="summarize",
        documents=40_000,
        corpus=lines,
        flags=("--extractive", "lead,lexrank", "--task_bytes", "2000000"),
    ),
}


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs every case and prints its lines."""
    parser = argparse.ArgumentParser(description="Estimates against jobs.")
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the documents of each case"
    )
    parser.add_argument("--only", default=",".join(CASES), help="names of cases")
    flags = parser.parse_args(argv)
    names = flags.only.split(",")
    with tempfile.TemporaryDirectory() as folder:
        bundle = ""
        if any(CASES[name].needs_bundle for name in names):
            bundle = train(folder)
        ratios = {}
        for name in names:
            place = os.path.join(folder, name)
            os.makedirs(place)
            divisor = 10 if flags.quick else 1
            ratios[name] = run_case(name, place, bundle, divisor=divisor)
    check_ratios(ratios)


def train(folder: str) -> str:
    """Trains the network and returns its bundle."""
    records, bundle = os.path.join(folder, "records"), os.path.join(folder, "bundle")
    corpus = ("--corpus", "sample:2000", "--vocabulary_size", "4000")
    run_command("prepare", *corpus, "--output", records)
    train = ("train", "--records", records, "--output", bundle)
    run_command(*train, *_FLAGS_OF_TRAINING)
    return bundle


def run_case(name: str, folder: str, bundle: str, *, divisor: int) -> float:
    """Estimates a case, runs it and prints the figures of both.

    Returns:
      The seconds that were estimated, divided by those that were taken.
    """
    case = CASES[name]
    corpus_folder = os.path.join(folder, "corpus")
    os.makedirs(corpus_folder)
    corpus = case.corpus(corpus_folder, case.documents // divisor)
    output = os.path.join(folder, "out")
    command = [case.command, "--corpus", corpus, "--output", output, *case.flags]
    if case.needs_bundle:
        command += ["--bundle", bundle]
    estimated, took = run_command(*command, "--estimate")
    assert not os.path.exists(output)
    _, seconds = run_command(*command)
    actual = {**figures(output, case.command), "seconds": seconds}
    predicted = read_estimate(estimated)
    for figure, value in actual.items():
        if value:
            print(
                f"{name}_{figure} predicted {predicted[figure]:.1f} actual {value:.1f} "
                f"ratio {predicted[figure] / value:.2f}",
                flush=True,
            )
    print(f"{name}_estimate_took {took:.0f} s", flush=True)
    return predicted["seconds"] / seconds


def read_estimate(text: str) -> dict[str, float]:
    """The figures that an estimate prints."""
    patterns = {
        "documents": r"documents: about ([\d,]+)",
        "source_tokens": r"tokens: ([\d,]+) read",
        "written_tokens": r"read, ([\d,]+) written",
        "megabytes": r"output: ([\d,.]+) MB",
        "seconds": r"(?m)^ *[\d,]+ +([\d,.]+) .*this command$",
    }
    found = {name: re.search(pattern, text) for name, pattern in patterns.items()}
    return {
        name: float(match[1].replace(",", "")) for name, match in found.items() if match
    }


def figures(output: str, command: str) -> Mapping[str, float]:
    """The same figures of a finished result."""
    if command == "prepare":
        info = files.read_json(os.path.join(output, "dataset.json"))
        written = info["counts"]["written"]
        shards = [
            shard for split in info["splits"].values() for shard in split["shards"]
        ]
        return {
            "documents": info["counts"]["read"],
            "source_tokens": info["source_lengths"]["mean"] * written,
            "written_tokens": info["target_lengths"]["mean"] * written,
            "megabytes": sum(shard["bytes"] for shard in shards) / 1e6,
        }
    manifest: dict[str, Any] = files.read_json(os.path.join(output, "manifest.json"))
    search = manifest["search"] or {}
    return {
        "documents": manifest["counts"]["read"],
        "source_tokens": search.get("source_tokens", 0),
        "written_tokens": search.get("summary_tokens", 0),
        "megabytes": sum(file["bytes"] for file in manifest["files"]) / 1e6,
    }


if __name__ == "__main__":
    main()
