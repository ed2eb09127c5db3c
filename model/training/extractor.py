"""Training of an extractor: records with oracle labels -> bundle of the kind
`extractive`.

The encoder, where there is one, is frozen: each shard's sentence vectors are computed
once and kept beside the checkpoints, so that an epoch costs a minute on a laptop
however large the encoder is. Each epoch ends with a checkpoint; an interrupted training
goes on from the last one with the steps it would have made.

training/vectors/<shard>.npy     float16 [sentences of the shard, D], in the order of the records
training/checkpoints/            one an epoch
training/losses.jsonl            one line an epoch
"""

import dataclasses
import io
import itertools
import json
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from tqdm import tqdm

from precis.model import files
from precis.model.bundle.encoder_bundle import EncoderBundle, load_encoder_bundle
from precis.model.errors import DataError, UsageError
from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.features import COUNT, features
from precis.model.extractive.selection import select
from precis.model.inference.sentence_scorer import (
    Inputs,
    NeuralScorer,
    pad_inputs,
    save_scorer,
)
from precis.model.inference.sentence_vectors import SentenceEncoder
from precis.model.network.build import build_extractor
from precis.model.network.config import ExtractorConfig
from precis.model.records.dataset import DatasetInfo, load_dataset, require_oracle
from precis.model.records.example import read_labelled
from precis.model.rouge import Reference
from precis.model.training.checkpoint import (
    Position,
    checkpoint_path,
    list_checkpoints,
    remove_old,
    restore_checkpoint,
    save_checkpoint,
)
from precis.model.training.config import ExtractiveTraining
from precis.model.training.input_batches import check_shards
from precis.model.training.loop import LOSSES_FILE, TrainResult

_WARMUP_SHARE = 0.1
_PEAK_RATE = 0.002
_WEIGHT_DECAY = 0.01
_ENCODED_AT_ONCE = 64  # articles
_VALIDATION_ARTICLES = 2_000  # scored at the end of an epoch, the first of the split


class Article(NamedTuple):
    """A training article, cut at the sentences that the network reads at once.

    Attributes:
      vectors: float16 [N, D]; features: float32 [N, F].
      labels: float32 [N], 1 for a sentence of the oracle.
      sentences, highlights: its text, kept for validation only.
    """

    vectors: np.ndarray
    features: np.ndarray
    labels: np.ndarray
    sentences: tuple[str, ...] = ()
    highlights: str = ""


def train_extractor(
    records: str, output: str, *, training: ExtractiveTraining
) -> TrainResult:
    """Trains an extractor and writes it as a bundle; goes on where an interrupted run
    of the same flags stopped.

    Args:
      records: folder that `precis prepare --oracle_sentences` wrote.
      output: folder for the bundle, with vectors, checkpoints and losses in `training/`
          below it.
      training: how to.

    Raises:
      UsageError: settings that cannot be, records without oracle labels, or checkpoints
          of another training.
      DataError: damaged records, none with sentences, or a loss that is not finite.
    """
    info = load_dataset(records)
    require_oracle(info, records)
    if "validation" not in info.splits:
        raise UsageError(
            f"{records} has no split 'validation', by which the best epoch is chosen; prepare the records with one"
        )
    encoder = (
        load_encoder_bundle(training.encoder, precision=training.vector_precision)
        if training.encoder
        else None
    )
    trainer = ExtractorTrainer(
        records, output, info=info, training=training, encoder=encoder
    )
    trainer.run()
    return trainer.export()


class ExtractorTrainer:
    """One training: the articles, the network, the optimizer, and how far it has come."""

    def __init__(
        self,
        records: str,
        output: str,
        *,
        info: DatasetInfo,
        training: ExtractiveTraining,
        encoder: EncoderBundle | None,
    ) -> None:
        self.output, self.folder, self.training, self.encoder, self.info = (
            output,
            files.join(output, "training"),
            training,
            encoder,
            info,
        )
        self.config = ExtractorConfig(
            vector_width=encoder.encoder.config.width if encoder else 0,
            dropout=training.dropout,
            max_sentences=training.window_sentences,
        )
        identity = {
            "records": info.fingerprint,
            "encoder": encoder.model_id if encoder else "",
            "extractor": dataclasses.asdict(self.config),
        }
        settings = {
            name: value
            for name, value in dataclasses.asdict(training).items()
            if name != "encoder"
        }
        self.fingerprint = files.sha256_json({**identity, "training": settings})
        reading = {
            "precision": training.vector_precision,
            "sentences": self.config.max_sentences,
        }
        self.vectors_fingerprint = files.sha256_json(
            {"records": info.fingerprint, "encoder": identity["encoder"], **reading}
        )
        files.remove_leftovers(output)
        self.sentence_encoder = (
            SentenceEncoder(encoder.encoder, encoder.tokenizer) if encoder else None
        )
        self.staging = tempfile.TemporaryDirectory(
            prefix="precis-records-"
        )  # removed with this object
        self.articles = list(self._read(records, "train", keep_text=False))
        self.validation = list(
            itertools.islice(
                self._read(records, "validation", keep_text=True), _VALIDATION_ARTICLES
            )
        )
        if not self.articles or not self.validation:
            raise DataError(
                f"{records}: no article of a split has a sentence to learn from; prepare another corpus"
            )
        self.network = build_extractor(self.config, seed=training.seed)
        self._set_feature_scale()
        self.steps_an_epoch = -(-len(self.articles) // training.batch_documents)
        self.optimizer = _make_optimizer(
            training, steps=self.steps_an_epoch * training.epochs
        )
        self.optimizer.build(self.network.trainable_variables)
        self.scorer = NeuralScorer(self.network, None)
        self.step = tf.function(
            self._train_step, input_signature=self._signature(), autograph=False
        )
        self.checkpoints = files.join(self.folder, "checkpoints")
        self.position, self.reports = self._restore()

    @property
    def _variables(self) -> list[Any]:
        return [*self.network.variables, *self.optimizer.variables]

    def _read(self, records: str, split: str, *, keep_text: bool) -> Iterator[Article]:
        """The articles of a split, with their vectors from this run or an earlier one."""
        shards = check_shards(records, self.info, split, staging=self.staging.name)
        limit = self.config.max_sentences
        for path in tqdm(
            shards, desc=f"read {split}", unit="shard", mininterval=10, file=sys.stderr
        ):
            labelled = list(read_labelled(path))
            vectors = self._vectors(path, [row.sentences[:limit] for row in labelled])
            for row, own in zip(labelled, vectors, strict=True):
                if not row.sentences:
                    continue
                labels = np.zeros(len(row.sentences), np.float32)
                labels[list(row.oracle)] = 1.0
                text = (
                    (row.sentences[:limit], row.highlights) if keep_text else ((), "")
                )
                yield Article(
                    own, features(row.sentences)[:limit], labels[:limit], *text
                )

    def _vectors(
        self, shard: str, documents: Sequence[Sequence[str]]
    ) -> list[np.ndarray]:
        """The vectors of a shard's sentences, float16 [N, D] an article."""
        if self.sentence_encoder is None:
            return [np.zeros((len(document), 0), np.float16) for document in documents]
        path = files.join(
            self.folder,
            "vectors",
            f"{shard.rsplit('/', 1)[-1]}-{self.vectors_fingerprint[:16]}.npy",
        )
        if not files.exists(path):
            pieces = [
                documents[start : start + _ENCODED_AT_ONCE]
                for start in range(0, len(documents), _ENCODED_AT_ONCE)
            ]
            bar = tqdm(
                pieces,
                desc="encode",
                unit=f"{_ENCODED_AT_ONCE} articles",
                mininterval=10,
                leave=False,
                file=sys.stderr,
            )
            found = [
                vectors.astype(np.float16)
                for piece in bar
                for vectors in self.sentence_encoder.vectors(piece)
            ]
            buffer = io.BytesIO()
            np.save(
                buffer,
                np.concatenate(
                    [np.zeros((0, self.config.vector_width), np.float16), *found]
                ),
                allow_pickle=False,
            )
            files.write_bytes(path, buffer.getvalue())
        every = np.load(io.BytesIO(files.read_bytes(path)), allow_pickle=False)
        return np.split(
            every, np.cumsum([len(document) for document in documents])[:-1]
        )

    def _signature(self) -> list[tf.TensorSpec]:
        """The arguments of a step, of any size: traced for the sizes of its first
        batch, a resumed training would be another one.
        """
        inputs = [
            tf.TensorSpec([None, None, width], tf.float32)
            for width in (self.config.vector_width, COUNT)
        ]
        return [
            *inputs,
            tf.TensorSpec([None, None], tf.int32),
            tf.TensorSpec([None, None], tf.float32),
        ]

    def _set_feature_scale(self) -> None:
        every = np.concatenate([article.features for article in self.articles])
        self.network.feature_mean.assign(every.mean(axis=0))
        self.network.feature_scale.assign(1.0 / np.maximum(every.std(axis=0), 1e-3))

    def _restore(self) -> tuple[Position, list[dict[str, Any]]]:
        """The newest intact checkpoint's position, its variables set, and the reports
        up to it.
        """
        for path in reversed(list_checkpoints(self.checkpoints)):
            position = restore_checkpoint(
                path, variables=self._variables, fingerprint=self.fingerprint
            )
            if position is not None:
                lines = (
                    files.read_bytes(files.join(self.folder, LOSSES_FILE))
                    .decode()
                    .splitlines()
                )
                return position, [
                    row
                    for row in map(json.loads, lines)
                    if row["step"] <= position.step
                ]
        return Position(), []

    def run(self) -> None:
        """Trains until the last epoch.

        Raises:
          DataError: a loss was not finite.
        """
        while self.position.epoch < self.training.epochs:
            losses = [self.step(*batch) for batch in self._batches(self.position.epoch)]
            self.position.step += len(losses)
            self.position.epoch += 1
            loss = float(np.mean(losses))
            if not math.isfinite(loss):
                raise DataError(
                    f"the loss is not finite in epoch {self.position.epoch}; lower --learning_rate, with another --output"
                )
            found = self._validate()
            self.position.validated_step = self.position.step
            if not self.position.best_step or -found["loss"] > self.position.best_score:
                self.position.best_step, self.position.best_score = (
                    self.position.step,
                    -found["loss"],
                )
            self.reports.append(
                {
                    "step": self.position.step,
                    "epoch": self.position.epoch,
                    "loss": loss,
                    "validation": found,
                }
            )
            self._save()
            scores = f"loss {found['loss']:.4f}, rouge1 {100 * found['rouge1']:.2f}, rouge2 {100 * found['rouge2']:.2f}"
            tqdm.write(
                f"epoch {self.position.epoch}: loss {loss:.4f}; validation {scores}",
                file=sys.stderr,
            )

    def _batches(self, epoch: int) -> Iterator[tuple[tf.Tensor, ...]]:
        """Batches of articles of similar length, in an order that depends on the seed
        and the epoch alone.
        """
        generator = np.random.default_rng([self.training.seed, epoch])
        jitter = generator.uniform(0, 8, len(self.articles))
        order = np.argsort(
            [
                len(article.labels) + noise
                for article, noise in zip(self.articles, jitter, strict=True)
            ],
            kind="stable",
        )
        size = self.training.batch_documents
        for number in generator.permutation(self.steps_an_epoch):
            chosen = [
                self.articles[place]
                for place in order[number * size : (number + 1) * size]
            ]
            inputs: Inputs = pad_inputs(
                [article.vectors for article in chosen],
                [article.features for article in chosen],
                [0] * len(chosen),
            )
            labels = np.zeros(inputs.places.shape, np.float32)
            for row, article in enumerate(chosen):
                labels[row, : len(article.labels)] = article.labels
            yield tuple(map(tf.constant, (*inputs, labels)))

    def _train_step(
        self, vectors: Any, own_features: Any, places: Any, labels: Any
    ) -> Any:
        """One step of binary cross entropy over the sentences of a batch; the mean loss
        of a sentence.
        """
        weights = tf.cast(places >= 0, tf.float32)
        with tf.GradientTape() as tape:
            logits = self.network(vectors, own_features, places, training=True)
            losses = tf.nn.sigmoid_cross_entropy_with_logits(
                labels=labels, logits=logits
            )
            loss = tf.reduce_sum(losses * weights) / tf.reduce_sum(weights)
        gradients = tape.gradient(
            loss, [weight.value for weight in self.network.trainable_variables]
        )
        gradients, _ = tf.clip_by_global_norm(
            [tf.convert_to_tensor(gradient) for gradient in gradients], 1.0
        )
        self.optimizer.apply_gradients(
            zip(gradients, self.network.trainable_variables, strict=True)
        )
        return loss

    def _validate(self) -> dict[str, float]:
        """Mean loss of a sentence, by which the best epoch is chosen, and mean ROUGE F1
        of summaries of three sentences.
        """
        found = self.scorer.score_inputs(
            [a.vectors.astype(np.float32) for a in self.validation],
            [a.features for a in self.validation],
        )
        rows = []
        for article, scores in zip(self.validation, found, strict=True):
            chosen = sorted(
                select(article.sentences, scores, selection=SelectionConfig())
            )
            figures = Reference(article.highlights).score(
                "\n".join(article.sentences[place] for place in chosen)
            )
            rows.append([figures[name].fmeasure for name in ("rouge1", "rouge2")])
        rouge1, rouge2 = np.mean(rows, axis=0).tolist()
        labels, every = (
            np.concatenate([article.labels for article in self.validation]),
            np.concatenate(found),
        )
        right = np.clip(np.where(labels > 0, every, 1.0 - every), 1e-12, 1.0)
        return {
            "loss": float(-np.log(right).mean()),
            "rouge1": rouge1,
            "rouge2": rouge2,
        }

    def _save(self) -> None:
        """Publishes the reports, then the checkpoint that they lead to."""
        lines = "".join(json.dumps(row) + "\n" for row in self.reports)
        files.write_bytes(files.join(self.folder, LOSSES_FILE), lines.encode())
        save_checkpoint(
            self.checkpoints,
            variables=self._variables,
            position=self.position,
            fingerprint=self.fingerprint,
        )
        remove_old(self.checkpoints, keep=1, best_step=self.position.best_step)

    def export(self) -> TrainResult:
        """Writes the bundle from the best epoch."""
        step = self.position.best_step
        path = checkpoint_path(self.checkpoints, step)
        if (
            step != self.position.step
            and restore_checkpoint(
                path, variables=self._variables, fingerprint=self.fingerprint
            )
            is None
        ):
            raise DataError(
                f"{path}: the best checkpoint is damaged; train again with another --output"
            )
        validation = next(
            row["validation"] for row in self.reports if row["step"] == step
        )
        provenance = {
            "records_fingerprint": self.info.fingerprint,
            "encoder": self.encoder.model_id if self.encoder else None,
            "training": {
                name: value
                for name, value in dataclasses.asdict(self.training).items()
                if name != "encoder"
            },
            "training_fingerprint": self.fingerprint,
            "step": step,
            "validation": validation,
        }
        model_id = save_scorer(
            self.output,
            extractor=self.network,
            encoder=self.encoder,
            precision=self.training.vector_precision,
            provenance=provenance,
        )
        return TrainResult(self.output, model_id, step, validation)


def _make_optimizer(
    training: ExtractiveTraining, *, steps: int
) -> keras.optimizers.Optimizer:
    """AdamW (Loshchilov and Hutter 2019) with a linear warm-up and a cosine decay to
    zero.
    """
    peak = training.learning_rate or _PEAK_RATE
    warmup = max(1, int(_WARMUP_SHARE * steps))
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, max(1, steps - warmup), warmup_target=peak, warmup_steps=warmup
    )
    return keras.optimizers.AdamW(schedule, weight_decay=_WEIGHT_DECAY)
