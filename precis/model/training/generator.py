"""The training of a network that writes, from records to a bundle."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from precis.model import rouge
from precis.model.bundle.network_bundle import save_bundle
from precis.model.config import stored_fields
from precis.model.errors import UsageError
from precis.model.inference.summarizer import distinct_summaries, make_searcher
from precis.model.network.build import build_network
from precis.model.network.config import NetworkConfig
from precis.model.network.generator import Generator
from precis.model.progress.stages import say
from precis.model.records.example import LANGUAGE, feature_spec
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
from precis.model.training.loss import Sums, smoothed_cross_entropy
from precis.model.training.optimizer import make_optimizer
from precis.model.training.record_sets import RecordSets, check_shards, say_languages
from precis.model.training.state import Step, Training
from precis.model.training.strategy import make_strategy, needs_fixed_shapes
from precis.model.training.train_step import make_train_step

# Settings that may change when a training is resumed: how long it runs, where, and what
# it reports. They do not change the result of a step.
FREE_SETTINGS = (
    "steps epochs patience checkpoint_steps keep_checkpoints validation_steps "
    "validation_documents strategy"
).split()

# The size of the shuffle buffer.
_SHUFFLED_DOCUMENTS = 10_000
# The share of validation summaries below the figure `low_log_prob`. Summaries of the
# bundle below this figure get the quality flag `low_confidence`.
_UNSURE_SHARE = 0.05
_LOW_LOG_PROB = "low_log_prob"


class GeneratorTraining(Training):
    """The training of a network that writes.

    Args:
      records: the record sets.
      output: the bundle's folder; checkpoints and losses go to `training/` in it.
      network: the shape of the network, with the vocabulary of the records.
      training: the settings.
      initial: the initial weights.
      request: the command and its flags, for the manifest.
      staging: a local folder for copies of records from an object store.

    Raises:
      UsageError: `freeze_encoder` is set and the network has no encoder, or the records
          have no validation split.
      DataError: a shard is missing or damaged, or the word vectors are damaged.
    """

    way_out = "lower `learning_rate=`, raise `warmup_steps=` or train in float32"

    def __init__(
        self,
        records: RecordSets,
        output: str,
        *,
        network: NetworkConfig,
        training: TrainingConfig,
        initial: InitialWeights,
        request: Mapping[str, Any],
        staging: str,
    ) -> None:
        self.records = records
        self.initial = initial
        self.strategy = make_strategy(training.strategy)
        self.shards = records.shards(staging=staging)
        self.shapes = self._batch_settings(network, training)
        with self.strategy.scope():
            built, optimizer, origin = build_trained(
                network, training, initial, records.tokenizers.source
            )
        settings = {
            name: value
            for name, value in dataclasses.asdict(training).items()
            if name not in FREE_SETTINGS
        }
        if training.schedule == LINEAR:
            settings["steps"] = training.steps
        super().__init__(
            output,
            settings={
                "records": records.identity,
                "start": dict(initial.identity),
                # With one fixed shape, the batches hold other documents.
                "fixed_shapes": self.shapes.fixed_shapes,
                **stored_fields(network),
                **settings,
            },
            pace=training,
            network=built,
            optimizer=optimizer,
            provenance={
                **request,
                "records_fingerprint": records.identity,
                "data": [info.facts() for info in records.infos],
                "start": origin,
                "training": dataclasses.asdict(training),
            },
        )
        if training.validation_steps:
            self._prepare_validation(staging)

    def _batch_settings(
        self, network: NetworkConfig, training: TrainingConfig
    ) -> BatchSettings:
        """The shapes of the batches."""
        tokenizers = self.records.tokenizers
        special = special_tokens(tokenizers.target, self.initial.special)
        return BatchSettings(
            max_source_tokens=network.max_source_tokens,
            max_target_tokens=network.max_target_tokens,
            batch_tokens=training.batch_tokens,
            target_pad=special.pad_id,
            start=special.start_id,
            end=special.end_id,
            pieces=self.strategy.num_replicas_in_sync * training.accumulate,
            fixed_shapes=needs_fixed_shapes(self.strategy),
            source_end_tokens=len(tokenizers.source.surrounding_ids[1]),
        )

    def batches(self, epoch: int, skip: int) -> Any:
        """Distributed batches, as `epoch_batches` describes them."""
        return distributed_batches(
            self.strategy,
            self.shards,
            self.shapes,
            seed=self.pace.seed,
            epoch=epoch,
            skip=skip,
            shuffle_documents=_SHUFFLED_DOCUMENTS,
            documents=[info.records("train") for info in self.records.infos],
        )

    @property
    def epoch_steps(self) -> int:
        """The approximate number of batches per epoch, by the mean source length and
        the longest target.
        """
        tokens, longest = 0.0, self.shapes.max_source_tokens
        for info in self.records.infos:
            row = min(info.source_lengths.mean, longest) + self.shapes.max_target_tokens
            tokens += info.records("train") * row
        return round(tokens / self.shapes.batch_tokens)

    def make_step(self, batches: Any) -> Step:
        """A compiled step, with the figures of `make_train_step`."""
        return make_train_step(
            self.network,
            self.optimizer,
            self.strategy,
            training=self.pace,
            target_pad_id=self.shapes.target_pad,
            batch_spec=batches.element_spec,
        )

    def _prepare_validation(self, staging: str) -> None:
        """Reads the first validation documents of the first record set, and builds the
        search and the loss for them, so that they are compiled once.
        """
        folder, info = self.records.folders[0], self.records.infos[0]
        shards = check_shards(folder, info, "validation", staging=staging)
        documents = self.pace.validation_documents
        rows = tf.data.TFRecordDataset(shards).take(documents)
        examples = [tf.io.parse_single_example(row, feature_spec()) for row in rows]
        # Records may have longer sources than the network reads.
        limit = self.network.config.max_source_tokens
        sources = [each["source"].numpy().astype("int32") for each in examples]
        tokenizers = self.records.tokenizers
        self._sources = [tokenizers.source.cut(source, limit) for source in sources]
        self._references = [each["highlights"].numpy().decode() for each in examples]
        self._languages = [each[LANGUAGE].numpy().decode() for each in examples]
        are_read = map(rouge.reads, self._references, self._languages)
        if 2 * sum(are_read) < len(self._references):
            self.best_by = "loss"
            say(
                "the best step is chosen by its loss, as ROUGE finds no words in most "
                "highlights"
            )
        else:
            say_languages(self._languages)
        self._validation_batches = epoch_batches(
            [shards],
            self.shapes._replace(pieces=1),
            seed=0,
            epoch=0,
            shuffle_documents=0,
            take=documents,
        )
        self._searcher = make_searcher(
            self.network,
            tokenizers.target,
            SearchConfig(beam_width=1),
            self.initial.special,
            tokenizers.source,
        )

        @tf.function(reduce_retracing=True, autograph=False)
        def loss_sums(batch: dict[str, tf.Tensor]) -> Sums:
            return smoothed_cross_entropy(
                self.network.predict_next(batch["source"], batch["target"]),
                batch["expected"],
                pad_id=self.shapes.target_pad,
                smoothing=0.0,
            )

        self._loss_sums = loss_sums

    def validate(self) -> dict[str, float]:
        """The validation figures, on the first documents of the validation split:

        - `loss`, the mean loss of a target token, without smoothing;
        - `accuracy`, the share of target tokens with the highest probability;
        - the mean F1 of each ROUGE measure of greedy summaries, if ROUGE can compare
          the references;
        - `low_log_prob`, the 5th percentile of the mean token log-probabilities of
          these summaries, in nats.
        """
        sums = [
            [float(part) for part in self._loss_sums(batch)]
            for batch in self._validation_batches
        ]
        loss, correct, tokens = np.sum(sums, axis=0)
        tokenizer = self.records.tokenizers.target
        summaries = [
            distinct_summaries(ranked, tokenizer)[0]
            for ranked in self._searcher.search(self._sources)
        ]
        scores = {}
        if self.best_by != "loss":
            texts = [each.text for each in summaries]
            scores = rouge.scores(self._references, texts, self._languages)
        log_probs = [each.mean_log_prob for each in summaries]
        return {
            "loss": loss / tokens,
            "accuracy": correct / tokens,
            **{name: float(np.mean(values)) for name, values in scores.items()},
            _LOW_LOG_PROB: float(np.quantile(log_probs, _UNSURE_SHARE)),
        }

    def save(self, provenance: dict[str, Any]) -> str:
        """Writes the bundle and returns its model_id."""
        tokenizers = self.records.tokenizers
        has_one_tokenizer = tokenizers.source is tokenizers.target
        return save_bundle(
            self.output,
            network=self.network,
            tokenizer=tokenizers.target,
            source_tokenizer=None if has_one_tokenizer else tokenizers.source,
            provenance=provenance,
            decoding=self.initial.decoding,
            special=self.initial.special,
            task_prefixes=self.records.task_prefixes,
            min_mean_log_prob=provenance["validation"].get(_LOW_LOG_PROB),
        )


def build_trained(
    config: NetworkConfig,
    training: TrainingConfig,
    initial: InitialWeights,
    source_tokenizer: AnyTokenizer,
) -> tuple[Generator, keras.optimizers.Optimizer, dict[str, Any]]:
    """A network with its initial weights, the optimizer for its trainable weights, and
    where the weights come from, for the manifest.

    Raises:
      UsageError: `freeze_encoder` is set and the network has no encoder.
      DataError: the word vectors are damaged.
    """
    network = build_network(config, seed=training.seed, precision=training.precision)
    origin = initialise(network, initial, source_tokenizer)
    if training.freeze_encoder:
        if not network.encoder_parts():
            raise UsageError(
                "`freeze_encoder=` does not apply, as this network has no separate "
                "encoder; leave it out"
            )
        network.freeze_encoder()
    optimizer = make_optimizer(training, config.width)
    optimizer.build(network.trainable_variables)
    return network, optimizer, origin
