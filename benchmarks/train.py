"""How fast training is: tokens a second of this project's optimizer step, beside the
same step in PyTorch or for all named networks.

    python benchmarks/train.py [--peers PYTHON] [--rounds 5] [--precision float32]
    [--engines ours,transformers] python benchmarks/train.py --networks [--rounds 5]

prints `name metric value unit` lines, then a table. A step is what `precis train` does
with one batch: forward and backward through the network, label smoothing, dropout,
    clipping, Adam. A batch is 32 documents of 400 source and 100 target tokens, the
    vocabulary has 16,000.

Without --networks, `small` with and without the pointer takes turns with BART of
transformers, which has no pointer, at the same sizes: `bart` is BART as it comes (GELU,
cross entropy), `bart_alike` also has the activation and the label smoothing of ours. A
rate is the median over the rounds, a ratio the median of the rounds' ratios. With
--networks each network is measured by itself, one after the other.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

from decode import NEEDED, chip, installed, matrix_rate
from decode_workers import answer, tell
from train_workers import LABEL_SMOOTHING, Job, start

BART_OF_SMALL: Mapping[str, Any] = {
    **{
        "d_model": 256,
        "encoder_layers": 4,
        "decoder_layers": 4,
        "encoder_ffn_dim": 1024,
        "decoder_ffn_dim": 1024,
    },
    **{
        "encoder_attention_heads": 8,
        "decoder_attention_heads": 8,
        "max_position_embeddings": 1024,
        "dropout": 0.1,
    },
}
PEERS: Mapping[str, Mapping[str, Any]] = {
    "bart": BART_OF_SMALL,
    "bart_alike": {
        **BART_OF_SMALL,
        "activation_function": "relu",
        "label_smoothing": LABEL_SMOOTHING,
    },
}
# What `precis train --network` and its switches make: a row of the table each.
NETWORKS: Mapping[str, Mapping[str, Any]] = {
    "tiny": {"size": "tiny"},
    "four_layers": {"size": "four_layers"},
    "small": {"size": "small"},
    "small.no_pointer": {"size": "small", "pointer": False},
    "small.coverage": {"size": "small", "coverage": True},
    "six_layers": {"size": "six_layers"},
    "base": {"size": "base"},
    "decoder_only.tiny": {"size": "tiny", "architecture": "decoder_only"},
    "decoder_only.small": {"size": "small", "architecture": "decoder_only"},
    "recurrent.tiny": {"size": "tiny", "architecture": "recurrent"},
    "recurrent.small": {"size": "small", "architecture": "recurrent"},
}
COMPARED = ("small.no_pointer", "small")


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the benchmark and prints it."""
    parser = argparse.ArgumentParser(
        description="Tokens a second in training, beside PyTorch or of all named networks."
    )
    parser.add_argument(
        "--peers",
        action="append",
        help="an interpreter that has transformers and PyTorch (default: this one)",
    )
    parser.add_argument(
        "--networks",
        nargs="?",
        const=",".join(NETWORKS),
        help=f"only ours: some of {', '.join(NETWORKS)} (default: all)",
    )
    parser.add_argument(
        "--engines",
        default="ours,transformers",
        help="some of ours, transformers (default: both)",
    )
    parser.add_argument(
        "--precision",
        default="float32",
        choices=("float32", "mixed_bfloat16"),
        help="(default: float32)",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=5,
        help="rounds of which the median counts (default: 5)",
    )
    parser.add_argument(
        "--documents", type=int, default=32, help="documents of a step (default: 32)"
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=2,
        help="processor cores that every engine may use (default: 2)",
    )
    options = parser.parse_args(argv)
    for name, known in (("networks", NETWORKS), ("engines", ("ours", "transformers"))):
        chosen = (getattr(options, name) or "").split(",")
        if not set(chosen) <= {*known, ""}:
            parser.error(
                f"--{name}: {getattr(options, name)!r} is not a list of {', '.join(known)}"
            )
    for line in report(options):
        print(line, flush=True)


def report(options: argparse.Namespace) -> Iterator[str]:
    """The lines of the report."""
    yield f"machine chip {chip()}"
    yield f"machine threads {options.threads} of {os.cpu_count()}"
    yield f"machine matrix_rate.float32 {matrix_rate('float32', options.threads) / 1e9:.0f} GFLOP/s"
    common: dict[str, Any] = {
        "precision": options.precision,
        "documents": options.documents,
        "threads": options.threads,
    }
    ours = {
        name: Job("ours", name, settings, **common)
        for name, settings in NETWORKS.items()
    }
    rows: list[str] = []
    if options.networks:
        for name in options.networks.split(","):
            yield from _measured(
                [ours[name]], {"ours": sys.executable}, options.rounds, rows
            )
    else:
        pythons: dict[str, str] = {}
        for kind in options.engines.split(","):
            yield _found(kind, options, pythons)
        jobs = [
            Job("transformers", label, settings, **common)
            for label, settings in PEERS.items()
        ]
        jobs += [ours[name] for name in COMPARED]
        yield from _measured(
            [job for job in jobs if job.kind in pythons], pythons, options.rounds, rows
        )
    yield "\n| network | parameters | tokens/s | min to max | to the first |\n|---|---|---|---|---|"
    yield from rows


def _found(kind: str, options: argparse.Namespace, pythons: dict[str, str]) -> str:
    """Looks for the interpreter of an engine, and says in a line what it found."""
    for python in (
        [sys.executable] if kind == "ours" else options.peers or [sys.executable]
    ):
        versions = installed(python, NEEDED[kind])
        if None not in versions.values():
            pythons[kind] = python
            return f"{kind} version {', '.join(f'{name} {version}' for name, version in versions.items())}"
    return f"{kind} not installed"


def _measured(
    jobs: Sequence[Job], pythons: Mapping[str, str], rounds: int, rows: list[str]
) -> Iterator[str]:
    """The figures of trainings that take turns, and their rows of the table."""
    parameters, seconds = measure(jobs, pythons, rounds)
    for job in jobs:
        rates = [job.tokens / each for each in seconds[job.name]]
        middle = statistics.median(rates)
        yield f"{job.name} parameters {parameters[job.name]} weights"
        yield f"{job.name} step {1000 * job.tokens / middle:.0f} ms"
        yield f"{job.name} tokens_per_s {middle:.0f} tokens/s"
        yield f"{job.name} tokens_per_s_min {min(rates):.0f} tokens/s"
        yield f"{job.name} tokens_per_s_max {max(rates):.0f} tokens/s"
        for other in [
            other for other in jobs if other.kind != "ours" and job.kind == "ours"
        ]:
            yield f"{job.name} ratio_to_{other.name} {ratio(seconds[other.name], seconds[job.name]):.3f} times"
        to_first = ratio(seconds[jobs[0].name], seconds[job.name])
        spread = f"{min(rates):,.0f} to {max(rates):,.0f}"
        rows.append(
            f"| {job.name} | {parameters[job.name]:,} | {middle:,.0f} | {spread} | {to_first:.2f} |"
        )


def ratio(others: Sequence[float], own: Sequence[float]) -> float:
    """How many times as fast: the median over the rounds of the ratio of two times."""
    return statistics.median(
        other / each for other, each in zip(others, own, strict=True)
    )


def measure(
    jobs: Sequence[Job], pythons: Mapping[str, str], rounds: int
) -> tuple[dict[str, int], dict[str, list[float]]]:
    """The parameters and the seconds of each round, by name, of trainings that take
    turns in alternating order.
    """
    parameters: dict[str, int] = {}
    seconds: dict[str, list[float]] = {job.name: [] for job in jobs}
    workers: dict[str, subprocess.Popen[str]] = {}
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        try:
            for job in (
                jobs
            ):  # one after the other, so that none is set up while another warms up
                workers[job.name] = start(pythons[job.kind], job, errors)
                parameters[job.name] = int(
                    _ask(workers[job.name], job, errors, "PARAMETERS")
                )
                _ask(workers[job.name], job, errors, "READY")
            for number in range(rounds):
                for job in jobs[:: 1 if number % 2 == 0 else -1]:
                    time.sleep(0.3)  # until the threads of the one before sleep
                    seconds[job.name].append(
                        _ask(workers[job.name], job, errors, "T", "go")
                    )
        finally:
            for worker in workers.values():
                worker.communicate()  # the end of its input ends it
    return parameters, seconds


def _ask(
    worker: subprocess.Popen[str], job: Job, errors: IO[str], word: str, line: str = ""
) -> float:
    """The number that a worker answers behind a word, to a line or by itself."""
    try:
        if line:
            tell(worker, line)
        return answer(worker, word)
    except (EOFError, BrokenPipeError) as error:
        errors.seek(0)
        raise SystemExit(
            f"{job.name} failed ({error}); the workers' last words were\n{errors.read()[-2000:]}"
        ) from error


if __name__ == "__main__":
    main(sys.argv[1:])
