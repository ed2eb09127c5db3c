"""The lines that `--estimate` prints."""

from collections.abc import Iterator

from precis.pipelines.estimation.estimate import Estimate
from precis.pipelines.jobs.accounts import OUTCOMES
from precis.pipelines.terminal.last_lines import duration, listed

_WORKERS = (1, 2, 8, 32, 128)


def report(estimate: Estimate, *, price_per_hour: float) -> Iterator[str]:
    """The lines of an estimate."""
    corpus, run = estimate.corpus, estimate.run
    yield (
        f"documents: about {corpus.records:,.0f} in {len(corpus.tasks):,} tasks "
        f"({corpus.counted_records:,} counted)"
    )
    outcomes = {
        name: round(estimate.scaled(run.figures.counts.get(name, 0)))
        for name in OUTCOMES
        if run.figures.counts.get(name)
    }
    yield f"of a sample of {run.records:,}, scaled: {listed(outcomes)}"
    if run.figures.source_tokens:
        yield (
            f"tokens: {estimate.scaled(run.figures.source_tokens):,.0f} read, "
            f"{estimate.scaled(run.figures.written_tokens):,.0f} written"
        )
    yield f"output: {estimate.scaled(run.figures.output_bytes) / 1e6:,.1f} MB"
    yield (
        f"rate: {_rate(estimate)}; before the first and after the last document "
        f"{estimate.serial_seconds:.1f} s"
    )
    has_price = price_per_hour > 0
    yield f"{'workers':>9}{'seconds':>14}{'time':>12}{'cost' * has_price:>14}".rstrip()
    for workers in sorted({*_WORKERS, estimate.workers}):
        seconds = estimate.seconds(workers)
        cost = f"{seconds / 3600 * workers * price_per_hour:,.2f}" * has_price
        mark = "  this command" * (workers == estimate.workers)
        line = f"{workers:>9,}{seconds:>14,.1f}{duration(seconds):>12}{cost:>14}"
        yield line.rstrip() + mark
    yield (
        "not known from a sample: equal texts far apart, which are summarized once; "
        f"slower files. Estimated in {estimate.took_seconds:.0f} s."
    )


def _rate(estimate: Estimate) -> str:
    """The documents a second, or that a sample is too small to tell them."""
    if not estimate.seconds_per_record:
        return "the sample is too small to tell the time of a document"
    workers = f"{estimate.workers} worker{'s' * (estimate.workers > 1)}"
    return f"{1 / estimate.seconds_per_record:,.1f} documents/s with {workers}"
