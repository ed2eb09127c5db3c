"""The figures of steps: brought over from the device, checked and logged."""

import math
from typing import Any, NamedTuple

from tensorboard.summary.v2 import scalar

from precis.model.errors import DataError
from precis.model.training.checkpoint import list_checkpoints
from precis.model.training.loss_log import LossLog
from precis.model.training.state import TrainingSetup
from precis.model.training.train_step import StepReport


class PendingReport(NamedTuple):
    """The report of a step that may still be running on the device.

    Attributes:
      step: counted from 1.
      report: float32 scalars on the device.
      shard: int32 [B], per replica: the position of each row's file in the shards, -1
          for a row of padding; None where it was not kept.
    """

    step: int
    report: StepReport
    shard: Any


def log_reports(
    setup: TrainingSetup, log: LossLog, pending: list[PendingReport]
) -> None:
    """Waits for the reports of steps, checks them, and adds them to the log and to
    TensorBoard.

    Raises:
      DataError: a loss or a gradient is not finite.
    """
    # Loss scaling skips steps whose gradient overflows, so with it a gradient that is
    # not finite is no error.
    has_loss_scaling = setup.training.precision == "mixed_float16"
    checked = ("loss",) if has_loss_scaling else ("loss", "gradient_norm")
    for step, report, shard in pending:
        figures = {name: float(value) for name, value in report._asdict().items()}
        if not all(math.isfinite(figures[name]) for name in checked):
            raise not_finite_error(setup, step, shard)
        log.reports.append({"step": step, **figures})
        write_scalars(figures, step)


def write_scalars(figures: dict[str, float], step: int) -> None:
    """Writes figures to the TensorBoard log that is the default at this moment."""
    for name, value in figures.items():
        scalar(name, value, step=step)


def not_finite_error(setup: TrainingSetup, step: int, shard: Any) -> DataError:
    """The error for a step whose loss or gradient is not finite.

    Args:
      setup: of the training.
      step: counted from 1.
      shard: int32 [B], per replica, as in `PendingReport`.
    """
    if shard is None:
        place = "with --steps_per_loop 1 the same command names its records"
    else:
        place = f"records of {', '.join(_shard_names(setup, shard))}"
    good = list_checkpoints(setup.checkpoints)
    return DataError(
        "the loss or its gradient is not finite "
        f"at step {step} ({place}); "
        f"the last good checkpoint is {good[-1] if good else 'none yet'}; "
        "lower --learning_rate, raise --warmup_steps, set --clip_norm "
        "or train in float32, with another --output"
    )


def _shard_names(setup: TrainingSetup, shard: Any) -> list[str]:
    """The names of the files that the rows of a batch are from."""
    numbers = {
        int(number)
        for part in setup.strategy.experimental_local_results(shard)
        for number in part.numpy()
        if number >= 0
    }
    return sorted({setup.shards[number].rsplit("/", 1)[-1] for number in numbers})
