"""The training of a network that writes: records -> bundle."""

import dataclasses
import functools
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from precis.model import rouge
from precis.model.bundle.network_bundle import save_bundle
from precis.model.errors import UsageError
from precis.model.inference.summarizer import Summarizer
from precis.model.network.build import build_network
from precis.model.network.config import NetworkConfig
from precis.model.network.generator import Generator
from precis.model.records.example import feature_spec
from precis.model.search.config import SearchConfig
from precis.model.search.special import special_tokens
from precis.model.tokenization.folder import AnyTokenizer
from precis.model.training.batches import (
    BatchSettings,
    distributed_batches,
    epoch_batches,
)
from precis.model.training.config import LINEAR, TrainingConfig
from precis.model.training.initialization import InitialWeights, initialise
from precis.model.training.loop import TrainResult, run_training
from precis.model.training.loss import Sums, smoothed_cross_entropy
from precis.model.training.optimizer import make_optimizer
from precis.model.training.record_sets import RecordSets, check_shards
from precis.model.training.state import Training
from precis.model.training.strategy import make_strategy, needs_fixed_shapes
from precis.model.training.train_step import make_train_step
from precis.model.training.workers import Workers

# Settings that may change when a training is resumed: they say how long it runs, where,
# and what it reports, and do not change what a step does.
FREE_SETTINGS = (
    "steps",
    "epochs",
    "patience",
    "checkpoint_steps",
    "keep_checkpoints",
    "validation_steps",
    "validation_documents",
    "validation_beam_width",
    "strategy",
)


def train_network(
    records: RecordSets,
    output: str,
    *,
    network: NetworkConfig,
    training: TrainingConfig,
    initial: InitialWeights | None = None,
    request: Mapping[str, Any] | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> TrainResult:
    """Trains a network on records and writes it to `output` as a bundle.

    A run that was interrupted goes on from its last checkpoint when it is called again
    with the same arguments.

    Args:
      records: what `precis prepare` wrote.
      output: the bundle's folder; checkpoints, losses and TensorBoard logs go to
          `training/` in it.
      network: its shape; the vocabulary must be the records'.
      training: how to train.
      initial: the first weights; random ones by default.
      request: the command and its flags, for the manifest.
      is_stopped: whether to save and stop after the present step.

    Raises:
      UsageError: arguments that contradict each other or an earlier run in `output`.
      DataError: damaged records, or a loss that is not finite.
      Interrupted: stopped, after the state was saved.
      WorkersEnded: another process of the training was stopped or is lost.
    """
    with tempfile.TemporaryDirectory(prefix="precis-records-") as staging:
        prepared = prepare_training(
            records,
            output,
            network=network,
            training=training,
            initial=initial or InitialWeights(),
            request=request or {},
            staging=staging,
        )
        return run_training(prepared, is_stopped)


def prepare_training(
    records: RecordSets,
    output: str,
    *,
    network: NetworkConfig,
    training: TrainingConfig,
    initial: InitialWeights,
    request: Mapping[str, Any],
    staging: str,
) -> Training:
    """The training at step 0; the arguments are those of `train_network`.

    Args:
      staging: a local folder for copies of records that lie on an object store.

    Raises:
      UsageError: settings of an encoder for a network without one, or records without
          the split that is validated on.
      DataError: a shard is missing or damaged, or damaged word vectors.
    """
    strategy = make_strategy(training.strategy)
    workers = Workers(strategy)
    sets = records.shards(staging=staging)
    shapes = _batch_settings(records, network, training, initial, strategy)
    with workers.ending_together(), strategy.scope():
        built = build_trained(network, training, initial, records.tokenizers.source)
    validate = None
    if training.validation_steps:
        summarizer = Summarizer(
            built.network,
            records.tokenizers.target,
            SearchConfig(beam_width=training.validation_beam_width),
            initial.special,
            records.tokenizers.source,
        )
        validate = make_validation(
            _validation_shards(records, staging),
            shapes._replace(pieces=1),
            summarizer,
            documents=training.validation_documents,
        )
    return Training(
        output=output,
        settings=_settings(records, network, training, initial, shapes),
        pace=training,
        network=built.network,
        optimizer=built.optimizer,
        batches=lambda epoch, skip: distributed_batches(
            strategy,
            sets,
            shapes,
            seed=training.seed,
            epoch=epoch,
            skip=skip,
            shuffle_documents=training.shuffle_documents,
            documents=[info.records("train") for info in records.infos],
        ),
        make_step=lambda batches: make_train_step(
            built.network,
            built.optimizer,
            strategy,
            training=training,
            target_pad_id=shapes.target_pad,
            batch_spec=batches.element_spec,
        ),
        validate=validate,
        score=lambda figures: figures["rouge2"],
        save=functools.partial(_save, output, records, initial, built.network),
        provenance={
            **request,
            "records_fingerprint": records.identity,
            "data": [info.facts() for info in records.infos],
            "start": built.origin,
            "training": dataclasses.asdict(training),
        },
        way_out="lower --learning_rate, raise --warmup_steps or train in float32",
        sources=lambda batch: batch["shard"],
        name_sources=functools.partial(_name_sources, strategy, sets),
        workers=workers,
    )


def _batch_settings(
    records: RecordSets,
    network: NetworkConfig,
    training: TrainingConfig,
    initial: InitialWeights,
    strategy: tf.distribute.Strategy,
) -> BatchSettings:
    """The shapes of the batches of a training."""
    special = special_tokens(records.tokenizers.target, initial.special)
    return BatchSettings(
        max_source_tokens=network.max_source_tokens,
        max_target_tokens=network.max_target_tokens,
        batch_tokens=training.batch_tokens,
        target_pad=special.pad_id,
        start=special.start_id,
        end=special.end_id,
        pieces=strategy.num_replicas_in_sync * training.accumulate,
        fixed_shapes=needs_fixed_shapes(strategy),
        source_end_tokens=len(records.tokenizers.source.surrounding_ids[1]),
    )


def _name_sources(
    strategy: tf.distribute.Strategy, sets: Sequence[Sequence[str]], rows: Any
) -> str:
    """The files that the rows of a batch are from, in words.

    Args:
      strategy: the devices.
      sets: the files of each record set.
      rows: int32 [B], per replica: the position of each row's file, -1 for a row of
          padding.
    """
    numbers = {
        int(number)
        for part in strategy.experimental_local_results(rows)
        for number in part.numpy()
        if number >= 0
    }
    paths = [path for shards in sets for path in shards]
    names = sorted({paths[number].rsplit("/", 1)[-1] for number in numbers})
    return f" (records of {', '.join(names)})"


def _save(
    output: str,
    records: RecordSets,
    initial: InitialWeights,
    network: Generator,
    provenance: dict[str, Any],
) -> str:
    """Writes the bundle and returns its model_id."""
    tokenizers = records.tokenizers
    has_one_tokenizer = tokenizers.source is tokenizers.target
    return save_bundle(
        output,
        network=network,
        tokenizer=tokenizers.target,
        source_tokenizer=None if has_one_tokenizer else tokenizers.source,
        provenance=provenance,
        decoding=initial.decoding,
        special=initial.special,
        task_prefixes=records.task_prefixes,
    )


def _settings(
    records: RecordSets,
    network: NetworkConfig,
    training: TrainingConfig,
    initial: InitialWeights,
    shapes: BatchSettings,
) -> dict[str, Any]:
    """What the weights after a step depend on, by name."""
    settings = {
        name: value
        for name, value in dataclasses.asdict(training).items()
        if name not in FREE_SETTINGS
    }
    if training.schedule == LINEAR:
        settings["steps"] = training.steps
    else:
        # Trainings keep the fingerprint that they had before there was a choice.
        del settings["schedule"]
    if shapes.fixed_shapes:
        # Batches of one shape hold other documents than batches of similar lengths.
        settings["fixed_shapes"] = True
    return {
        "records": records.identity,
        "start": dict(initial.identity),
        **dataclasses.asdict(network),
        **settings,
    }


class Built(NamedTuple):
    """A network with its first weights.

    Attributes:
      network: the network.
      optimizer: built for its trainable weights.
      origin: where the weights came from, for the manifest.
    """

    network: Generator
    optimizer: keras.optimizers.Optimizer
    origin: dict[str, Any]


def build_trained(
    config: NetworkConfig,
    training: TrainingConfig,
    initial: InitialWeights,
    source_tokenizer: AnyTokenizer,
) -> Built:
    """Builds a network and its optimizer."""
    network = build_network(config, seed=training.seed, precision=training.precision)
    origin = initialise(network, initial, source_tokenizer)
    names = ("freeze_encoder", "encoder_learning_rate", "encoder_warmup_steps")
    given = [name for name in names if getattr(training, name)]
    if given and not network.encoder_parts():
        raise UsageError(
            f"--{given[0]} is about an encoder, and this network has none of its own; "
            "leave it out"
        )
    if training.freeze_encoder:
        network.freeze_encoder()
    encoder_weights = [
        weight
        for part in network.encoder_parts()
        for weight in part.trainable_variables
    ]
    optimizer = make_optimizer(training, config.width, encoder=encoder_weights)
    optimizer.build(network.trainable_variables)
    return Built(network, optimizer, origin)


def _validation_shards(records: RecordSets, staging: str) -> list[str]:
    """The shards of the first record set's split `validation`."""
    folder, info = records.folders[0], records.infos[0]
    if "validation" not in info.splits:
        raise UsageError(
            f"{folder} has no split 'validation'; prepare the records with one, "
            "or train with --validation_steps 0"
        )
    return check_shards(folder, info, "validation", staging=staging)


def make_validation(
    shards: Sequence[str],
    shapes: BatchSettings,
    summarizer: Summarizer,
    *,
    documents: int,
) -> Callable[[], dict[str, float]]:
    """A function that scores a network as it is, on the first documents of a split.

    The documents are read once, and the loss is compiled once.

    Returns:
      A function without arguments. Its figures: `loss`, the mean loss of a target
      token, without smoothing; `accuracy`, the share of the target tokens to which the
      network gave the highest probability; the mean F1 of each kind of ROUGE.
    """
    rows = tf.data.TFRecordDataset(list(shards)).take(documents)
    examples = [tf.io.parse_single_example(row, feature_spec()) for row in rows]
    sources = [example["source"].numpy().astype("int32") for example in examples]
    references = [example["highlights"].numpy().decode() for example in examples]
    batches = epoch_batches(
        [shards], shapes, seed=0, epoch=0, shuffle_documents=0, take=documents
    )

    @tf.function(reduce_retracing=True, autograph=False)
    def loss_sums(batch: dict[str, tf.Tensor]) -> Sums:
        prediction = summarizer.network.predict_next(batch["source"], batch["target"])
        return smoothed_cross_entropy(
            prediction, batch["expected"], pad_id=shapes.target_pad, smoothing=0.0
        )

    def validate() -> dict[str, float]:
        loss, correct, tokens = np.sum(
            [[float(part) for part in loss_sums(batch)] for batch in batches], axis=0
        )
        summaries = [ranked[0].text for ranked in summarizer.summarize(sources)]
        scores = rouge.scores(references, summaries)
        return {
            "loss": loss / tokens,
            "accuracy": correct / tokens,
            **{name: float(np.mean(values)) for name, values in scores.items()},
        }

    return validate
