"""`precis train-keyphrases`: records with oracle labels -> bundle of a classifier of
keyphrases.
"""

import tempfile
from typing import Any

from precis.model.bundle.manifest import KEYPHRASES, refuse_other_kind
from precis.model.keyphrases.training import train_keyphrases as train_classifier
from precis.model.progress.stages import stage
from precis.model.records.dataset import load_dataset, require_oracle
from precis.model.records.example import read_labelled
from precis.model.records.facts import record_facts
from precis.model.training.export import TrainResult
from precis.model.training.shards import check_shards
from precis.pipelines.flags.flags import read_flags, recorded_flags
from precis.pipelines.options.train import TRAIN_KEYPHRASES
from precis.pipelines.run.job_progress import shown


def train_keyphrases(**flags: Any) -> TrainResult:
    """Trains the classifier behind the column `keyphrases` and saves it as a bundle.

    Args:
      **flags: the fields of `LabelledRecordsOptions`.

    Raises:
      UsageError: invalid flags, or records without oracle labels.
      DataError: damaged records, or records without a candidate to learn from.
    """
    concerns = read_flags(TRAIN_KEYPHRASES, flags)
    (options,) = concerns
    refuse_other_kind(options.output, KEYPHRASES)
    info = load_dataset(options.records)
    require_oracle(info, options.records)
    provenance = {
        "records_fingerprint": info.fingerprint,
        "data": [record_facts(info)],
        "command": "train-keyphrases",
        "flags": recorded_flags(concerns),
    }
    with (
        shown("train-keyphrases"),
        tempfile.TemporaryDirectory(prefix="precis-records-") as staging,
        stage("train", total=info.records("train")) as progress,
    ):
        shards = check_shards(options.records, info, "train", staging=staging)
        articles = (
            progress.counted((record.sentences, record.highlights))
            for path in shards
            for record in read_labelled(path)
        )
        model = train_classifier(articles, provenance=provenance)
    return TrainResult(options.output, model.save(options.output), 0, {})
