"""What a training works on: what is fixed before its first step, and what its steps
change.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from precis.model import files
from precis.model.bundle.manifest import TRAINING_FOLDER
from precis.model.training.config import TrainingConfig
from precis.model.training.workers import Workers

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


@dataclasses.dataclass(kw_only=True)
class Training:
    """The training of a network of any kind.

    Attributes:
      output: the bundle's folder.
      settings: all that the weights after a step depend on, by name.
      pace: of which steps, epochs, checkpoints, validations and patience count.
      network: the network that is trained.
      optimizer: built for the trainable weights of the network.
      batches: the batches of an epoch, counted from 0, without its first so many.
      make_step: a function that makes a step on one of the batches that it is given.
      validate: the figures of the network as it is; None where nothing is validated.
      score: of the figures of a validation, higher is better.
      save: writes the bundle with a provenance, and returns its model_id.
      provenance: the command, the records and the settings, for the manifest.
      way_out: what helps where a loss is not finite.
      sources: tells of a batch what `name_sources` needs.
      name_sources: says where the rows of a batch are from.
      workers: the processes that train together.
      position: how far the training has come.
      reports: the figures of all steps, a line of `losses.jsonl` each.
    """

    output: str
    settings: Mapping[str, Any]
    pace: TrainingConfig
    network: Any
    optimizer: Any
    batches: Callable[[int, int], Iterable[Any]]
    make_step: Callable[[Any], Step]
    validate: Callable[[], dict[str, float]] | None
    score: Callable[[Mapping[str, float]], float]
    save: Callable[[dict[str, Any]], str]
    provenance: Mapping[str, Any]
    way_out: str
    sources: Callable[[Any], Any] = lambda batch: None
    name_sources: Callable[[Any], str] = lambda sources: ""
    workers: Workers
    position: TrainingPosition = dataclasses.field(default_factory=TrainingPosition)
    reports: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    @property
    def fingerprint(self) -> str:
        """The sha256 of the settings."""
        return files.sha256_json(self.settings)

    @property
    def folder(self) -> str:
        """The folder of checkpoints, losses and TensorBoard logs."""
        return files.join(self.output, TRAINING_FOLDER)

    @property
    def checkpoints(self) -> str:
        """The folder of the checkpoints."""
        return files.join(self.folder, "checkpoints")

    @property
    def variables(self) -> list[Any]:
        """All variables that a checkpoint keeps."""
        return [*self.network.variables, *self.optimizer.variables]
