"""The speed of training: tokens a second of an optimizer step of this project, beside
the same step in PyTorch or for all named networks.

    python benchmarks/train.py [--peers PYTHON] [--rounds 5]
        [--precisions float32,mixed_bfloat16] [--engines ours,transformers]
    python benchmarks/train.py --networks [--rounds 5]

prints `name metric value unit` lines, then a table. A step is that of `precis train` on
one batch: forward and backward through the network, label smoothing, dropout, clipping,
Adam. A batch is 32 documents of 400 source and 100 target tokens; the vocabulary has
16,000 pieces.

Without --networks, `small` with and without the pointer takes turns with BART of
transformers, which has no pointer, at the same sizes: `bart` is BART with its defaults
(GELU, cross entropy), `bart_alike` also has our activation and label smoothing. A rate
is the median over the rounds, a ratio the median of the rounds' ratios. With --networks
each network is measured alone, one after the other.
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

from machine import chip, find_interpreter, matrix_rate
from train_workers import LABEL_SMOOTHING, TrainJob, start
from worker_process import answer, tell

BART_OF_SMALL: Mapping[str, Any] = {
    "d_model": 256,
    "encoder_layers": 4,
    "decoder_layers": 4,
    "encoder_ffn_dim": 1024,
    "decoder_ffn_dim": 1024,
    "encoder_attention_heads": 8,
    "decoder_attention_heads": 8,
    "max_position_embeddings": 1024,
    "dropout": 0.1,
}
PEERS: Mapping[str, Mapping[str, Any]] = {
    "bart": BART_OF_SMALL,
    "bart_alike": {
        **BART_OF_SMALL,
        "activation_function": "relu",
        "label_smoothing": LABEL_SMOOTHING,
    },
}
# The networks of `precis train --network` and its switches, a row of the table each.
NETWORKS: Mapping[str, Mapping[str, Any]] = {
    "tiny": {"size": "tiny"},
    "four_layers": {"size": "four_layers"},
    "small": {"size": "small"},
    "small.no_pointer": {"size": "small", "pointer": False},
    "six_layers": {"size": "six_layers"},
    "base": {"size": "base"},
    "decoder_only.tiny": {"size": "tiny", "architecture": "decoder_only"},
    "decoder_only.small": {"size": "small", "architecture": "decoder_only"},
    "recurrent.tiny": {"size": "tiny", "architecture": "recurrent"},
    "recurrent.small": {"size": "small", "architecture": "recurrent"},
}
COMPARED = ("small.no_pointer", "small")
ENGINES = ("ours", "transformers")
PRECISIONS = ("float32", "mixed_bfloat16")
HEADER = (
    "\n| network | parameters | tokens/s | min to max | to the first |\n"
    "|---|---|---|---|---|"
)


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the benchmark and prints it."""
    options = parse_options(argv)
    for line in report(options):
        print(line, flush=True)


def parse_options(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options, with lists for `networks`, `engines` and `precisions`."""
    parser = argparse.ArgumentParser(
        description="Tokens a second in training, beside PyTorch or of all named "
        "networks."
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
        default=",".join(ENGINES),
        help=f"some of {', '.join(ENGINES)} (default: both)",
    )
    parser.add_argument(
        "--precisions",
        default="float32",
        help=f"some of {', '.join(PRECISIONS)} (default: float32)",
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
    _split_lists(parser, options)
    return options


def _split_lists(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    allowed: Mapping[str, Sequence[str]] = {
        "networks": tuple(NETWORKS),
        "engines": ENGINES,
        "precisions": PRECISIONS,
    }
    for name, known in allowed.items():
        value = getattr(options, name) or ""
        names = [part for part in value.split(",") if part]
        if not set(names) <= set(known):
            parser.error(f"--{name}: {value!r} is not a list of {', '.join(known)}")
        setattr(options, name, names)


def report(options: argparse.Namespace) -> Iterator[str]:
    """The lines of the report."""
    yield f"machine chip {chip()}"
    yield f"machine threads {options.threads} of {os.cpu_count()}"
    peak = matrix_rate("float32", options.threads)
    yield f"machine matrix_rate.float32 {peak / 1e9:.0f} GFLOP/s"
    rows: list[str] = []
    if options.networks:
        for name in options.networks:
            jobs = our_jobs([name], options)
            lines, new_rows = measured(jobs, {}, options.rounds)
            yield from lines
            rows += new_rows
    else:
        pythons: dict[str, str] = {}
        for kind in options.engines:
            interpreter = find_interpreter(kind, options.peers)
            if interpreter is None:
                yield f"{kind} not installed"
            else:
                pythons[kind], versions = interpreter
                yield f"{kind} version {versions}"
        jobs = [job for job in compared_jobs(options) if job.kind in pythons]
        lines, rows = measured(jobs, pythons, options.rounds)
        yield from lines
    yield HEADER
    yield from rows


def our_jobs(names: Sequence[str], options: argparse.Namespace) -> list[TrainJob]:
    """The trainings of some of NETWORKS, in each precision."""
    return [
        TrainJob("ours", name, NETWORKS[name], **settings)
        for settings in _job_settings(options)
        for name in names
    ]


def compared_jobs(options: argparse.Namespace) -> list[TrainJob]:
    """The trainings that are compared; ratios in the table are to the first."""
    peers = [
        TrainJob("transformers", label, shape, **settings)
        for settings in _job_settings(options)
        for label, shape in PEERS.items()
    ]
    return [*peers, *our_jobs(COMPARED, options)]


def _job_settings(options: argparse.Namespace) -> list[dict[str, Any]]:
    return [
        {
            "precision": precision,
            "documents": options.documents,
            "threads": options.threads,
        }
        for precision in options.precisions
    ]


def measured(
    jobs: Sequence[TrainJob], pythons: Mapping[str, str], rounds: int
) -> tuple[list[str], list[str]]:
    """The lines and the table's rows of trainings that take turns."""
    parameters, seconds = measure(jobs, pythons, rounds)
    lines: list[str] = []
    rows: list[str] = []
    for job in jobs:
        name = job.name
        rates = [job.tokens / each for each in seconds[name]]
        median = statistics.median(rates)
        lines += [
            f"{name} parameters {parameters[name]} weights",
            f"{name} step {1000 * job.tokens / median:.0f} ms",
            f"{name} tokens_per_s {median:.0f} tokens/s",
            f"{name} tokens_per_s_min {min(rates):.0f} tokens/s",
            f"{name} tokens_per_s_max {max(rates):.0f} tokens/s",
        ]
        peers = [peer for peer in jobs if job.kind == "ours" and peer.kind != "ours"]
        for peer in peers:
            times = ratio(seconds[peer.name], seconds[name])
            lines.append(f"{name} ratio_to_{peer.name} {times:.3f} times")
        columns = [
            name,
            f"{parameters[name]:,}",
            f"{median:,.0f}",
            f"{min(rates):,.0f} to {max(rates):,.0f}",
            f"{ratio(seconds[jobs[0].name], seconds[name]):.2f}",
        ]
        rows.append(f"| {' | '.join(columns)} |")
    return lines, rows


def ratio(others: Sequence[float], ours: Sequence[float]) -> float:
    """How many times as fast: the median over the rounds of the ratio of two times."""
    return statistics.median(
        other / our for other, our in zip(others, ours, strict=True)
    )


def measure(
    jobs: Sequence[TrainJob], pythons: Mapping[str, str], rounds: int
) -> tuple[dict[str, int], dict[str, list[float]]]:
    """Runs trainings that take turns in alternating order.

    Args:
      jobs: the trainings.
      pythons: the interpreter of each engine; `ours` defaults to this one.
      rounds: how often each is timed.

    Returns:
      The number of parameters, and the seconds of each round, by name.
    """
    parameters: dict[str, int] = {}
    seconds: dict[str, list[float]] = {job.name: [] for job in jobs}
    workers: dict[str, subprocess.Popen[str]] = {}
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        try:
            # One after the other, so that no setup overlaps with a warm-up.
            for job in jobs:
                python = pythons.get(job.kind, sys.executable)
                worker = workers[job.name] = start(python, job, errors)
                parameters[job.name] = int(_ask(worker, job, errors, "PARAMETERS"))
                _ask(worker, job, errors, "READY")
            for number in range(rounds):
                for job in jobs if number % 2 == 0 else reversed(jobs):
                    time.sleep(0.3)  # until the threads of the last engine sleep
                    took = _ask(workers[job.name], job, errors, "T", "go")
                    seconds[job.name].append(took)
        finally:
            for worker in workers.values():
                worker.communicate()  # a worker ends with its input
    return parameters, seconds


def _ask(
    worker: subprocess.Popen[str],
    job: TrainJob,
    errors: IO[str],
    word: str,
    line: str = "",
) -> float:
    """The number that a worker answers after a word, to a line or by itself."""
    try:
        if line:
            tell(worker, line)
        return answer(worker, word)
    except (EOFError, BrokenPipeError) as error:
        errors.seek(0)
        raise SystemExit(
            f"{job.name} failed ({error}); the workers' last words were\n"
            f"{errors.read()[-2000:]}"
        ) from error


if __name__ == "__main__":
    main()
