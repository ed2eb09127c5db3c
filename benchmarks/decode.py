"""The speed of beam search: summaries a second of this project and of every installed
peer, on the same networks and documents.

    python benchmarks/decode.py [--peers PYTHON] [--sizes S,B] [--rounds 3]
        [--documents N] [--engines ours,ctranslate2] [--modes processes]

prints `name metric value unit` lines, then a table. The networks have random weights:
BART (S: 4+4 layers of width 256, B: 12+6 of 768), a small Qwen3 (8 layers of width 512)
and the text part of a small T5Gemma 2 (6+6 of 512). The work is 400 tokens in and
exactly 100 out, with beam width 4 and no trigram twice. The engines take turns in
alternating order. A rate is the median over the rounds, a ratio the median of the
rounds' ratios to the first engine.

The peers are CTranslate2 (with transformers and PyTorch, which convert its weights),
transformers and KerasHub. The first interpreter of `--peers` that has a peer runs it.
Engines do the same work if they agree with Hugging Face's `generate`, which the report
gives as the share of equal tokens. Of Qwen3, CTranslate2 lets a trigram of the prompt
be written again, and the others do not. KerasHub is compared by speed alone: it has its
own weights and cannot forbid trigrams. `mixed_bfloat16` is left out where the chip
multiplies slower in it than in float32.
"""

import argparse
import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from decode_networks import SIZES, Size, flops, make_network
from decode_report import (
    REFERENCE,
    EngineResult,
    name_of,
    result_lines,
    table_rows,
)
from decode_workers import ENGINES, DecodeJob, Engine, start
from machine import chip, find_interpreter, matrix_rate
from worker_process import answer, tell

MODES = ("processes", "callers", "op_threads")
HEADER = (
    "| size | engine | documents/s | min to max | to the first | same tokens as HF "
    "| of the matrix rate |\n|---|---|---|---|---|---|---|"
)


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the benchmark and prints it."""
    options = parse_options(argv)
    with contextlib.ExitStack() as stack:
        options.work = os.path.abspath(
            options.work or stack.enter_context(tempfile.TemporaryDirectory())
        )
        for line in report(options):
            print(line, flush=True)


def parse_options(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options, with lists for `sizes`, `engines` and `modes`."""
    parser = argparse.ArgumentParser(
        description="Documents a second in beam search, beside the peers that are "
        "installed."
    )
    parser.add_argument(
        "--peers",
        action="append",
        help="an interpreter that has peers; may be given again (default: this one)",
    )
    parser.add_argument(
        "--sizes", default="S,B", help=f"some of {', '.join(SIZES)} (default: S,B)"
    )
    parser.add_argument(
        "--engines",
        default=",".join(ENGINES),
        help=f"some of {', '.join(ENGINES)} (default: all)",
    )
    parser.add_argument(
        "--modes",
        default="processes",
        help=f"ours: some of {', '.join(MODES)} (default: processes)",
    )
    parser.add_argument("--documents", type=int, help="documents a round (default: 64)")
    parser.add_argument(
        "--rounds",
        type=int,
        default=3,
        help="rounds of which the median counts (default: 3)",
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=2,
        help="processor cores that every engine may use (default: 2)",
    )
    parser.add_argument(
        "--work",
        help="folder where networks and converted networks are kept "
        "(default: a temporary one)",
    )
    options = parser.parse_args(argv)
    _split_lists(parser, options)
    return options


def _split_lists(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    allowed: Mapping[str, Sequence[str]] = {
        "sizes": tuple(SIZES),
        "engines": tuple(ENGINES),
        "modes": MODES,
    }
    for name, known in allowed.items():
        value = getattr(options, name)
        names = value.split(",")
        if not set(names) <= set(known):
            parser.error(f"--{name}: {value!r} is not a list of {', '.join(known)}")
        setattr(options, name, names)


def report(options: argparse.Namespace) -> Iterator[str]:
    """The lines of the report."""
    yield f"machine chip {chip()}"
    yield f"machine threads {options.threads} of {os.cpu_count()}"
    pythons: dict[str, str] = {}
    for kind in options.engines:
        interpreter = find_interpreter(kind, options.peers)
        if interpreter is None:
            yield f"{kind} not installed"
        else:
            pythons[kind], versions = interpreter
            yield f"{kind} version {versions}"
    peaks = {
        precision: matrix_rate(precision, options.threads)
        for precision in ("float32", "bfloat16")
    }
    for precision, rate in peaks.items():
        yield f"machine matrix_rate.{precision} {rate / 1e9:.0f} GFLOP/s"
    rows = []
    for size in options.sizes:
        work = flops(SIZES[size]) / 1e9
        yield f"work.{size} flops {work:.1f} GFLOP/document"
        if "keras_hub" in pythons and not is_for_keras_hub(SIZES[size]):
            reason = "of these it has BART with one number of layers for both sides"
            yield f"keras_hub.{size} left out: {reason}"
        engines = engines_of(options, pythons, SIZES[size])
        # Without units for bfloat16 it takes minutes, and nobody would choose it.
        if peaks["bfloat16"] < peaks["float32"]:
            engines = [each for each in engines if each.precision != "mixed_bfloat16"]
        results = measure(size, engines, pythons, options)
        for engine in results:
            yield from result_lines(size, engine, results, peaks)
        rows += table_rows(size, results, peaks)
    rates = ", ".join(
        f"{precision} {rate / 1e9:.0f}" for precision, rate in peaks.items()
    )
    yield f"\n{chip()}, {options.threads} cores; matrix products at {rates} GFLOP/s\n"
    yield HEADER
    yield from rows


def engines_of(
    options: argparse.Namespace, pythons: Mapping[str, str], size: Size
) -> list[Engine]:
    """The engines to measure; the others are compared with the first."""
    threads = options.threads
    engines = [
        Engine("ctranslate2", "float32", callers=threads),
        Engine("ctranslate2", "int8", "batch8", batch=8, callers=threads),
        Engine("ctranslate2", "int8", "batch16", callers=threads),
    ]
    for mode in options.modes:
        label = "" if mode == "processes" else mode
        # The batches of `precis summarize`.
        for precision, batch in (("float32", 16), ("mixed_bfloat16", 32)):
            engine = Engine("ours", precision, label, batch, **{mode: threads})
            engines.append(engine)
    engines.append(Engine("transformers", "float32", op_threads=threads))
    if is_for_keras_hub(size):
        engines.append(Engine("keras_hub", "float32", op_threads=threads))
    return [engine for engine in engines if engine.kind in pythons]


def is_for_keras_hub(size: Size) -> bool:
    """Whether KerasHub has networks of this size."""
    return size.kind == "bart" and size.encoder_layers == size.decoder_layers


def measure(
    size: str,
    engines: Sequence[Engine],
    pythons: Mapping[str, str],
    options: argparse.Namespace,
) -> dict[Engine, EngineResult]:
    """Starts a worker for each engine, compares their tokens and times them in turn."""
    folder = os.path.join(options.work, size)
    documents = options.documents or SIZES[size].documents
    make_network(folder, size, pythons)
    log = os.path.join(options.work, "workers.log")
    workers: dict[Engine, subprocess.Popen[str]] = {}
    seconds: dict[Engine, list[float]] = {engine: [] for engine in engines}
    with open(log, "a", encoding="utf-8") as errors:
        try:
            # One after the other, so that no setup overlaps with a warm-up.
            for engine in engines:
                job = DecodeJob(engine, size, folder, 0, documents)
                workers[engine] = start(pythons[engine.kind], job, errors)
                _ask(workers[engine], engine, log)
            agreement = agreements(size, folder, workers, log)
            for number in range(options.rounds):
                order = list(workers)
                if number % 2:
                    order.reverse()
                for engine in order:
                    time.sleep(0.3)  # until the threads of the last engine sleep
                    seconds[engine].append(_ask(workers[engine], engine, log, "go"))
        finally:
            for worker in workers.values():
                worker.communicate()  # a worker ends with its input
    results = {}
    for engine in engines:
        rates = [documents / each for each in seconds[engine]]
        results[engine] = EngineResult(rates, agreement.get(engine))
    return results


def agreements(
    size: str, folder: str, workers: Mapping[Engine, subprocess.Popen[str]], log: str
) -> dict[Engine, float]:
    """The share of tokens that each engine has in common with the reference, whose
    tokens are kept in the folder; empty without a reference, and for B.
    """
    if size == "B":  # the reference alone would take minutes
        return {}
    reference_path = os.path.join(folder, f"{REFERENCE}.npy")
    for engine, worker in workers.items():
        if engine.kind == REFERENCE:
            _ask(worker, engine, log, f"tokens {reference_path}")
    if not os.path.exists(reference_path):
        return {}
    reference = np.load(reference_path)
    shares = {}
    with tempfile.TemporaryDirectory() as temporary:
        path = os.path.join(temporary, "tokens.npy")
        for engine, worker in workers.items():
            if engine.kind not in (REFERENCE, "keras_hub"):
                _ask(worker, engine, log, f"tokens {path}")
                shares[engine] = float(np.mean(np.load(path) == reference))
    return shares


def _ask(
    worker: subprocess.Popen[str], engine: Engine, log: str, line: str = ""
) -> float:
    """The seconds that a worker took to follow the line, or to set itself up."""
    try:
        if line:
            tell(worker, line)
        return answer(worker, "T" if line else "READY")
    except (EOFError, BrokenPipeError) as error:
        raise SystemExit(
            f"{name_of(engine)} failed ({error}); {log} says why, and --engines "
            f"without {engine.kind} leaves it out"
        ) from error


if __name__ == "__main__":
    main()
