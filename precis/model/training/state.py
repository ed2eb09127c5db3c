"""The state of a training: the settings fixed before its first step, what its steps
change, and the checkpoints from which it resumes exactly.

    losses.jsonl                      a line for each step, with figures and validation:
                                      {"step": 2, "loss": 6.38, "validation": {...}}
    checkpoints/
      step-00000500/state.safetensors every variable of the network (also the dropout
                                      seeds) and of the optimizer
      step-00000500/state.json        position, best score, settings, checksum; written
                                      last
"""

import dataclasses
import glob
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import safetensors.numpy

from precis.model import files
from precis.model.bundle.manifest import TRAINING_FOLDER
from precis.model.config import describe_differences
from precis.model.errors import DataError, UsageError
from precis.model.progress.stages import say
from precis.model.training.config import TrainingConfig

LOSSES_FILE = "losses.jsonl"
STATE_FILE = "state.json"
TENSORS_FILE = "state.safetensors"
# The names that a message uses for settings whose values are checksums.
_LABELS = {"records": "the records", "start": "the initial weights"}
_WAY_OUT = "use another `output=`, or remove that folder to start again"


# The figures of a step: scalars by name, perhaps still on the device.
Figures = Mapping[str, Any]
Step = Callable[[Any], Figures]


@dataclasses.dataclass(kw_only=True)
class TrainingPosition:
    """The progress of a training.

    Attributes:
      step: the number of optimizer steps done.
      epoch: the number of completed epochs.
      batch: the number of batches used in the present epoch.
      validated_step: the step of the last validation, 0 before the first.
      best_step: the step of the best checkpoint, 0 before the first validation.
      best_score: its validation score: ROUGE-2 or the negated loss; higher is better.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    validated_step: int = 0
    best_step: int = 0
    best_score: float = -1.0


@dataclasses.dataclass(eq=False)
class Training:
    """The training of a network, at step 0 until it is restored. A subclass for each
    kind of network defines batches, steps, validation and the bundle.

    Attributes:
      way_out: what to do if a loss is not finite, for the message.
      epoch_steps: the approximate number of steps per epoch, for a training that
          counts epochs.
      best_by: the validation figure by which the best step is chosen: the smallest
          `loss`, or the largest value of another figure.
      output: the bundle's folder.
      settings: all settings that the weights depend on, by name.
      pace: the training settings; only steps, epochs, checkpoints, validations,
          patience and precision are used.
      network: the network that is trained.
      optimizer: the optimizer, built for the trainable weights of the network.
      provenance: the command, the records and the settings, for the manifest.
      position: the progress of the training.
      reports: the figures of all steps, one for each line of `losses.jsonl`.
    """

    way_out = "lower `learning_rate=`"
    best_by = "rouge2"
    epoch_steps = 0

    output: str
    _: dataclasses.KW_ONLY
    settings: Mapping[str, Any]
    pace: TrainingConfig
    network: Any
    optimizer: Any
    provenance: Mapping[str, Any]
    position: TrainingPosition = dataclasses.field(default_factory=TrainingPosition)
    reports: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    def batches(self, epoch: int, skip: int) -> Iterable[Any]:
        """The batches of an epoch, which counts from 0, without the first `skip`."""
        raise NotImplementedError

    def make_step(self, batches: Any) -> Step:
        """A function that does a step with one of these batches."""
        raise NotImplementedError

    def validate(self) -> dict[str, float]:
        """The validation figures of the network with its present weights."""
        raise NotImplementedError

    def save(self, provenance: dict[str, Any]) -> str:
        """Writes the bundle and returns its model_id."""
        raise NotImplementedError

    @property
    def folder(self) -> str:
        """The folder of checkpoints and losses."""
        return files.join(self.output, TRAINING_FOLDER)

    @property
    def checkpoints(self) -> str:
        """The folder of the checkpoints."""
        return files.join(self.folder, "checkpoints")

    @property
    def variables(self) -> list[Any]:
        """All variables that a checkpoint stores."""
        return [*self.network.variables, *self.optimizer.variables]


def save_training(training: Training) -> None:
    """Publishes the log, then a checkpoint.

    Only the newest `keep_checkpoints` and the best checkpoint are kept.
    """
    position = training.position
    lines = "".join(json.dumps(report) + "\n" for report in training.reports)
    files.write_bytes(files.join(training.folder, LOSSES_FILE), lines.encode())
    path = checkpoint_path(training, position.step)
    # Names begin with a number, because all dropout seeds have the same path:
    # 0012/transformer/dropout/seed_generator_state
    tensors = safetensors.numpy.save(
        {
            f"{number:04d}/{variable.path}": np.asarray(variable.numpy())
            for number, variable in enumerate(training.variables)
        }
    )
    files.write_bytes(files.join(path, TENSORS_FILE), tensors)
    state = {
        "position": dataclasses.asdict(position),
        "settings": dict(training.settings),
        "sha256": hashlib.sha256(tensors).hexdigest(),
    }
    files.write_json(files.join(path, STATE_FILE), state)
    best = checkpoint_path(training, position.best_step)
    for old in list_checkpoints(training)[: -training.pace.keep_checkpoints]:
        if old != best:
            files.remove(old)


def checkpoint_path(training: Training, step: int) -> str:
    """The folder of the checkpoint of a step."""
    return files.join(training.checkpoints, f"step-{step:08d}")


def list_checkpoints(training: Training) -> list[str]:
    """The complete checkpoints, oldest first."""
    pattern = files.join(glob.escape(training.checkpoints), "step-*", STATE_FILE)
    return [path.rsplit("/", 1)[0] for path in files.glob(pattern)]


def restore_training(training: Training) -> None:
    """Restores the newest intact checkpoint; without one, the training is at step 0.

    Damaged checkpoints are reported on stderr and skipped.

    Raises:
      UsageError: the folder belongs to a training with other settings.
      DataError: the log is damaged.
    """
    for path in reversed(list_checkpoints(training)):
        position = _restore_checkpoint(training, path)
        if position is not None:
            training.position = position
            training.reports = _read_reports(training)
            return
        say(f"the checkpoint {path} is damaged; continuing from the checkpoint before")


def _read_reports(training: Training) -> list[dict[str, Any]]:
    """Reads the reports up to the step of the restored checkpoint.

    Later lines belong to steps that are done again.
    """
    path = files.join(training.folder, LOSSES_FILE)
    reports: list[dict[str, Any]] = []
    for line in files.read_bytes(path).splitlines():
        if reports and reports[-1]["step"] >= training.position.step:
            break
        with files.naming_damage(path, way_out=_WAY_OUT):
            report = json.loads(line)
            files.check_fields(report, {"step": int})
        reports.append(report)
    return reports


def restore_best(training: Training) -> int:
    """Sets the variables to the values of the best checkpoint.

    Returns:
      The step of the best checkpoint, or the present step if none was validated.

    Raises:
      DataError: the best checkpoint is damaged.
    """
    position = training.position
    step = position.best_step or position.step
    path = checkpoint_path(training, step)
    if step != position.step and _restore_checkpoint(training, path) is None:
        raise DataError(
            f"{path}: the best checkpoint is damaged; train again with "
            "another `output=`"
        )
    return step


def _restore_checkpoint(training: Training, path: str) -> TrainingPosition | None:
    """Sets the variables to a checkpoint's values.

    Returns:
      The position; None if the state is damaged, or the tensors are missing or do not
      match their checksum, and then the variables are unchanged.

    Raises:
      UsageError: the checkpoint belongs to a training with other settings.
    """
    try:
        state = files.read_object(
            files.join(path, STATE_FILE),
            way_out=_WAY_OUT,
            fields={"settings": dict, "position": dict, "sha256": str},
        )
    except DataError:
        return None
    differences = describe_differences(
        state["settings"], training.settings, labels=_LABELS
    )
    if differences:
        raise UsageError(
            f"{training.folder} belongs to a training with other settings: "
            f"{differences}; {_WAY_OUT}"
        )
    # A process that is killed while it removes a checkpoint may leave only the state.
    if not files.exists(files.join(path, TENSORS_FILE)):
        return None
    content = files.read_bytes(files.join(path, TENSORS_FILE))
    if hashlib.sha256(content).hexdigest() != state["sha256"]:
        return None
    # Variables are matched by number, as paths differ between runs: Keras numbers seeds
    # and optimizers across all networks of a process.
    tensors = safetensors.numpy.load(content)
    for variable, name in zip(training.variables, sorted(tensors), strict=True):
        variable.assign(tensors[name])
    return TrainingPosition(**state["position"])
