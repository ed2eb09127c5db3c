"""The speed of training steps and of beam search on the device that TensorFlow finds: a
GPU, else the processor.

    python benchmarks/accelerator.py [--network small] [--documents 1,16,64]
        [--rounds 3] [--quick]

prints one table, each row when it is measured. A training step reads 400 and writes 100
tokens of each of 32 documents. A search reads 400 tokens and writes exactly 32, with
beam width 4 and no trigram twice. Both compute in float32 and in `mixed_bfloat16`, as
the commands run them (`graph`) and with a step that XLA compiles (`XLA`): of a training
all of it, of a search the network's. `--quick` has less work, in float32 alone: to see
that all runs.

- first s: seconds of the first run, in which TensorFlow traces and XLA compiles. A
  search is traced in its first row.
- documents/s, tokens/s: the median of the rounds after it, with the transfers to the
  device and back. Tokens are those a training reads and writes, or a search writes.
- shapes: those of the step in one run, which XLA compiles one by one.
- peak MiB: the most memory of the device in use, where TensorFlow counts it.

Precis searches 64 documents together at most; larger numbers show what the device could
do. A row has the error of a job that fails, for instance without memory.
"""

import argparse
import functools
import gc
import itertools
import os
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from machine import chip
from train_workers import FIRST_TOKEN, PAD, VOCABULARY_SIZE, TrainJob, precis_training

from precis.model.inference.searcher import TensorFlowSearcher
from precis.model.network.architectures import named_network
from precis.model.network.build import build_network
from precis.model.network.generator import Generator
from precis.model.search.config import SearchConfig, SpecialTokens

HEADER = (
    "| job | precision | step | documents | first s | documents/s | tokens/s | shapes "
    "| peak MiB |\n|---|---|---|---|---|---|---|---|---|"
)
STEPS = {"graph": False, "XLA": True}
BEAM_WIDTH = 4
START, END = 2, 3


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the benchmark and prints it."""
    options = parse_options(argv)
    print(f"{device_name()}\n\n{HEADER}", flush=True)
    ways: list[Any] = list(itertools.product(options.precisions, STEPS.items()))
    for precision, (step, is_compiled) in ways:
        job = train_job(options, precision, is_compiled)
        result = measure(precis_training(job).step, options.rounds)
        print_row(("train", precision, step), job.documents, job.tokens, "1", result)
    # They depend on neither the precision nor the compiler.
    shapes = count_shapes(options)
    for precision, (step, is_compiled) in ways:
        wrap = compiled_by_xla if is_compiled else None
        search = make_search(options, make_network(options, precision, wrap))
        for documents, count in shapes.items():
            source = random_sources(options, documents)
            result = measure(functools.partial(search, source), options.rounds)
            tokens = documents * options.written
            print_row(("search", precision, step), documents, tokens, count, result)


def parse_options(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options, with the numbers of tokens."""
    parser = argparse.ArgumentParser(description="Training and search on this device.")
    parser.add_argument("--network", default="small", help="(default: small)")
    parser.add_argument(
        "--documents", default="1,16,64", help="of a search (default: 1,16,64)"
    )
    parser.add_argument("--rounds", type=int, default=3, help="(default: 3)")
    parser.add_argument("--quick", action="store_true", help="less work")
    options = parser.parse_args(argv)
    options.documents = [int(count) for count in options.documents.split(",")]
    options.settings = {"size": options.network}
    options.precisions = ("float32", "mixed_bfloat16")
    options.trained, options.source, options.target, options.written = 32, 400, 100, 32
    if options.quick:
        options.settings = {"size": "tiny", "encoder_layers": 1, "decoder_layers": 1}
        options.precisions, options.documents, options.rounds = ("float32",), [2], 1
        options.trained, options.source, options.target, options.written = 2, 16, 8, 12
    return options


def device_name() -> str:
    """The device, how it computes float32, and the version of TensorFlow."""
    name = f"{chip()}, {os.cpu_count()} cores"
    for gpu in tf.config.list_physical_devices("GPU")[:1]:
        details = tf.config.experimental.get_device_details(gpu)
        is_short = tf.config.experimental.tensor_float_32_execution_enabled()
        name = f"{details.get('device_name')}, TF32 {'on' if is_short else 'off'}"
    return f"{name}, TensorFlow {tf.__version__}"


def train_job(
    options: argparse.Namespace, precision: str, is_compiled: bool
) -> TrainJob:
    """A training step."""
    return TrainJob(
        kind="ours",
        label=options.network,
        settings=options.settings,
        precision=precision,
        documents=options.trained,
        source_tokens=options.source,
        target_tokens=options.target,
        threads=0,
        jit_compile=is_compiled,
    )


def make_network(
    options: argparse.Namespace,
    precision: str = "float32",
    wrap: Callable[[Any], Any] | None = None,
) -> Generator:
    """A network with random weights, whose step may be wrapped."""
    config = named_network(
        **options.settings,
        vocabulary_size=VOCABULARY_SIZE,
        pad_id=PAD,
        max_source_tokens=options.source,
        max_target_tokens=options.written,
    )
    network = build_network(config, precision=precision)
    if wrap:
        network.step = wrap(network.step)
    return network


def compiled_by_xla(step: Any) -> Any:
    """A step that XLA compiles, inside the graph of a search too."""
    return tf.function(step, autograph=False, jit_compile=True)


def make_search(
    options: argparse.Namespace, network: Generator
) -> Callable[[np.ndarray], object]:
    """The search of sources int32 [B, S] as `precis summarize` runs it."""
    config = SearchConfig(
        beam_width=BEAM_WIDTH,
        min_summary_tokens=options.written - 1,
        max_summary_tokens=options.written,
        no_repeat_ngram=3,
    )
    # The end token is suppressed, so that every summary has its full length.
    special = SpecialTokens(
        start_id=START, end_id=END, pad_id=PAD, suppressed=(PAD, START, END)
    )
    searcher = TensorFlowSearcher(network, config=config, special=special)
    return lambda source: [
        part.numpy() for part in searcher.search_batch(tf.constant(source))
    ]


def random_sources(options: argparse.Namespace, documents: int) -> np.ndarray:
    """Sources without special tokens, int32 [B, S]."""
    rng = np.random.default_rng(0)
    shape = (documents, options.source)
    return rng.integers(FIRST_TOKEN, VOCABULARY_SIZE, shape).astype("int32")


def count_shapes(options: argparse.Namespace) -> dict[int, str]:
    """How many shapes the step has in each search; `-` where it fails."""
    seen: set[tuple[tuple[int, ...], ...]] = set()

    def see(*shapes: tf.Tensor) -> None:
        seen.add(tuple(tuple(shape.numpy().tolist()) for shape in shapes))

    def watched(step: Any) -> Any:
        def watched_step(tokens: Any, cache: Any, index: Any) -> Any:
            tf.py_function(see, list(map(tf.shape, keras.tree.flatten(cache))), [])
            return step(tokens, cache, index)

        return watched_step

    search = make_search(options, make_network(options, wrap=watched))
    counts = {}
    for documents in options.documents:
        seen.clear()
        result = measure(functools.partial(search, random_sources(options, documents)))
        counts[documents] = "-" if isinstance(result, str) else str(len(seen))
    return counts


class Measured(NamedTuple):
    """What a job took.

    Attributes:
      first, seconds: of its first run, and of a later one.
      peak: bytes of the device; None where it does not count them.
    """

    first: float
    seconds: float
    peak: int | None


def measure(work: Callable[[], object], rounds: int = 0) -> Measured | str:
    """Times a job, after a first run; the error where it fails."""
    gc.collect()  # the networks of the jobs before
    device = "GPU:0" if tf.config.list_logical_devices("GPU") else ""
    if device:
        tf.config.experimental.reset_memory_stats(device)
    seconds = []
    try:
        for _ in range(rounds + 1):
            started = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - started)
    except tf.errors.OpError as error:
        return str(error).splitlines()[0][:200]
    peak = tf.config.experimental.get_memory_info(device)["peak"] if device else None
    return Measured(seconds[0], statistics.median(seconds[1:] or seconds), peak)


def print_row(
    names: Sequence[str],
    documents: int,
    tokens: int,
    shapes: str,
    result: Measured | str,
) -> None:
    """Prints a row of the table."""
    if isinstance(result, str):
        columns = [result]
    else:
        columns = [
            f"{result.first:.1f}",
            f"{documents / result.seconds:.2f}",
            f"{tokens / result.seconds:,.0f}",
            shapes,
            "-" if result.peak is None else f"{result.peak / 2**20:,.0f}",
        ]
    print(f"| {' | '.join([*names, str(documents), *columns])} |", flush=True)


if __name__ == "__main__":
    main()
