"""The results of `decode.py` as lines and as rows of its table."""

import statistics
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from decode_networks import SIZES, flops
from decode_workers import Engine

REFERENCE = "transformers"  # the engine whose tokens the others are compared with
# The precision of matrix products in each precision of an engine; int8 has none.
_MATRIX_PRECISIONS = {
    "float32": "float32",
    "mixed_bfloat16": "bfloat16",
    "bfloat16": "bfloat16",
}


class EngineResult(NamedTuple):
    """The measurements of one engine at one size.

    Attributes:
      rates: documents a second of each round.
      agreement: share of the reference's tokens; None where there is no comparison.
    """

    rates: list[float]
    agreement: float | None


def name_of(engine: Engine, size: str = "") -> str:
    """The name of an engine in the report, as in ours.S.float32 or
    ctranslate2.S.int8.batch8.
    """
    parts = (engine.kind, size, engine.precision, engine.label)
    return ".".join(part for part in parts if part)


def ratio(result: EngineResult, first: EngineResult) -> float:
    """The median over the rounds of the ratio of two rates."""
    return statistics.median(
        rate / other for rate, other in zip(result.rates, first.rates, strict=True)
    )


def share_of_matrix_rate(
    size: str, engine: Engine, rate: float, peaks: Mapping[str, float]
) -> float | None:
    """The share of the machine's matrix rate that an engine uses at `rate` documents a
    second; None for a precision without a matrix rate.
    """
    peak = peaks.get(_MATRIX_PRECISIONS.get(engine.precision, ""))
    return None if peak is None else rate * flops(SIZES[size]) / peak


def result_lines(
    size: str,
    engine: Engine,
    results: Mapping[Engine, EngineResult],
    peaks: Mapping[str, float],
) -> Iterator[str]:
    """The results of one engine, a line each."""
    result = results[engine]
    first = next(iter(results))
    name = name_of(engine, size)
    median = statistics.median(result.rates)
    threads = f"{engine.processes}x{engine.callers}x{engine.op_threads}"
    yield f"{name} processes_x_callers_x_op_threads {threads} threads"
    yield f"{name} docs_per_s {median:.3f} docs/s"
    yield f"{name} docs_per_s_min {min(result.rates):.3f} docs/s"
    yield f"{name} docs_per_s_max {max(result.rates):.3f} docs/s"
    yield f"{name} ratio_to_{name_of(first)} {ratio(result, results[first]):.3f} times"
    share = share_of_matrix_rate(size, engine, median, peaks)
    if share is not None:
        yield f"{name} share_of_matrix_rate {share:.3f} share"
    if result.agreement is not None:
        yield f"{name} agreement_with_hf {result.agreement:.3f} share"
    elif engine.kind not in (REFERENCE, "keras_hub"):
        reason = "too slow" if size == "B" else f"{REFERENCE} did not run"
        yield f"{name} agreement_with_hf not compared ({reason})"


def table_rows(
    size: str, results: Mapping[Engine, EngineResult], peaks: Mapping[str, float]
) -> list[str]:
    """A row for each engine; of those that differ in their batch alone, the fastest."""
    first = next(iter(results.values()))
    rows = []
    for engine in _fastest_batches(results):
        result = results[engine]
        median = statistics.median(result.rates)
        spread = f"{min(result.rates):.2f} to {max(result.rates):.2f}"
        agreement = "-"
        if result.agreement is not None:
            agreement = f"{100 * result.agreement:.1f} %"
        share = share_of_matrix_rate(size, engine, median, peaks)
        columns = [
            size,
            name_of(engine),
            f"{median:.2f}",
            spread,
            f"{ratio(result, first):.2f}",
            agreement,
            "-" if share is None else f"{100 * share:.0f} %",
        ]
        rows.append(f"| {' | '.join(columns)} |")
    return rows


def _fastest_batches(results: Mapping[Engine, EngineResult]) -> list[Engine]:
    fastest: dict[tuple[Any, ...], Engine] = {}
    for engine, result in results.items():
        without_batch = (
            engine.kind,
            engine.precision,
            engine.processes,
            engine.callers,
            engine.op_threads,
        )
        known = fastest.get(without_batch)
        if known is None or statistics.median(result.rates) > statistics.median(
            results[known].rates
        ):
            fastest[without_batch] = engine
    return list(fastest.values())
