"""What is left of the steps of `precis train-summarizer` in a folder that a command may
have begun.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from precis.model import files
from precis.model.bundle.manifest import (
    ABSTRACTIVE,
    EXTRACTIVE,
    MANIFEST_FILE,
    TRAINING_FOLDER,
    read_manifest,
    refuse_other_kind,
)
from precis.model.errors import DataError
from precis.model.records.dataset import load_dataset
from precis.pipelines.jobs.result_files import SUCCESS_FILE
from precis.pipelines.recipes.step_flags import StepFlags
from precis.pipelines.verification.bundle import check_bundle


class LeftSteps(NamedTuple):
    """What is left to do.

    Attributes:
      records, extractor, pairs: whether the step is.
      writer_steps: optimizer steps of the writer; 0 where its bundle is complete.
    """

    records: bool
    extractor: bool
    pairs: bool
    writer_steps: int

    @property
    def has_any(self) -> bool:
        """Whether there is something to do."""
        return bool(self.records or self.extractor or self.pairs or self.writer_steps)


def find_left_steps(steps: StepFlags) -> LeftSteps:
    """Looks at the output folder, and changes nothing.

    Raises:
      UsageError: a folder holds a bundle of another kind.
    """
    writer_steps = 0
    if not is_finished(steps.writer, ABSTRACTIVE):
        # The bundle is written again, if nothing else, so the step is not done.
        writer_steps = max(1, steps.writer["steps"] - _saved_step(steps))
    return LeftSteps(
        records=not _has_records(steps.records["output"]),
        extractor=not is_finished(steps.extractor, EXTRACTIVE),
        pairs=not _has_records(steps.pairs["output"]),
        writer_steps=writer_steps,
    )


def is_finished(flags: Mapping[str, Any], kind: str) -> bool:
    """Whether the bundle of a training is complete and whole and is of its records.

    The training of a damaged bundle makes it again from its last checkpoint.

    Args:
      flags: of the training.
      kind: of the bundle.

    Raises:
      UsageError: the folder holds a bundle of another kind.
    """
    folder, records = flags["output"], flags["records"]
    refuse_other_kind(folder, kind)
    if not files.exists(files.join(folder, MANIFEST_FILE)) or not _has_records(records):
        return False
    if any(check_bundle(folder)):
        return False
    try:
        fingerprint = load_dataset(records).fingerprint
    except DataError:  # They are prepared again.
        return False
    provenance = read_manifest(folder)["provenance"]
    return bool(provenance.get("records_fingerprint") == fingerprint)


def _has_records(folder: str) -> bool:
    return files.exists(files.join(folder, SUCCESS_FILE))


def _saved_step(steps: StepFlags) -> int:
    """The optimizer step of the writer's newest checkpoint; 0 without one."""
    folder = files.join(steps.writer["output"], TRAINING_FOLDER, "checkpoints")
    names = [name for name in files.list_folder(folder) if name.startswith("step-")]
    numbers = [name.removeprefix("step-") for name in names]
    return max((int(number) for number in numbers if number.isdigit()), default=0)
