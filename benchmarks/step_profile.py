"""Where the time of a beam search goes: milliseconds by kind of operation, as
TensorFlow's profiler sees them in one thread.

    python benchmarks/step_profile.py [--sizes S,B] [--documents 16] [--operations 0]

prints a table with a column for each size and precision. The networks and the work are
those of `decode.py`, one batch. The profiler reads the clock, so nothing else should
run on the machine.
"""

import argparse
import collections
import glob
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence

from decode_networks import SIZES, WEIGHTS, source_tokens, write_network
from decode_workers import DecodeJob, Engine, precis_engine
from machine import chip

PRECISIONS = ("float32", "mixed_bfloat16")
# The rows of the table, and the operations that each of them sums; oneDNN's versions
# have a prefix.
KINDS: Mapping[str, Sequence[str]] = {
    "products with weights, bias and activation": (
        "MatMul",
        "FusedMatMul",
        "NativeFusedMatMul",
    ),
    "products of attention": ("BatchMatMulV2", "FusedBatchMatMulV2"),
    "softmax of attention, norm of the logits": ("Softmax",),
    "transposes of heads": ("Transpose",),
    "casts": ("Cast",),
    "writes of keys, values and logits in place": ("InplaceUpdate",),
    "sums, products and means of layers": (
        *("AddV2", "Mul", "Sub", "Mean", "Square", "SquaredDifference", "Rsqrt"),
        *("Erf", "Relu", "Gelu"),
    ),
    "choice of candidates": ("Max", "TopKV2", "GatherV2", "SelectV2", "ConcatV2"),
}
REST = "other operations"
LOOP = "between operations"
WHOLE = "the whole search"


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, searches and prints the table."""
    options = parse_options(argv)
    columns: dict[str, Mapping[str, float]] = {}
    with tempfile.TemporaryDirectory() as work:
        for size in options.sizes.split(","):
            folder = os.path.join(work, size)
            write_network(os.path.join(folder, WEIGHTS), SIZES[size])
            for precision in PRECISIONS:
                engine = Engine("ours", precision)
                job = DecodeJob(engine, size, folder, 0, options.documents)
                operations, whole = profile_search(job)
                columns[f"{size} {precision}"] = by_kind(operations, whole)
                for name, (spent, count) in _longest(operations, options.operations):
                    print(f"{size}.{precision} {name} {spent:.1f} ms {count} times")
    print(f"\n{chip()}, one thread, {options.documents} documents, ms\n")
    print(*table_lines(columns), sep="\n")


def parse_options(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        description="Milliseconds of a beam search by kind of operation."
    )
    parser.add_argument(
        "--sizes", default="S,B", help=f"some of {', '.join(SIZES)} (default: S,B)"
    )
    parser.add_argument(
        "--documents", type=int, default=16, help="documents of the batch (default: 16)"
    )
    parser.add_argument(
        "--operations",
        type=int,
        default=0,
        help="how many single operations are printed for each column (default: none)",
    )
    return parser.parse_args(argv)


def profile_search(
    job: DecodeJob,
) -> tuple[Mapping[str, tuple[float, int]], float]:
    """Searches a batch under the profiler, after a search without it.

    Returns:
      The milliseconds and the number of calls of each operation, and the milliseconds
      of the search.
    """
    decode = precis_engine(job)
    source = source_tokens(SIZES[job.size], job.first, job.documents)
    decode(source)
    return profiled(lambda: decode(source))


def profiled(
    run: Callable[[], object],
) -> tuple[Mapping[str, tuple[float, int]], float]:
    """The milliseconds and the number of calls of each operation while `run` runs, and
    the milliseconds of all.
    """
    import tensorflow as tf
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    with tempfile.TemporaryDirectory() as folder:
        tf.profiler.experimental.start(
            folder,
            options=tf.profiler.experimental.ProfilerOptions(
                host_tracer_level=2, python_tracer_level=0
            ),
        )
        started = time.monotonic()
        run()
        whole = (time.monotonic() - started) * 1000
        tf.profiler.experimental.stop()
        (path,) = glob.glob(os.path.join(folder, "**", "*.xplane.pb"), recursive=True)
        with open(path, "rb") as file:
            space = xplane_pb2.XSpace.FromString(file.read())  # pyright: ignore[reportAttributeAccessIssue]  # Made at import.
    spent: collections.Counter[str] = collections.Counter()
    count: collections.Counter[str] = collections.Counter()
    for plane in space.planes:
        for line in plane.lines:
            for event in line.events:
                name = plane.event_metadata[event.metadata_id].name
                node, _, kind = name.rpartition(":")
                # Other events have no node, or are what runs operations.
                if node and not node.endswith(":") and not kind.startswith(" "):
                    kind = kind.split("#")[0].removeprefix("_").removeprefix("Mkl")
                    spent[kind] += event.duration_ps
                    count[kind] += 1
    operations = {kind: (spent[kind] / 1e9, count[kind]) for kind in spent}
    return operations, whole


def by_kind(
    operations: Mapping[str, tuple[float, int]], whole: float
) -> dict[str, float]:
    """The milliseconds of each row of the table."""
    left = {name: spent for name, (spent, _) in operations.items()}
    rows = {
        kind: sum(left.pop(name, 0.0) for name in names)
        for kind, names in KINDS.items()
    }
    rows[REST] = sum(left.values())
    rows[LOOP] = whole - sum(rows.values())
    return {WHOLE: whole, **rows}


def table_lines(columns: Mapping[str, Mapping[str, float]]) -> list[str]:
    """The table, with the share of the whole in brackets."""
    lines = [
        f"| operation | {' | '.join(columns)} |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for kind in (WHOLE, *KINDS, REST, LOOP):
        cells = [
            f"{rows[kind]:,.0f} ({rows[kind] / rows[WHOLE]:.0%})"
            for rows in columns.values()
        ]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return lines


def _longest(
    operations: Mapping[str, tuple[float, int]], number: int
) -> list[tuple[str, tuple[float, int]]]:
    return sorted(operations.items(), key=lambda item: -item[1][0])[:number]


if __name__ == "__main__":
    main()
