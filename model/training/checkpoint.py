"""The whole state of a training in a folder, so that it can go on exactly where it
stopped.

step-00000500/state.safetensors   every variable of the network (dropout seeds too) and of the optimizer
step-00000500/state.json          position, best score, fingerprint, checksum; written last
"""

import dataclasses
import glob
import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import safetensors.numpy

from precis.model import files
from precis.model.errors import UsageError

STATE_FILE, TENSORS_FILE = "state.json", "state.safetensors"


@dataclasses.dataclass(kw_only=True)
class Position:
    """How far a training has come."""

    step: int = 0  # optimizer steps done
    epoch: int = 0  # passes through the records completed
    batch: int = 0  # batches of the present pass that were used
    validated_step: int = 0  # the step of the last validation, 0 before the first
    best_step: int = 0  # the step of the best checkpoint, 0 before the first validation
    best_score: float = (
        -1.0
    )  # its validation score, higher is better: ROUGE-2, or minus the loss


def checkpoint_path(folder: str, step: int) -> str:
    """Where the checkpoint of a step lies."""
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
      The position, or None where the tensors are missing or do not match their
      checksum: a disk that failed, best answered by an older checkpoint.

    Raises:
      UsageError: the checkpoint belongs to a training with other settings.
    """
    state = files.read_json(files.join(path, STATE_FILE))
    if state["fingerprint"] != fingerprint:
        raise UsageError(
            f"{path}: this checkpoint belongs to a training with other records or settings; "
            "take another --output, or remove that folder to start anew"
        )
    if not files.exists(
        files.join(path, TENSORS_FILE)
    ):  # killed while it was being removed
        return None
    content = files.read_bytes(files.join(path, TENSORS_FILE))
    if hashlib.sha256(content).hexdigest() != state["sha256"]:
        return None
    # By number: Keras counts the names of seeds and optimizers on over all networks of
    # a process.
    tensors = {
        name.partition("/")[0]: tensor
        for name, tensor in safetensors.numpy.load(content).items()
    }
    for name, variable in _named(variables):
        variable.assign(tensors[name.partition("/")[0]])
    return Position(**state["position"])


def remove_old(folder: str, *, keep: int, best_step: int) -> None:
    """Removes all but the newest `keep` checkpoints and the best one."""
    for path in list_checkpoints(folder)[:-keep]:
        if not path.endswith(f"-{best_step:08d}"):
            files.remove(path)


def _named(variables: Sequence[Any]) -> list[tuple[str, Any]]:
    """Names that are unique: dropout seeds share one path."""
    return [
        (f"{number:04d}/{variable.path}", variable)
        for number, variable in enumerate(variables)
    ]
