"""Training from the first step to the bundle: one loop for every network and every
strategy, which can be stopped and goes on at any step.
"""

import contextlib
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import tensorflow as tf
from tensorboard.summary.v2 import scalar

from precis.model import files
from precis.model.errors import NO_ACCESS, NO_ROOM, DataError, Interrupted
from precis.model.progress.stages import Stage, say, stage, unseen
from precis.model.training.checkpoint import (
    list_checkpoints,
    restore_best,
    restore_training,
    save_training,
)
from precis.model.training.state import Figures, Step, Training
from precis.model.training.workers import WorkersEnded

# Figures are brought over from the device every so many steps, and before any
# checkpoint: a loss that is not finite is noticed this late.
_REPORT_STEPS = 10


class TrainResult(NamedTuple):
    """The bundle that a training wrote.

    Attributes:
      bundle: its folder.
      model_id: its id; empty in a process that is not the chief.
      step: the step that its weights are from; the last one in such a process.
      validation: the figures of that step's validation; empty without one.
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
      training: at step 0.
      is_stopped: asked after every step; once it returns True, the state is saved.

    Raises:
      UsageError: the folder belongs to a training with other settings.
      DataError: a loss or a gradient was not finite, or a checkpoint that is needed is
          damaged.
      Interrupted: `is_stopped` returned True.
      WorkersEnded: another process of the training was stopped or is lost.
    """
    with training.workers.ending_together(), naming_full_disk(training.output):
        if training.workers.is_chief:
            files.remove_leftovers(training.output)
        restore_training(training)
        training.workers.check_same_start(
            fingerprint=training.fingerprint, step=training.position.step
        )
        run_steps(training, is_stopped)
    return export_training(training)


@contextlib.contextmanager
def naming_full_disk(folder: str) -> Iterator[None]:
    """Makes an error of the disk of what TensorFlow raises where it cannot write."""
    try:
        yield
    except tf.errors.OpError as error:
        for code in (*NO_ROOM, *NO_ACCESS):
            if os.strerror(code) in error.message:
                raise OSError(code, os.strerror(code), folder) from error
        raise


def run_steps(
    training: Training, is_stopped: Callable[[], bool] = lambda: False
) -> None:
    """Trains to the last step; arguments and errors are those of `run_training`."""
    pace, position = training.pace, training.position
    is_chief = training.workers.is_chief
    summaries = tf.summary.create_noop_writer()
    if is_chief and files.is_local(training.output):
        folder = files.join(training.folder, "tensorboard")
        summaries = tf.summary.create_file_writer(folder)
    make_step: Step | None = None
    with (
        summaries.as_default(),
        contextlib.nullcontext() if is_chief else unseen(),
        stage(
            "train",
            total=None if pace.epochs else pace.steps,
            unit="steps",
            warms_up=True,
        ) as progress,
    ):
        progress.resume(position.step)
        while not _is_finished(training):
            batches = training.batches(position.epoch, position.batch)
            make_step = make_step or training.make_step(batches)
            _run_epoch(training, batches, make_step, progress, is_stopped)
        if training.validate and position.validated_step < position.step:
            _validate(training)
            save_training(training)


def _is_finished(training: Training) -> bool:
    """Whether the last step or epoch is done, or the last `patience` validations were
    no better than the best.
    """
    pace, position = training.pace, training.position
    if pace.patience:
        validations_since_best = [
            report
            for report in training.reports
            if "validation" in report and report["step"] > position.best_step
        ]
        if len(validations_since_best) >= pace.patience:
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
    pending: list[tuple[int, Figures, Any]] = []
    for batch in batches:
        figures = make_step(batch)
        position.step += 1
        position.batch += 1
        step = position.step
        pending.append((step, figures, training.sources(batch)))
        is_last = step == pace.steps and not pace.epochs
        is_validation = bool(training.validate) and step % pace.validation_steps == 0
        # All processes stop where one is told to.
        is_told_to_stop = is_stopped()
        ends = training.workers.any(is_told_to_stop)
        is_due = is_last or is_validation or ends or step % pace.checkpoint_steps == 0
        if is_due or len(pending) >= _REPORT_STEPS:
            _read_reports(training, pending, progress)
            pending = []
        if is_validation:
            _validate(training)
        if is_due:
            save_training(training)
        if is_told_to_stop:
            raise Interrupted(f"the training is saved at step {step}")
        if ends:
            raise WorkersEnded(
                f"another worker was told to stop, and the state of step {step} is "
                "saved; start all workers again with the same command, which goes on "
                "from there"
            )
        if is_last or (is_validation and _is_finished(training)):
            return
    _read_reports(training, pending, progress)
    position.epoch += 1
    position.batch = 0
    if pace.epochs:
        # The passes over the records have nearly the same number of batches.
        progress.total = round(position.step / position.epoch * pace.epochs)
        save_training(training)


def _read_reports(
    training: Training, pending: list[tuple[int, Figures, Any]], progress: Stage
) -> None:
    """Brings the figures of steps over from the device, checks and logs them, counts
    the steps, and shows the last loss.

    The device has finished the steps then; when they are only dispatched, they say
    nothing of the speed.

    Args:
      training: its reports grow.
      pending: numbers, figures and sources of the last steps.
      progress: shows them.

    Raises:
      DataError: a loss or a gradient is not finite.
    """
    # Loss scaling skips steps whose gradient overflows, so with it a gradient that is
    # not finite is no error.
    has_loss_scaling = training.pace.precision == "mixed_float16"
    checked = ("loss",) if has_loss_scaling else ("loss", "gradient_norm")
    for step, figures, sources in pending:
        report = {name: float(value) for name, value in figures.items()}
        if not all(math.isfinite(report.get(name, 0.0)) for name in checked):
            good = list_checkpoints(training)
            raise DataError(
                f"the loss or its gradient is not finite at step {step}"
                f"{training.name_sources(sources)}; the last good checkpoint is "
                f"{good[-1] if good else 'none yet'}; {training.way_out}, with another "
                "--output"
            )
        training.reports.append({"step": step, **report})
        for name, value in report.items():
            scalar(name, value, step=step)
    if pending:
        reports = training.reports[-len(pending) :]
        progress.note = describe_figures(reports[-1])
        tokens = sum(report.get("tokens", 0) for report in reports)
        progress.advance(len(reports), tokens=int(tokens))


def _validate(training: Training) -> None:
    """Scores the network and remembers the step if it is the best so far."""
    assert training.validate is not None
    with stage("validate"):
        own = training.validate()
    position, workers = training.position, training.workers
    # The last bits may differ between machines, and the figures decide when to end.
    figures = dict(zip(own, workers.of_chief(list(own.values())), strict=True))
    for name, value in figures.items():
        scalar(f"validation/{name}", value, step=position.step)
    training.reports[-1]["validation"] = figures
    position.validated_step = position.step
    score = training.score(figures)
    if not position.best_step or score > position.best_score:
        position.best_step = position.step
        position.best_score = score
    if workers.is_chief:
        say(f"step {position.step}: validation {describe_figures(figures)}")


def describe_figures(figures: Mapping[str, float]) -> str:
    """The loss, the accuracy and the ROUGE scores in words."""
    formats = {"loss": "loss {:.3f}", "accuracy": "accuracy {:.1%}"}
    texts = [
        text.format(figures[name]) for name, text in formats.items() if name in figures
    ]
    texts += [
        f"{name} {100 * value:.1f}"
        for name, value in figures.items()
        if name.startswith("rouge")
    ]
    return ", ".join(texts)


def export_training(training: Training) -> TrainResult:
    """Writes the bundle with the weights of the best checkpoint, or of the last one if
    none was validated; the network has those weights afterwards.

    A process that is not the chief writes nothing and keeps its weights.

    Raises:
      DataError: the best checkpoint is damaged.
    """
    if not training.workers.is_chief:
        # The chief may still be writing the last checkpoint.
        return TrainResult(training.output, "", training.position.step, {})
    step = restore_best(training)
    validation = {}
    for report in training.reports:
        if report["step"] == step:
            validation = report.get("validation", {})
    provenance = {
        **training.provenance,
        "training_fingerprint": training.fingerprint,
        "step": step,
        "validation": validation,
    }
    return TrainResult(training.output, training.save(provenance), step, validation)
