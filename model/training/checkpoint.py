"""Checkpoints: the whole state of a training in a folder, from which the training goes
on exactly where it stopped.

    step-00000500/state.safetensors   every variable of the network (also the dropout
                                      seeds) and of the optimizer
    step-00000500/state.json          position, best score, fingerprint, checksum;
                                      written last
"""

import dataclasses
import glob
import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import safetensors.numpy

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.model.progress.stages import say

STATE_FILE = "state.json"
TENSORS_FILE = "state.safetensors"


@dataclasses.dataclass(kw_only=True)
class Position:
    """How far a training has come.

    Attributes:
      step: optimizer steps done.
      epoch: passes through the records completed.
      batch: batches of the present pass that were used.
      validated_step: the step of the last validation, 0 before the first.
      best_step: the step of the best checkpoint, 0 before the first validation.
      best_score: its validation score, higher is better: ROUGE-2, or minus the loss.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    validated_step: int = 0
    best_step: int = 0
    best_score: float = -1.0


def checkpoint_path(folder: str, step: int) -> str:
    """The folder of the checkpoint of a step."""
    return files.join(folder, f"step-{step:08d}")


def save_checkpoint(
    folder: str, *, variables: Sequence[Any], position: Position, fingerprint: str
) -> str:
    """Writes a checkpoint below `folder` and returns its path."""
    path = checkpoint_path(folder, position.step)
    tensors = safetensors.numpy.save(
        {name: np.asarray(variable.numpy()) for name, variable in _named(variables)}
    )
    files.write_bytes(files.join(path, TENSORS_FILE), tensors)
    state = {
        "position": dataclasses.asdict(position),
        "fingerprint": fingerprint,
        "sha256": hashlib.sha256(tensors).hexdigest(),
    }
    files.write_json(files.join(path, STATE_FILE), state)
    return path


def list_checkpoints(folder: str) -> list[str]:
    """The complete checkpoints of a folder, oldest first."""
    return [
        path.rsplit("/", 1)[0]
        for path in files.glob(files.join(glob.escape(folder), "step-*", STATE_FILE))
    ]


def restore_checkpoint(
    path: str, *, variables: Sequence[Any], fingerprint: str
) -> Position | None:
    """Sets the variables to a checkpoint's values.

    Returns:
      The position, or None where the state is damaged or the tensors are missing or do
      not match their checksum; the variables then keep their values.

    Raises:
      UsageError: the checkpoint belongs to a training with other settings.
    """
    try:
        state = files.read_object(
            files.join(path, STATE_FILE),
            way_out="remove that checkpoint",
            fields={"fingerprint": str, "position": dict, "sha256": str},
        )
    except DataError:
        return None
    if state["fingerprint"] != fingerprint:
        raise UsageError(
            f"{path}: this checkpoint belongs to a training with other records or "
            "settings; take another --output, or remove that folder to start anew"
        )
    # A process that is killed while it removes a checkpoint leaves the state alone.
    if not files.exists(files.join(path, TENSORS_FILE)):
        return None
    content = files.read_bytes(files.join(path, TENSORS_FILE))
    if hashlib.sha256(content).hexdigest() != state["sha256"]:
        return None
    # Variables are matched by number: Keras numbers the names of seeds and optimizers
    # through all networks of a process, so that the paths differ between two runs.
    tensors = {
        name.partition("/")[0]: tensor
        for name, tensor in safetensors.numpy.load(content).items()
    }
    for name, variable in _named(variables):
        variable.assign(tensors[name.partition("/")[0]])
    return Position(**state["position"])


def restore_latest(
    folder: str, *, variables: Sequence[Any], fingerprint: str
) -> Position:
    """Sets the variables to the values of the newest intact checkpoint in `folder`.

    Each damaged checkpoint is named on stderr and passed over.

    Returns:
      The position of that checkpoint. Without an intact checkpoint, the position of a
      training that has not begun; the variables then keep their values.

    Raises:
      UsageError: a checkpoint belongs to a training with other settings.
    """
    for path in reversed(list_checkpoints(folder)):
        position = restore_checkpoint(
            path, variables=variables, fingerprint=fingerprint
        )
        if position is not None:
            return position
        say(f"the checkpoint {path} is damaged; going back to the one before")
    return Position()


def restore_best(
    folder: str, position: Position, *, variables: Sequence[Any], fingerprint: str
) -> int:
    """Sets the variables to the values of the best checkpoint.

    Args:
      folder: the checkpoints.
      position: the present one, to which the variables belong.
      variables: as in `restore_checkpoint`.
      fingerprint: as in `restore_checkpoint`.

    Returns:
      The step of the best checkpoint, or the present step if none was validated.

    Raises:
      DataError: the best checkpoint is damaged.
    """
    step = position.best_step or position.step
    if step == position.step:
        return step
    path = checkpoint_path(folder, step)
    restored = restore_checkpoint(path, variables=variables, fingerprint=fingerprint)
    if restored is None:
        raise DataError(
            f"{path}: the best checkpoint is damaged; train again with another --output"
        )
    return step


def remove_old(folder: str, *, keep: int, best_step: int) -> None:
    """Removes all but the newest `keep` checkpoints and the best one."""
    for path in list_checkpoints(folder)[:-keep]:
        if not path.endswith(f"-{best_step:08d}"):
            files.remove(path)


def _named(variables: Sequence[Any]) -> list[tuple[str, Any]]:
    """The variables under unique names, as dropout seeds share one path.

    0012/transformer/dropout/seed_generator_state
    """
    return [
        (f"{number:04d}/{variable.path}", variable)
        for number, variable in enumerate(variables)
    ]
