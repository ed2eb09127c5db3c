"""Saving and restoring a training: its checkpoint, and the log that leads to it."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from precis.model import files
from precis.model.config import describe_differences
from precis.model.errors import UsageError
from precis.model.training.checkpoint import (
    Position,
    list_checkpoints,
    remove_old,
    restore_latest,
    save_checkpoint,
)
from precis.model.training.loss_log import LossLog, read_log, save_log

SETTINGS_FILE = "settings.json"
# What the settings whose values are checksums stand for.
_LABELS = {"records": "the records", "start": "the first weights"}


class TrainingPlace(Protocol):
    """Where a training lies, and its settings.

    `settings` is all that the weights depend on, `fingerprint` their sha256.
    """

    @property
    def folder(self) -> str: ...

    @property
    def settings(self) -> Mapping[str, Any]: ...

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
      UsageError: the folder belongs to a training with other settings.
    """
    _check_settings(place)
    state.position = restore_latest(
        place.checkpoints, variables=state.variables, fingerprint=place.fingerprint
    )
    state.log = read_log(state.log.path, last_step=state.position.step)


def _check_settings(place: TrainingPlace) -> None:
    """Refuses a folder of a training with other settings, and names them."""
    path = files.join(place.folder, SETTINGS_FILE)
    if not files.exists(path) or not list_checkpoints(place.checkpoints):
        return
    way_out = "take another --output, or remove that folder to start anew"
    earlier = files.read_object(path, way_out=way_out)
    differences = describe_differences(earlier, place.settings, labels=_LABELS)
    if differences:
        raise UsageError(
            f"{place.folder} belongs to a training of other settings: {differences}; "
            f"{way_out}"
        )


def save_training(place: TrainingPlace, state: ResumableState, *, keep: int) -> None:
    """Publishes the log, then the checkpoint that it leads to.

    Of the older checkpoints, the newest `keep` and the best one stay.
    """
    files.write_json(files.join(place.folder, SETTINGS_FILE), dict(place.settings))
    save_log(state.log)
    save_checkpoint(
        place.checkpoints,
        variables=state.variables,
        position=state.position,
        fingerprint=place.fingerprint,
    )
    remove_old(place.checkpoints, keep=keep, best_step=state.position.best_step)
