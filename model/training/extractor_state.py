"""What the training of an extractor works on: the setup, which stays as it is, and the
state, which every epoch changes and a checkpoint keeps.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from precis.model import files
from precis.model.bundle.encoder_bundle import EncoderBundle, load_encoder_bundle
from precis.model.bundle.manifest import TRAINING_FOLDER
from precis.model.errors import UsageError
from precis.model.network.build import build_extractor
from precis.model.network.config import ExtractorConfig
from precis.model.network.extractor import Extractor
from precis.model.records.dataset import DatasetInfo, load_dataset, require_oracle
from precis.model.training.checkpoint import (
    Position,
)
from precis.model.training.config import ExtractiveTraining
from precis.model.training.extractor_articles import TrainingArticle
from precis.model.training.extractor_step import (
    make_extractor_optimizer,
    steps_per_epoch,
)
from precis.model.training.loss_log import LOSSES_FILE, LossLog
from precis.model.training.resume import save_training


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExtractorSetup:
    """What is fixed before the first step.

    Attributes:
      records: the folder of the records.
      info: their description.
      output: the bundle's folder.
      training: how to train.
      encoder: reads the sentences; None where features alone are read.
      config: the shape of the extractor.
      settings: all that the weights depend on, by name.
      request: the command and its flags, for the manifest.
      vectors_fingerprint: of all that the sentence vectors depend on.
    """

    records: str
    info: DatasetInfo
    output: str
    training: ExtractiveTraining
    encoder: EncoderBundle | None
    config: ExtractorConfig
    settings: Mapping[str, Any]
    request: Mapping[str, Any]
    vectors_fingerprint: str

    @property
    def fingerprint(self) -> str:
        """The sha256 of the settings."""
        return files.sha256_json(self.settings)

    @property
    def folder(self) -> str:
        """The folder of vectors, checkpoints and losses."""
        return files.join(self.output, TRAINING_FOLDER)

    @property
    def checkpoints(self) -> str:
        """The folder of the checkpoints."""
        return files.join(self.folder, "checkpoints")


@dataclasses.dataclass(kw_only=True)
class ExtractorState:
    """What the epochs of a training change.

    Attributes:
      network: the extractor.
      optimizer: built for the trainable weights of the extractor.
      position: how far the training has come.
      log: the reports of all epochs.
    """

    network: Extractor
    optimizer: keras.optimizers.Optimizer
    position: Position
    log: LossLog

    @property
    def variables(self) -> list[Any]:
        """All variables that a checkpoint keeps."""
        return [*self.network.variables, *self.optimizer.variables]


def make_extractor_setup(
    records: str,
    output: str,
    *,
    training: ExtractiveTraining,
    request: Mapping[str, Any] | None = None,
) -> ExtractorSetup:
    """Checks the records, loads the encoder, and collects what is fixed before the
    first step.

    Raises:
      UsageError: records without oracle labels or without the split `validation`.
      DataError: a damaged bundle of the encoder.
    """
    info = load_dataset(records)
    require_oracle(info, records)
    if "validation" not in info.splits:
        raise UsageError(
            f"{records} has no split 'validation', by which the best epoch is chosen; "
            "prepare the records with one"
        )
    encoder = None
    if training.encoder:
        encoder = load_encoder_bundle(
            training.encoder, precision=training.vector_precision
        )
    config = ExtractorConfig(
        vector_width=encoder.encoder.config.width if encoder else 0,
        dropout=training.dropout,
        max_sentences=training.window_sentences,
    )
    encoder_id = encoder.model_id if encoder else ""
    settings = {
        "records": info.fingerprint,
        "encoder": encoder_id,
        **dataclasses.asdict(config),
        **settings_without_encoder(training),
    }
    vectors_fingerprint = files.sha256_json(
        {
            "records": info.fingerprint,
            "encoder": encoder_id,
            "precision": training.vector_precision,
            "sentences": config.max_sentences,
        }
    )
    return ExtractorSetup(
        records=records,
        info=info,
        output=output,
        training=training,
        encoder=encoder,
        config=config,
        settings=settings,
        request=request or {},
        vectors_fingerprint=vectors_fingerprint,
    )


def settings_without_encoder(training: ExtractiveTraining) -> dict[str, Any]:
    """The settings without the folder of the encoder, whose model id counts instead."""
    settings = dataclasses.asdict(training)
    del settings["encoder"]
    return settings


def make_extractor_state(
    setup: ExtractorSetup, articles: Sequence[TrainingArticle]
) -> ExtractorState:
    """Builds the extractor and the optimizer, at step 0.

    The features are scaled by the mean and the deviation of the training articles.
    """
    training = setup.training
    network = build_extractor(setup.config, seed=training.seed)
    features = np.concatenate([article.features for article in articles])
    network.feature_mean.assign(features.mean(axis=0))
    network.feature_scale.assign(1.0 / np.maximum(features.std(axis=0), 1e-3))
    steps = training.epochs * steps_per_epoch(articles, training.batch_documents)
    optimizer = make_extractor_optimizer(training, steps=steps)
    optimizer.build(network.trainable_variables)
    return ExtractorState(
        network=network,
        optimizer=optimizer,
        position=Position(),
        log=LossLog(path=files.join(setup.folder, LOSSES_FILE)),
    )


def save_extractor(setup: ExtractorSetup, state: ExtractorState) -> None:
    """Saves the state at the end of an epoch; the last and the best epoch stay."""
    save_training(setup, state, keep=1)
