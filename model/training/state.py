"""What the training of a network works on: the setup, which stays as it is, and the
state, which every step changes and a checkpoint keeps.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from precis.model import files
from precis.model.bundle.manifest import TRAINING_FOLDER
from precis.model.errors import UsageError
from precis.model.inference.summarizer import Summarizer
from precis.model.network.build import build_network
from precis.model.network.config import NetworkConfig
from precis.model.network.generator import Generator
from precis.model.search.config import SearchConfig
from precis.model.search.special import special_tokens
from precis.model.training.batch_shapes import BatchLimits, SpecialIds
from precis.model.training.checkpoint import (
    Position,
)
from precis.model.training.config import LINEAR, TrainingConfig
from precis.model.training.initialization import InitialWeights, initialise
from precis.model.training.loss_log import LOSSES_FILE, LossLog
from precis.model.training.optimizer import make_optimizer
from precis.model.training.record_sets import RecordSets
from precis.model.training.resume import save_training
from precis.model.training.shards import check_shards
from precis.model.training.strategy import is_chief, needs_fixed_shapes
from precis.model.training.validation import Validator
from precis.model.training.workers import Workers

# Settings that may change when a training is resumed: they say how long it runs, where,
# and what it reports, and do not change what a step does.
_FREE_SETTINGS = (
    "steps",
    "epochs",
    "average_checkpoints",
    "patience",
    "checkpoint_steps",
    "keep_checkpoints",
    "validation_steps",
    "validation_documents",
    "validation_beam_width",
    "strategy",
    "steps_per_loop",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingSetup:
    """What is fixed before the first step.

    Attributes:
      records: the record sets that are trained on.
      initial: the weights that the network begins with.
      training: how to train.
      strategy: the devices.
      workers: the processes.
      output: the bundle's folder.
      staging: a local folder for copies of what lies on an object store, removed when
          the training ends.
      shards: the local paths of all training shards, checked.
      limits: the shapes of the batches.
      ids: the special ids of sources and targets.
      settings: all that the weights after a step depend on, by name.
      request: the command and its flags, for the manifest.
    """

    records: RecordSets
    initial: InitialWeights
    training: TrainingConfig
    strategy: tf.distribute.Strategy
    workers: Workers
    output: str
    staging: str
    shards: list[str]
    limits: BatchLimits
    ids: SpecialIds
    settings: Mapping[str, Any]
    request: Mapping[str, Any]

    @property
    def fingerprint(self) -> str:
        """The sha256 of the settings."""
        return files.sha256_json(self.settings)

    @property
    def is_chief(self) -> bool:
        """Whether this process writes checkpoints, losses, logs and the bundle."""
        return is_chief(self.strategy)

    @property
    def folder(self) -> str:
        """The folder of checkpoints, losses and TensorBoard logs."""
        return files.join(self.output, TRAINING_FOLDER)

    @property
    def checkpoints(self) -> str:
        """The folder of the checkpoints."""
        return files.join(self.folder, "checkpoints")

    @property
    def tensorboard(self) -> str:
        """The folder that TensorFlow writes its logs to.

        It writes to an object store only with credentials of its own, so the logs for
        one are written to the staging folder and copied.
        """
        is_local = files.is_local(self.output)
        return files.join(self.folder if is_local else self.staging, "tensorboard")


@dataclasses.dataclass(kw_only=True)
class TrainingState:
    """What the steps of a training change.

    Attributes:
      network: the network that is trained.
      optimizer: built for the trainable weights of the network.
      validator: scores the network as it is; None where nothing is validated.
      origin: where the first weights came from, for the manifest.
      position: how far the training has come.
      log: the reports of all steps.
    """

    network: Generator
    optimizer: keras.optimizers.Optimizer
    validator: Validator | None
    origin: dict[str, Any]
    position: Position
    log: LossLog

    @property
    def variables(self) -> list[Any]:
        """All variables that a checkpoint keeps."""
        return [*self.network.variables, *self.optimizer.variables]


def make_setup(
    records: RecordSets,
    output: str,
    *,
    network: NetworkConfig,
    training: TrainingConfig,
    strategy: tf.distribute.Strategy,
    initial: InitialWeights,
    staging: str,
    request: Mapping[str, Any] | None = None,
) -> TrainingSetup:
    """Checks the records and collects what is fixed before the first step.

    Raises:
      UsageError: a loop of steps on several devices.
      DataError: a shard is missing or damaged.
    """
    check_loop(training.steps_per_loop, strategy.num_replicas_in_sync)
    target_ids = special_tokens(records.tokenizers.target, initial.special)
    shards = records.shards(staging=staging)
    ids = SpecialIds(
        target_pad=target_ids.pad_id,
        start=target_ids.start_id,
        end=target_ids.end_id,
    )
    limits = BatchLimits(
        max_source_tokens=network.max_source_tokens,
        max_target_tokens=network.max_target_tokens,
        batch_tokens=training.batch_tokens,
        pieces=strategy.num_replicas_in_sync * training.accumulate,
        fixed_shapes=needs_fixed_shapes(strategy),
        source_end_tokens=len(records.tokenizers.source.surrounding_ids[1]),
    )
    return TrainingSetup(
        records=records,
        initial=initial,
        training=training,
        strategy=strategy,
        workers=Workers(strategy),
        output=output,
        staging=staging,
        shards=shards,
        limits=limits,
        ids=ids,
        settings=_settings(records, network, training, initial, limits),
        request=request or {},
    )


def check_loop(steps_per_loop: int, devices: int) -> None:
    """Refuses a loop of steps on several devices.

    TensorFlow fails there: the branch that makes a step lacks the batch of a device.

    Raises:
      UsageError: there are several of both.
    """
    if steps_per_loop > 1 and devices > 1:
        raise UsageError(
            f"--steps_per_loop {steps_per_loop} works on one device, and there are "
            f"{devices}; leave it out"
        )


def _settings(
    records: RecordSets,
    network: NetworkConfig,
    training: TrainingConfig,
    initial: InitialWeights,
    limits: BatchLimits,
) -> dict[str, Any]:
    """What the weights after a step depend on, by name."""
    settings = {
        name: value
        for name, value in dataclasses.asdict(training).items()
        if name not in _FREE_SETTINGS
    }
    if training.schedule == LINEAR:
        settings["steps"] = training.steps
    else:
        # Trainings keep the fingerprint that they had before there was a choice.
        del settings["schedule"]
    if limits.fixed_shapes:
        # Batches of one shape hold other documents than batches of similar lengths.
        settings["fixed_shapes"] = True
    return {
        "records": records.identity,
        "start": dict(initial.identity),
        **dataclasses.asdict(network),
        **settings,
    }


def make_state(setup: TrainingSetup, network_config: NetworkConfig) -> TrainingState:
    """Builds the network, the optimizer and the validator, at step 0.

    Raises:
      UsageError: settings of an encoder for a network without one, or records without
          the split that is validated on.
      DataError: damaged word vectors or a damaged validation shard.
    """
    training = setup.training
    with setup.strategy.scope():
        network = build_network(
            network_config, seed=training.seed, precision=training.precision
        )
        source_tokenizer = setup.records.tokenizers.source
        origin = initialise(network, setup.initial, source_tokenizer)
        _check_encoder_settings(training, network)
        if training.freeze_encoder:
            network.freeze_encoder()
        encoder_weights = [
            weight
            for part in network.encoder_parts()
            for weight in part.trainable_variables
        ]
        optimizer = make_optimizer(
            training, network_config.width, encoder=encoder_weights
        )
        optimizer.build(network.trainable_variables)
    validator = _make_validator(setup, network) if training.validation_steps else None
    return TrainingState(
        network=network,
        optimizer=optimizer,
        validator=validator,
        origin=origin,
        position=Position(),
        log=LossLog(path=files.join(setup.folder, LOSSES_FILE)),
    )


def _check_encoder_settings(training: TrainingConfig, network: Generator) -> None:
    names = ("freeze_encoder", "encoder_learning_rate", "encoder_warmup_steps")
    given = [name for name in names if getattr(training, name)]
    if given and not network.encoder_parts():
        raise UsageError(
            f"--{given[0]} is about an encoder, and this network has none of its own; "
            "leave it out"
        )


def _make_validator(setup: TrainingSetup, network: Generator) -> Validator:
    """The validator on the first documents of the first record set's split
    `validation`.
    """
    training = setup.training
    folder = setup.records.folders[0]
    info = setup.records.infos[0]
    tokenizers = setup.records.tokenizers
    if "validation" not in info.splits:
        raise UsageError(
            f"{folder} has no split 'validation'; prepare the records with one, "
            "or train with --validation_steps 0"
        )
    shards = check_shards(folder, info, "validation", staging=setup.staging)
    summarizer = Summarizer(
        network,
        tokenizers.target,
        SearchConfig(beam_width=training.validation_beam_width),
        setup.initial.special,
        tokenizers.source,
    )
    return Validator(
        shards,
        documents=training.validation_documents,
        limits=setup.limits._replace(pieces=1),
        ids=setup.ids,
        summarizer=summarizer,
    )


def save_state(setup: TrainingSetup, state: TrainingState) -> None:
    """Publishes the losses, then the checkpoint that they lead to.

    Only the chief process writes; in the others nothing happens.
    """
    if not setup.is_chief:
        return
    save_training(setup, state, keep=setup.training.keep_checkpoints)
    if not files.is_local(setup.output):
        files.copy_tree(setup.tensorboard, files.join(setup.folder, "tensorboard"))
