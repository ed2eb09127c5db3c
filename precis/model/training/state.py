"""What a training works on: what is fixed before its first step, and what its steps
change.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from precis.model import files
from precis.model.bundle.manifest import TRAINING_FOLDER
from precis.model.training.config import TrainingConfig

# The figures of a step, scalars by name, perhaps still on the device.
Figures = Mapping[str, Any]
Step = Callable[[Any], Figures]


@dataclasses.dataclass(kw_only=True)
class TrainingPosition:
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


@dataclasses.dataclass(eq=False)
class Training:
    """The training of a network, at step 0 until it is restored. A subclass for each
    kind of network gives batches, steps, validation figures and the bundle.

    Attributes:
      way_out: what helps where a loss is not finite.
      smaller: what takes less time, where a training takes long.
      epoch_steps: about the steps of a pass through the records, for a training that
          counts passes.
      best_by: the figure of a validation by which the best step is chosen: a small
          `loss`, or a large one of the others.
      output: the bundle's folder.
      settings: all that the weights after a step depend on, by name.
      pace: of which steps, epochs, checkpoints, validations and patience count.
      network: the network that is trained.
      optimizer: built for the trainable weights of the network.
      provenance: the command, the records and the settings, for the manifest.
      position: how far the training has come.
      reports: the figures of all steps, a line of `losses.jsonl` each.
    """

    way_out = "lower `learning_rate=`"
    smaller = "fewer steps"
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
        """The batches of an epoch, counted from 0, without its first `skip`."""
        raise NotImplementedError

    def make_step(self, batches: Any) -> Step:
        """A function that makes a step on one of these batches."""
        raise NotImplementedError

    def validate(self) -> dict[str, float]:
        """The figures of the network as it is."""
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
        """All variables that a checkpoint keeps."""
        return [*self.network.variables, *self.optimizer.variables]
