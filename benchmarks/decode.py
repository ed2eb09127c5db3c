"""How fast beam search is: summaries a second of this project and of every peer that is
installed, on the same networks and documents.

    python benchmarks/decode.py [--peers PYTHON] [--sizes S,B] [--rounds 3] [--documents
    N] [--engines ours,ctranslate2] [--modes processes]

prints `name metric value unit` lines, then a table. The networks are BART with random
weights (S: 4+4 layers of width 256, B: 12+6 of 768), the work 400 tokens in and exactly
100 out, beam 4, no trigram twice. The engines take turns, in alternating order; a rate
is the median over the rounds, a ratio the median of the rounds' ratios to the first
engine. Peers are looked for in the interpreters that `--peers` names, the first that
has one counts: CTranslate2 (with transformers and PyTorch, which convert its weights),
    transformers, KerasHub. Whether an engine does the same work is the share of tokens
    it has in common with Hugging Face's `generate`. KerasHub is
compared by speed alone: its weights are its own, and it cannot forbid trigrams.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from decode_networks import SIZES, Size, flops, make_network
from decode_workers import Engine, Job, answer, start, tell

# What must be there to run an engine; CTranslate2 needs the others to convert weights.
NEEDED = {
    "ours": ("tensorflow", "keras", "model"),
    "ctranslate2": ("ctranslate2", "transformers", "torch"),
    "transformers": ("transformers", "torch"),
    "keras_hub": ("keras_hub", "tensorflow"),
}
DISTRIBUTIONS = {
    "keras_hub": "keras-hub",
    "model": "precis",
}  # where a module's is called otherwise
REFERENCE = "transformers"
PRECISION_OF_RATE = {
    "float32": "float32",
    "mixed_bfloat16": "bfloat16",
    "bfloat16": "bfloat16",
}


class Figures(NamedTuple):
    """What was measured of one engine at one size.

    Attributes:
      rates: documents a second of each round.
      agreement: share of the reference's tokens; None where there is no comparison.
    """

    rates: list[float]
    agreement: float | None


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the benchmark and prints it."""
    parser = argparse.ArgumentParser(
        description="Documents a second in beam search, beside the peers that are installed."
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
        default=",".join(NEEDED),
        help=f"some of {', '.join(NEEDED)} (default: all)",
    )
    parser.add_argument(
        "--modes",
        default="processes",
        help="ours: some of processes, callers, op_threads (default: processes)",
    )
    parser.add_argument(
        "--documents", type=int, help="documents a round (default: 64 for S, 32 for B)"
    )
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
        help="folder where networks and converted networks are kept (default: a temporary one)",
    )
    options = parser.parse_args(argv)
    for name, known in (
        ("sizes", SIZES),
        ("engines", NEEDED),
        ("modes", ("processes", "callers", "op_threads")),
    ):
        chosen = getattr(options, name).split(",")
        if not set(chosen) <= set(known):
            parser.error(
                f"--{name}: {getattr(options, name)!r} is not a list of {', '.join(known)}"
            )
        setattr(options, name, chosen)
    with contextlib.ExitStack() as stack:
        options.work = os.path.abspath(
            options.work or stack.enter_context(tempfile.TemporaryDirectory())
        )
        for line in report(options):
            print(line, flush=True)


def report(options: argparse.Namespace) -> Iterator[str]:
    """The lines of the report."""
    yield f"machine chip {chip()}"
    yield f"machine threads {options.threads} of {os.cpu_count()}"
    pythons: dict[str, str] = {}
    for kind in options.engines:
        for python in (
            [sys.executable] if kind == "ours" else options.peers or [sys.executable]
        ):
            versions = installed(python, NEEDED[kind])
            if None not in versions.values():
                pythons.setdefault(kind, python)
                yield f"{kind} version {', '.join(f'{DISTRIBUTIONS.get(name, name)} {version}' for name, version in versions.items())}"
                break
        else:
            yield f"{kind} not installed"
    peaks = {
        precision: matrix_rate(precision, options.threads)
        for precision in ("float32", "bfloat16")
    }
    for precision, rate in peaks.items():
        yield f"machine matrix_rate.{precision} {rate / 1e9:.0f} GFLOP/s"
    rows = []
    for size in options.sizes:
        yield f"work.{size} flops {flops(SIZES[size]) / 1e9:.1f} GFLOP/document"
        if "keras_hub" in pythons and not is_for_keras_hub(SIZES[size]):
            yield f"keras_hub.{size} left out: its BART has one number of layers for both sides"
        figures = measure(
            size, engines(options, pythons, SIZES[size]), pythons, options
        )
        yield from (
            line
            for engine, found in figures.items()
            for line in lines(size, engine, found, figures, peaks)
        )
        rows += table_rows(size, figures, peaks)
    rates = ", ".join(
        f"{precision} {rate / 1e9:.0f}" for precision, rate in peaks.items()
    )
    yield f"\n{chip()}, {options.threads} cores; matrix products at {rates} GFLOP/s\n"
    yield "| size | engine | documents/s | min to max | to the first | same tokens as HF | of the matrix rate |"
    yield "|---|---|---|---|---|---|---|"
    yield from rows


def engines(
    options: argparse.Namespace, pythons: Mapping[str, str], size: Size
) -> list[Engine]:
    """The ways to decode that are measured, the one that the others are compared with
    first.
    """
    threads = options.threads
    ours = [
        Engine(
            "ours", precision, "" if mode == "processes" else mode, **{mode: threads}
        )
        for mode in options.modes
        for precision in ("float32", "mixed_bfloat16")
    ]
    peers = [
        Engine("ctranslate2", "float32", callers=threads),
        Engine("ctranslate2", "int8", "batch8", batch=8, callers=threads),
        Engine("ctranslate2", "int8", "batch16", callers=threads),
        *ours,
        Engine("transformers", "float32", op_threads=threads),
        *[Engine("keras_hub", "float32", op_threads=threads)][: is_for_keras_hub(size)],
    ]
    return [engine for engine in peers if engine.kind in pythons]


def is_for_keras_hub(size: Size) -> bool:
    """Whether KerasHub has networks of this size."""
    return size.encoder_layers == size.decoder_layers


def measure(
    size: str,
    chosen: Sequence[Engine],
    pythons: Mapping[str, str],
    options: argparse.Namespace,
) -> dict[Engine, Figures]:
    """Starts a worker for each engine, compares what they write and times them in turn."""
    folder, documents = (
        os.path.join(options.work, size),
        options.documents or SIZES[size].documents,
    )
    make_network(folder, size, pythons)
    log = os.path.join(options.work, "workers.log")
    workers: dict[Engine, subprocess.Popen[str]] = {}
    seconds: dict[Engine, list[float]] = {engine: [] for engine in chosen}
    with open(log, "a", encoding="utf-8") as errors:
        try:
            for engine in (
                chosen
            ):  # one after the other, so that none is set up while another warms up
                workers[engine] = start(
                    pythons[engine.kind],
                    Job(engine, size, folder, 0, documents),
                    errors,
                )
                _ask(workers[engine], engine, log)
            agreement = agreements(size, folder, workers, log)
            for number in range(options.rounds):
                for engine in list(workers)[:: 1 if number % 2 == 0 else -1]:
                    time.sleep(0.3)  # until the threads of the one before sleep
                    seconds[engine].append(_ask(workers[engine], engine, log, "go"))
        finally:
            for worker in workers.values():
                worker.communicate()  # the end of its input ends it
    return {
        engine: Figures(
            [documents / each for each in seconds[engine]], agreement.get(engine)
        )
        for engine in chosen
    }


def agreements(
    size: str, folder: str, workers: Mapping[Engine, subprocess.Popen[str]], log: str
) -> dict[Engine, float]:
    """The share of tokens that each engine has in common with the reference, which is
    kept; nothing where there is none, or for B.
    """
    reference = os.path.join(folder, f"{REFERENCE}.npy")
    if size == "B":  # the reference alone would take minutes
        return {}
    compared = sorted(
        (engine for engine in workers if engine.kind != "keras_hub"),
        key=lambda engine: engine.kind != REFERENCE,
    )
    shares = {}
    with tempfile.TemporaryDirectory() as temporary:
        for engine in compared:
            path = (
                reference
                if engine.kind == REFERENCE
                else os.path.join(temporary, "tokens.npy")
            )
            if engine.kind == REFERENCE or os.path.exists(reference):
                _ask(workers[engine], engine, log, f"tokens {path}")
                if engine.kind != REFERENCE:
                    shares[engine] = float(np.mean(np.load(path) == np.load(reference)))
    return shares


def _ask(
    worker: subprocess.Popen[str], engine: Engine, log: str, line: str = ""
) -> float:
    """The seconds that a worker took to do what the line says, or to set itself up."""
    try:
        if line:
            tell(worker, line)
        return answer(worker, "T" if line else "READY")
    except (EOFError, BrokenPipeError) as error:
        raise SystemExit(
            f"{name_of(engine)} failed ({error}); {log} says why, and --engines without {engine.kind} leaves it out"
        ) from error


def name_of(engine: Engine, size: str = "") -> str:
    """What an engine is called in the report: ours.S.float32,
    ctranslate2.S.int8.batch8.
    """
    return ".".join(
        part for part in (engine.kind, size, engine.precision, engine.label) if part
    )


def lines(
    size: str,
    engine: Engine,
    found: Figures,
    figures: Mapping[Engine, Figures],
    peaks: Mapping[str, float],
) -> Iterator[str]:
    """The figures of one engine, a line each."""
    name, middle = name_of(engine, size), statistics.median(found.rates)
    first = next(iter(figures))
    yield f"{name} processes_x_callers_x_op_threads {engine.processes}x{engine.callers}x{engine.op_threads} threads"
    yield f"{name} docs_per_s {middle:.3f} docs/s"
    yield f"{name} docs_per_s_min {min(found.rates):.3f} docs/s"
    yield f"{name} docs_per_s_max {max(found.rates):.3f} docs/s"
    yield f"{name} ratio_to_{name_of(first)} {ratio(found, figures[first]):.3f} times"
    if (peak := peaks.get(PRECISION_OF_RATE.get(engine.precision, ""))) is not None:
        yield f"{name} share_of_matrix_rate {middle * flops(SIZES[size]) / peak:.3f} share"
    if found.agreement is not None:
        yield f"{name} agreement_with_hf {found.agreement:.3f} share"
    elif engine.kind not in (REFERENCE, "keras_hub"):
        yield f"{name} agreement_with_hf not compared ({'too slow' if size == 'B' else f'{REFERENCE} did not run'})"


def ratio(found: Figures, first: Figures) -> float:
    """The median over the rounds of the ratio of two rates."""
    return statistics.median(
        own / other for own, other in zip(found.rates, first.rates, strict=True)
    )


def table_rows(
    size: str, figures: Mapping[Engine, Figures], peaks: Mapping[str, float]
) -> list[str]:
    """A row per engine; of those that differ in their batch alone, the fastest."""
    best: dict[tuple[Any, ...], Engine] = {}
    for engine, found in figures.items():
        alike = (
            engine.kind,
            engine.precision,
            engine.processes,
            engine.callers,
            engine.op_threads,
        )
        if alike not in best or statistics.median(found.rates) > statistics.median(
            figures[best[alike]].rates
        ):
            best[alike] = engine
    rows = []
    for engine in best.values():
        found, first = figures[engine], next(iter(figures.values()))
        middle, peak = (
            statistics.median(found.rates),
            peaks.get(PRECISION_OF_RATE.get(engine.precision, "")),
        )
        agreement = "-" if found.agreement is None else f"{100 * found.agreement:.1f} %"
        share = (
            "-" if peak is None else f"{100 * middle * flops(SIZES[size]) / peak:.0f} %"
        )
        spread = f"{min(found.rates):.2f} to {max(found.rates):.2f}"
        rows.append(
            f"| {size} | {name_of(engine)} | {middle:.2f} | {spread} | {ratio(found, first):.2f} | {agreement} | {share} |"
        )
    return rows


def installed(python: str, modules: Sequence[str]) -> dict[str, str | None]:
    """The versions of modules in an environment; None for one that is not there."""
    program = """
import importlib.metadata, importlib.util, json, sys
def version(module, distribution):
    if importlib.util.find_spec(module) is None: return None
    try: return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError: return ""
print(json.dumps({module: version(module, distribution) for module, distribution in json.loads(sys.argv[1]).items()}))
"""
    names = {module: DISTRIBUTIONS.get(module, module) for module in modules}
    result = subprocess.run(
        [python, "-c", program, json.dumps(names)],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(result.stdout)


def matrix_rate(precision: str, threads: int) -> float:
    """FLOP/s of large matrix products on this machine, measured in a process of its
    own.
    """
    worker = os.path.join(
        os.path.dirname(os.path.abspath(__file__)), "decode_workers.py"
    )
    command = [sys.executable, worker, "matrix_rate", precision, str(threads)]
    environment = {
        **os.environ,
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    return float(
        subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True
        ).stdout.split()[-1]
    )


def chip() -> str:
    """What the processor calls itself."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next(
            (
                line.split(":", 1)[1].strip()
                for line in file
                if line.startswith("model name")
            ),
            "unknown",
        )


if __name__ == "__main__":
    main(sys.argv[1:])
