"""Training from records to a bundle: one loop for every strategy, which can be stopped
and goes on at any step.
"""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from precis.model import files
from precis.model.errors import NO_ACCESS, NO_ROOM, Interrupted
from precis.model.network.config import NetworkConfig
from precis.model.progress.counters import paused
from precis.model.progress.stages import Stage, say, stage, unseen
from precis.model.training.config import TrainingConfig
from precis.model.training.export import TrainResult, export_network
from precis.model.training.initialization import InitialWeights
from precis.model.training.input_batches import distributed_batches
from precis.model.training.loss_log import add_validation
from precis.model.training.metrics import (
    PendingReport,
    log_reports,
    write_scalars,
)
from precis.model.training.record_sets import RecordSets
from precis.model.training.resume import restore_training
from precis.model.training.state import (
    TrainingSetup,
    TrainingState,
    make_setup,
    make_state,
    save_state,
)
from precis.model.training.step_runner import RunSteps, make_step_runner
from precis.model.training.strategy import make_strategy
from precis.model.training.workers import WorkersEnded, ending_with_the_others

# Reports are brought over from the device every so many steps, and before any
# checkpoint: a loss that is not finite is noticed this late.
_REPORT_STEPS = 10


def train_network(
    records: RecordSets,
    output: str,
    *,
    network: NetworkConfig,
    training: TrainingConfig,
    initial: InitialWeights | None = None,
    request: Mapping[str, Any] | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> TrainResult:
    """Trains a network on records and writes it to `output` as a bundle.

    A run that was interrupted goes on from its last checkpoint when it is called again
    with the same arguments.

    Args:
      records: what `precis prepare` wrote.
      output: the bundle's folder; checkpoints, losses and TensorBoard logs go to
          `training/` in it.
      network: its shape; the vocabulary must be the records'.
      training: how to train.
      initial: the first weights; random ones by default.
      request: the command and its flags, for the manifest.
      is_stopped: whether to save and stop after the present step.

    Raises:
      UsageError: arguments that contradict each other or an earlier run in `output`.
      DataError: damaged records, or a loss that is not finite.
      Interrupted: stopped, after the state was saved.
      WorkersEnded: another process of the training was stopped or is lost.
    """
    with tempfile.TemporaryDirectory(prefix="precis-records-") as staging:
        setup = make_setup(
            records,
            output,
            network=network,
            training=training,
            strategy=make_strategy(training.strategy),
            initial=initial or InitialWeights(),
            staging=staging,
            request=request,
        )
        with ending_with_the_others(setup.strategy), naming_full_disk(output):
            state = make_state(setup, network)
            if setup.is_chief:
                files.remove_leftovers(output)
            restore_training(setup, state)
            setup.workers.check_same_start(
                fingerprint=setup.fingerprint, step=state.position.step
            )
            run_steps(setup, state, is_stopped)
        return export_network(setup, state)


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
    setup: TrainingSetup, state: TrainingState, is_stopped: Callable[[], bool]
) -> None:
    """Trains until the last step.

    Args:
      setup: what is fixed.
      state: where the training stands; stands at the last step afterwards.
      is_stopped: asked after every step; once it returns True, the state is saved.

    Raises:
      Interrupted: `is_stopped` returned True.
      DataError: a loss or a gradient was not finite.
    """
    training = setup.training
    if setup.is_chief:
        summaries = tf.summary.create_file_writer(setup.tensorboard)
    else:
        summaries = tf.summary.create_noop_writer()
    total = None if training.epochs else training.steps
    step_runner = None
    with (
        summaries.as_default(),
        contextlib.nullcontext() if setup.is_chief else unseen(),
        stage("train", total=total, unit="steps", warms_up=True) as progress,
    ):
        progress.resume(state.position.step)
        while not _is_finished(training, state):
            batches = _rest_of_epoch(setup, state)
            if step_runner is None:
                step_runner = make_step_runner(setup, state, batches.element_spec)
            _run_epoch(setup, state, iter(batches), step_runner, progress, is_stopped)
        if state.validator and state.position.validated_step < state.position.step:
            _validate(setup, state)
            save_state(setup, state)


def _is_finished(training: TrainingConfig, state: TrainingState) -> bool:
    """Whether the last step or epoch is done, or the last `patience` validations were
    no better than the best.
    """
    position = state.position
    if training.patience:
        validations_since_best = [
            report
            for report in state.log.reports
            if "validation" in report and report["step"] > position.best_step
        ]
        if len(validations_since_best) >= training.patience:
            return True
    if training.epochs:
        return position.epoch >= training.epochs
    return position.step >= training.steps


def _rest_of_epoch(setup: TrainingSetup, state: TrainingState) -> Any:
    """The distributed batches of the present pass that were not used yet."""
    return distributed_batches(
        setup.strategy,
        setup.shards,
        limits=setup.limits,
        ids=setup.ids,
        seed=setup.training.seed,
        epoch=state.position.epoch,
        skip=state.position.batch,
        mixture=setup.records.parts(),
        shuffle_documents=setup.training.shuffle_documents,
    )


class _Due(NamedTuple):
    """What follows a step."""

    is_last: bool
    is_checkpoint: bool
    is_validation: bool
    is_told_to_stop: bool
    is_stopped: bool


def _steps_until_due(setup: TrainingSetup, state: TrainingState) -> int:
    """How many steps may be made before something other than a step is due."""
    training = setup.training
    step = state.position.step
    counts = [
        training.steps_per_loop,
        training.checkpoint_steps - step % training.checkpoint_steps,
    ]
    if state.validator:
        counts.append(training.validation_steps - step % training.validation_steps)
    if not training.epochs:
        counts.append(training.steps - step)
    return min(counts)


def _due_after(
    setup: TrainingSetup, state: TrainingState, is_stopped: Callable[[], bool]
) -> _Due:
    """What follows the present step.

    `is_stopped` is asked once: whether the state is saved and whether the training
    stops must not depend on different answers. All processes stop where one is told to.
    """
    training = setup.training
    step = state.position.step
    has_validation = state.validator is not None
    is_told_to_stop = is_stopped()
    return _Due(
        is_last=step == training.steps and not training.epochs,
        is_checkpoint=step % training.checkpoint_steps == 0,
        is_validation=has_validation and step % training.validation_steps == 0,
        is_told_to_stop=is_told_to_stop,
        is_stopped=setup.workers.any(is_told_to_stop),
    )


def _run_epoch(
    setup: TrainingSetup,
    state: TrainingState,
    batches: Iterator[Any],
    step_runner: RunSteps,
    progress: Stage,
    is_stopped: Callable[[], bool],
) -> None:
    """Trains to the end of the records or to the last step."""
    position = state.position
    pending: list[PendingReport] = []
    while results := step_runner(batches, _steps_until_due(setup, state)):
        for result in results:
            position.step += 1
            position.batch += 1
            pending.append(PendingReport(position.step, *result))
        due = _due_after(setup, state, is_stopped)
        if any(due) or len(pending) >= _REPORT_STEPS:
            _read_reports(setup, state, pending, progress)
            pending = []
        if due.is_validation:
            _validate(setup, state)
        if any(due):
            save_state(setup, state)
        if due.is_stopped and not due.is_told_to_stop:
            raise WorkersEnded(
                f"another worker was told to stop, and the state of step "
                f"{position.step} is saved; start all workers again with the same "
                "command, which goes on from there"
            )
        if due.is_stopped:
            raise Interrupted(f"the training is saved at step {position.step}")
        if due.is_last or (due.is_validation and _is_finished(setup.training, state)):
            return
    _read_reports(setup, state, pending, progress)
    position.epoch += 1
    position.batch = 0
    if setup.training.epochs:
        # The passes over the records have nearly the same number of batches.
        steps = position.step / position.epoch
        progress.total = round(steps * setup.training.epochs)
        save_state(setup, state)


def _read_reports(
    setup: TrainingSetup,
    state: TrainingState,
    pending: list[PendingReport],
    progress: Stage,
) -> None:
    """Brings reports over from the device, counts their steps, and shows the last loss.

    The device has finished the steps then; when they are only dispatched, they say
    nothing of the speed.

    Args:
      setup: what is fixed.
      state: its log receives the reports.
      pending: the reports of the last steps.
      progress: shows them.
    """
    if not pending:
        return
    log_reports(setup, state.log, pending)
    rows = state.log.reports[-len(pending) :]
    progress.note = f"loss {rows[-1]['loss']:.3f}, accuracy {rows[-1]['accuracy']:.1%}"
    progress.advance(len(rows), tokens=int(sum(row["tokens"] for row in rows)))


def _validate(setup: TrainingSetup, state: TrainingState) -> None:
    """Scores the network and remembers the step if it is the best so far."""
    assert state.validator is not None
    with paused(), stage("validate"):
        validation = state.validator()
    position = state.position
    own = validation.figures()
    # The last bits may differ between machines, and the figures decide when to end.
    figures = dict(zip(own, setup.workers.of_chief(list(own.values())), strict=True))
    write_scalars(
        {f"validation/{name}": value for name, value in figures.items()},
        position.step,
    )
    position.validated_step = position.step
    if figures["rouge2"] > position.best_score:
        position.best_step = position.step
        position.best_score = figures["rouge2"]
    add_validation(state.log, figures)
    if setup.is_chief:
        say(f"step {position.step}: validation {validation}")
