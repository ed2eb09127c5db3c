"""`precis train-extractor`: records with oracle labels -> bundle of a network that
picks sentences.
"""

from typing import Any

from precis.model.bundle.manifest import EXTRACTIVE, refuse_other_kind
from precis.model.training.export import TrainResult
from precis.model.training.extractor import train_extractor as train_network
from precis.pipelines.flags.flags import read_flags, recorded_flags
from precis.pipelines.options.train import TRAIN_EXTRACTOR
from precis.pipelines.run.job_progress import shown


def train_extractor(**flags: Any) -> TrainResult:
    """Trains a network that picks sentences and saves it as a bundle, for the method
    `neural` of `precis summarize`; goes on where an interrupted run stopped.

    Args:
      **flags: the fields of `LabelledRecordsOptions` and `ExtractiveTraining`.

    Raises:
      UsageError: invalid flags, or records without oracle labels or without the
          split `validation`.
      DataError: damaged records, or a loss that is not finite.
    """
    concerns = read_flags(TRAIN_EXTRACTOR, flags)
    options, training = concerns
    refuse_other_kind(options.output, EXTRACTIVE)
    with shown("train-extractor"):
        return train_network(
            options.records,
            options.output,
            training=training,
            request={"command": "train-extractor", "flags": recorded_flags(concerns)},
        )
