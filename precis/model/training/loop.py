"""Training from the first step to the bundle: one loop for every network and strategy,
which can be stopped and resumed at any step.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from precis.model import files
from precis.model.errors import DataError, Interrupted
from precis.model.progress.stages import Stage, about, say, stage
from precis.model.training.state import (
    Figures,
    Step,
    Training,
    list_checkpoints,
    restore_best,
    restore_training,
    save_training,
)

# Figures are read from the device after this number of steps, and before each
# checkpoint. A loss that is not finite may be noticed this late.
_REPORT_STEPS = 10
# The remaining time is reported after this number of steps, without those that compile.
_MEASURED_STEPS = 20
# Below the first, remaining time is not reported; above the second, with advice.
_SHORT_SECONDS, LONG_SECONDS = 60, 3600


class TrainResult(NamedTuple):
    """The result of a training.

    Attributes:
      bundle: the folder of the bundle.
      model_id: its model_id.
      step: the step that its weights are from.
      validation: the figures of the validation at this step; empty without one.
    """

    bundle: str
    model_id: str
    step: int
    validation: dict[str, float]


def run_training(
    training: Training, is_stopped: Callable[[], bool] = lambda: False
) -> TrainResult:
    """Trains from the last checkpoint to the end and writes the bundle.

    Args:
      training: the training at step 0.
      is_stopped: called after every step; if it returns True, the state is saved and
          training stops.

    Raises:
      UsageError: the folder belongs to a training with other settings.
      DataError: a loss or a gradient is not finite, or a checkpoint that is needed is
          damaged.
      Interrupted: `is_stopped` returned True.
    """
    files.remove_leftovers(training.output)
    restore_training(training)
    run_steps(training, is_stopped)
    return export_training(training)


def run_steps(
    training: Training, is_stopped: Callable[[], bool] = lambda: False
) -> None:
    """Trains to the last step; arguments and errors are as for `run_training`."""
    pace, position = training.pace, training.position
    total = pace.epochs * training.epoch_steps if pace.epochs else pace.steps
    make_step: Step | None = None
    with stage("train", total=total, unit="steps") as progress:
        progress.is_total_estimated = bool(pace.epochs)
        progress.resume(position.step)
        while not _is_finished(training):
            batches = training.batches(position.epoch, position.batch)
            make_step = make_step or training.make_step(batches)
            _run_epoch(training, batches, make_step, progress, is_stopped)
        if pace.validation_steps and position.validated_step < position.step:
            _validate(training)
            save_training(training)


def _is_finished(training: Training) -> bool:
    """Whether the last step or epoch is done, or none of the last `patience`
    validations was better than the best.
    """
    pace, position = training.pace, training.position
    validations_since_best = sum(
        "validation" in report and report["step"] > position.best_step
        for report in training.reports
    )
    if pace.patience and validations_since_best >= pace.patience:
        return True
    if pace.epochs:
        return position.epoch >= pace.epochs
    return position.step >= pace.steps


def _run_epoch(
    training: Training,
    batches: Iterable[Any],
    make_step: Step,
    progress: Stage,
    is_stopped: Callable[[], bool],
) -> None:
    """Trains to the end of the records or to the last step."""
    pace, position = training.pace, training.position
    pending: list[Figures] = []
    for batch in batches:
        pending.append(make_step(batch))
        position.step += 1
        position.batch += 1
        step = position.step
        is_last = step == pace.steps and not pace.epochs
        is_validation = bool(pace.validation_steps) and (
            step % pace.validation_steps == 0
        )
        ends = is_stopped()
        is_due = is_last or is_validation or ends or step % pace.checkpoint_steps == 0
        if is_due or len(pending) >= _REPORT_STEPS:
            _read_reports(training, pending, progress)
            pending = []
        if is_validation:
            _validate(training)
        if is_due:
            save_training(training)
        if ends:
            raise Interrupted(f"the training was saved at step {step}")
        if is_last or (is_validation and _is_finished(training)):
            return
    _read_reports(training, pending, progress)
    position.epoch += 1
    position.batch = 0
    if pace.epochs:
        # All epochs have nearly the same number of batches.
        progress.total = round(position.step / position.epoch * pace.epochs)
        progress.is_total_estimated = position.epoch < pace.epochs
        save_training(training)


def _read_reports(training: Training, pending: list[Figures], progress: Stage) -> None:
    """Reads the figures of the last steps from the device, checks and logs them, counts
    the steps, and shows the last loss.

    Steps are counted only here, as the device has then finished them.

    Raises:
      DataError: a loss or a gradient is not finite.
    """
    # Loss scaling skips steps whose gradient overflows, so with it such a gradient is
    # not an error.
    has_loss_scaling = training.pace.precision == "mixed_float16"
    checked = ("loss",) if has_loss_scaling else ("loss", "gradient_norm")
    tokens = 0
    for step, figures in enumerate(pending, training.position.step - len(pending) + 1):
        report = {name: float(value) for name, value in figures.items()}
        if not all(math.isfinite(report.get(name, 0.0)) for name in checked):
            good = list_checkpoints(training)
            raise DataError(
                f"the loss or its gradient is not finite at step {step}; the last good "
                f"checkpoint is {good[-1] if good else 'none yet'}; "
                f"{training.way_out}, with another `output=`"
            )
        training.reports.append({"step": step, **report})
        progress.note = describe_figures(report)
        tokens += int(report.get("tokens", 0))
    if pending:
        progress.advance(len(pending), tokens=tokens)
        measured = progress.measured
        if measured - len(pending) < _MEASURED_STEPS <= measured:
            _tell_time_left(training, progress)


def _tell_time_left(training: Training, progress: Stage) -> None:
    """Reports the remaining time of a training at the rate of its first steps."""
    steps = (progress.total or 0) - training.position.step
    seconds = (time.monotonic() - progress.began) / progress.measured * steps
    if seconds >= _SHORT_SECONDS:
        less = "; use fewer steps or records, or a smaller network, to shorten it"
        less *= seconds > LONG_SECONDS
        say(f"train: {about(seconds)} left, for {steps:,} steps{less}")


def _validate(training: Training) -> None:
    """Scores the network and remembers the step if it is the best so far."""
    with stage("validate"):
        figures = training.validate()
    position = training.position
    training.reports[-1]["validation"] = figures
    position.validated_step = position.step
    score = figures[training.best_by] * (-1 if training.best_by == "loss" else 1)
    if not position.best_step or score > position.best_score:
        position.best_step = position.step
        position.best_score = score
    say(f"step {position.step}: validation {describe_figures(figures)}")


def describe_figures(figures: Mapping[str, float]) -> str:
    """The loss, the accuracy and the ROUGE scores as text."""
    formats = {"loss": "loss {:.3f}", "accuracy": "accuracy {:.1%}"}
    return ", ".join(
        formats[name].format(value) if name in formats else f"{name} {100 * value:.1f}"
        for name, value in figures.items()
        if name in formats or name.startswith("rouge")
    )


def export_training(training: Training) -> TrainResult:
    """Writes the bundle with the weights of the best checkpoint, or of the last one if
    there was no validation; the network has these weights afterwards.

    Raises:
      DataError: the best checkpoint is damaged.
    """
    step = restore_best(training)
    validation = next(
        (each for each in training.reports if each["step"] == step), {}
    ).get("validation", {})
    provenance = {**training.provenance, "step": step, "validation": validation}
    return TrainResult(training.output, training.save(provenance), step, validation)
