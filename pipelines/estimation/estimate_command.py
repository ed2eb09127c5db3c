"""`--estimate` of a command: what it prints in place of running the job."""

from collections.abc import Mapping, Sequence
from typing import Any

from precis.pipelines.options.estimate import EstimateOptions


def print_estimate(
    command: str,
    options: EstimateOptions,
    values: Mapping[str, Any],
    beam_args: Sequence[str],
) -> int:
    """Estimates a command, prints what it would take, and returns the exit code."""
    from precis.pipelines.estimation.estimate import estimate_job
    from precis.pipelines.estimation.estimate_report import report

    estimate = estimate_job(command, values, beam_args)
    for line in report(estimate, price_per_hour=options.price_per_hour):
        print(line)
    return 0
