"""Saving and restoring a training: its checkpoint, and the log that leads to it."""

from collections.abc import Sequence
from typing import Any, Protocol

from precis.model.training.checkpoint import (
    Position,
    remove_old,
    restore_latest,
    save_checkpoint,
)
from precis.model.training.loss_log import LossLog, read_log, save_log


class TrainingPlace(Protocol):
    """Where the checkpoints of a training lie, and the fingerprint of its settings."""

    @property
    def checkpoints(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...


class ResumableState(Protocol):
    """The parts of a training that a checkpoint and a log restore."""

    position: Position
    log: LossLog

    @property
    def variables(self) -> Sequence[Any]: ...


def restore_training(place: TrainingPlace, state: ResumableState) -> None:
    """Sets the state to the newest intact checkpoint; without one it stays at step 0.

    Raises:
      UsageError: a checkpoint belongs to a training with other settings.
    """
    state.position = restore_latest(
        place.checkpoints, variables=state.variables, fingerprint=place.fingerprint
    )
    state.log = read_log(state.log.path, last_step=state.position.step)


def save_training(place: TrainingPlace, state: ResumableState, *, keep: int) -> None:
    """Publishes the log, then the checkpoint that it leads to.

    Of the older checkpoints, the newest `keep` and the best one stay.
    """
    save_log(state.log)
    save_checkpoint(
        place.checkpoints,
        variables=state.variables,
        position=state.position,
        fingerprint=place.fingerprint,
    )
    remove_old(place.checkpoints, keep=keep, best_step=state.position.best_step)
