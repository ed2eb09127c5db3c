"""The training of a selector, from records with oracle labels to a bundle of the kind
`extractive`.

The encoder of the sentences, if there is one, is not trained. The vectors of the
sentences of each shard are computed once and stored, so that epochs are fast for any
encoder. Each epoch ends with a validation and a checkpoint.

    training/vectors/<shard>-<fingerprint>.npy   float16 [sentences of the shard, D], in
                                                 the order of the records
"""

import dataclasses
import itertools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from precis.model import files
from precis.model.bundle.manifest import TRAINING_FOLDER
from precis.model.bundle.network_bundle import load_encoder_bundle
from precis.model.errors import DataError
from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.expected import expected_rouge2, select_expected
from precis.model.extractive.features import FEATURE_COUNT, features_of_all
from precis.model.extractive.importance import ImportanceModel
from precis.model.extractive.selection import select
from precis.model.inference.selector_bundle import SelectorBundle, save_selector
from precis.model.inference.selector_network import SelectorNetwork, pad_inputs
from precis.model.inference.sentence_vectors import SentenceEncoder
from precis.model.network.build import build_network
from precis.model.network.config import SelectorConfig
from precis.model.network.selector import Selector
from precis.model.progress.stages import stage
from precis.model.records.dataset import load_dataset, require_oracle
from precis.model.records.example import read_labelled
from precis.model.rouge import Reference, tokenize
from precis.model.text.language import ENGLISH
from precis.model.text.stop_words import stop_words
from precis.model.training.config import ExtractiveTraining, TrainingConfig
from precis.model.training.importance import (
    ScoredArticle,
    fit_rising,
    train_importance,
)
from precis.model.training.record_sets import check_shards, say_languages
from precis.model.training.state import Step, Training

# The number of validation articles that are scored at the end of each epoch.
VALIDATION_ARTICLES = 2_000
_ENCODED_TOGETHER = 64  # in articles
_SCORED_TOGETHER = 256  # in articles
_WARMUP_SHARE = 0.1  # the share of all steps
_WEIGHT_DECAY = 0.01
_CLIP_NORM = 1.0
_LENGTH_JITTER = 8  # in sentences


class TrainingArticle(NamedTuple):
    """An article, cut off after the number of sentences that the selector reads.

    Attributes:
      vectors: float16 [N, D]; D is 0 without an encoder.
      features: float32 [N, F].
      labels: float32 [N], 1 for a sentence with the oracle label.
      sentences: the texts of the sentences; empty if only training needs the article.
      highlights: the reference; empty in the same case.
      language: the language of the article.
    """

    vectors: np.ndarray
    features: np.ndarray
    labels: np.ndarray
    sentences: tuple[str, ...] = ()
    highlights: str = ""
    language: str = ENGLISH


class SelectorTraining(Training):
    """The training of a selector.

    Args:
      records: the folder of records with oracle labels.
      output: the folder for the bundle; vectors, checkpoints and losses go to
          `training/` in it.
      training: the settings.
      request: the command and its flags, for the manifest.

    Attributes:
      info: the description of the records.
      encoder: the encoder of the sentences; None if only features are read.
      articles: the training articles.
      validated: the articles that are scored at the end of an epoch.

    Raises:
      UsageError: the records have no oracle labels or lack a required split.
      DataError: the records are damaged or have no sentences, or the bundle of the
          encoder is damaged.
    """

    best_by = "loss"

    def __init__(
        self,
        records: str,
        output: str,
        *,
        training: ExtractiveTraining,
        request: Mapping[str, Any],
    ) -> None:
        self.records = records
        self.output = output
        self.training = training
        self.info = load_dataset(records)
        require_oracle(self.info, records)
        self.encoder = None
        encoder_id, width = "", 0
        if training.encoder:
            self.encoder = load_encoder_bundle(
                training.encoder, precision=training.vector_precision
            )
            self._sentence_encoder = SentenceEncoder(
                self.encoder.encoder, self.encoder.tokenizer
            )
            encoder_id = self.encoder.model_id
            width = self.encoder.encoder.config.width
        self._vector_fingerprint = files.sha256_json(
            {
                "records": self.info.fingerprint,
                "encoder": encoder_id,
                "precision": training.vector_precision,
                "sentences": training.window_sentences,
            }
        )
        self._read_articles()
        shape = SelectorConfig(
            vector_width=width,
            dropout=training.dropout,
            max_sentences=training.window_sentences,
        )
        network = self._build_network(shape)
        steps_per_epoch = -(-len(self.articles) // training.batch_documents)
        steps = training.epochs * steps_per_epoch
        optimizer = _make_optimizer(training.learning_rate, steps)
        optimizer.build(network.trainable_variables)
        # The encoder is identified by its model_id, not by its folder.
        settings = dataclasses.asdict(training)
        del settings["encoder"]
        super().__init__(
            output,
            settings={
                "records": self.info.fingerprint,
                "encoder": encoder_id,
                **dataclasses.asdict(shape),
                **settings,
            },
            pace=TrainingConfig(
                steps=steps,
                checkpoint_steps=steps_per_epoch,
                validation_steps=steps_per_epoch,
                keep_checkpoints=1,
            ),
            network=network,
            optimizer=optimizer,
            provenance={
                **request,
                "records_fingerprint": self.info.fingerprint,
                "data": [self.info.facts()],
                "encoder": encoder_id or None,
                "training": settings,
            },
        )

    def _read_articles(self) -> None:
        """Reads the validation articles, then the training articles."""
        self.validated = self._read(
            "validation", most=VALIDATION_ARTICLES, texts=VALIDATION_ARTICLES
        )
        self.articles = self._read("train", texts=self.training.importance_articles)
        if not self.articles or not self.validated:
            raise DataError(
                f"{self.records}: a split has no article with a sentence to learn "
                "from; prepare another corpus"
            )
        say_languages([article.language for article in self.validated])
        if not any(article.labels.any() for article in self.articles):
            raise DataError(
                f"{self.records}: no sentence of an article has a word of its "
                "highlights, so there is nothing to learn; prepare another corpus"
            )

    def _build_network(self, shape: SelectorConfig) -> Any:
        """Builds the network, with the mean and deviation of the features."""
        network = build_network(shape, seed=self.training.seed)
        features = np.concatenate([article.features for article in self.articles])
        network.feature_mean.assign(features.mean(axis=0))
        network.feature_scale.assign(1.0 / np.maximum(features.std(axis=0), 1e-3))
        return network

    def batches(self, epoch: int, skip: int) -> Iterator[tuple[tf.Tensor, ...]]:
        """Batches of articles of similar length, in an order that depends only on the
        seed and the epoch.

        Yields:
          The arguments of a step: vectors float32 [B, N, D], features float32
          [B, N, F], places int32 [B, N] with -1 at padding, labels float32 [B, N].
        """
        size = self.training.batch_documents
        generator = np.random.default_rng([self.training.seed, epoch])
        jitter = generator.uniform(0, _LENGTH_JITTER, len(self.articles))
        lengths = np.array([len(article.labels) for article in self.articles])
        order = np.argsort(lengths + jitter, kind="stable")
        numbers = generator.permutation(-(-len(self.articles) // size))
        for start in numbers[skip:] * size:
            batch = [self.articles[place] for place in order[start : start + size]]
            inputs = pad_inputs(
                [article.vectors for article in batch],
                [article.features for article in batch],
                [0] * len(batch),
            )
            labels = np.zeros(inputs.places.shape, np.float32)
            for row, article in enumerate(batch):
                labels[row, : len(article.labels)] = article.labels
            yield tuple(map(tf.constant, (*inputs, labels)))

    def make_step(self, _: Any) -> Step:
        """A compiled step; its only figure is `loss`, the mean loss of a sentence,
        float32 scalar.

        It is traced for batches of any shape. If it were traced for the shape of the
        first batch, a resumed training would differ in the last bits.
        """
        network, optimizer = self.network, self.optimizer
        signature = (
            tf.TensorSpec([None, None, network.config.vector_width], tf.float32),
            tf.TensorSpec([None, None, FEATURE_COUNT], tf.float32),
            tf.TensorSpec([None, None], tf.int32),
            tf.TensorSpec([None, None], tf.float32),
        )

        @tf.function(input_signature=[signature], autograph=False)
        def train_step(batch: tuple[tf.Tensor, ...]) -> dict[str, tf.Tensor]:
            """Binary cross entropy over the sentences of a batch."""
            vectors, features, places, labels = batch
            weights = tf.cast(places >= 0, tf.float32)
            with tf.GradientTape() as tape:
                logits = network(vectors, features, places, training=True)
                losses = tf.nn.sigmoid_cross_entropy_with_logits(
                    labels=labels, logits=logits
                )
                loss = tf.reduce_sum(losses * weights) / tf.reduce_sum(weights)
            variables = network.trainable_variables
            gradients = tape.gradient(loss, [weight.value for weight in variables])
            gradients, _ = tf.clip_by_global_norm(
                [tf.convert_to_tensor(gradient) for gradient in gradients], _CLIP_NORM
            )
            optimizer.apply_gradients(zip(gradients, variables, strict=True))
            return {"loss": loss}

        return train_step

    def validate(self) -> dict[str, float]:
        """The mean loss of a sentence, by which the best epoch is chosen, and the mean
        ROUGE F1 of extracts of three sentences.
        """
        articles = self.validated
        scores = _score(self.network, articles)
        rows = []
        for article, row in zip(articles, scores, strict=True):
            places = select(
                article.sentences,
                row,
                selection=SelectionConfig(),
                language=article.language,
            )
            summary = "\n".join(article.sentences[place] for place in sorted(places))
            reference = Reference(article.highlights, article.language)
            figures = reference.score(summary)
            rows.append([figures[name] for name in ("rouge1", "rouge2")])
        rouge1, rouge2 = np.mean(rows, axis=0).tolist()
        labels = np.concatenate([article.labels for article in articles])
        positive = np.concatenate(scores)
        right = np.clip(np.where(labels > 0, positive, 1.0 - positive), 1e-12, 1.0)
        loss = float(-np.log(right).mean())
        return {"loss": loss, "rouge1": rouge1, "rouge2": rouge2}

    def save(self, provenance: dict[str, Any]) -> str:
        """Learns the importance of words, writes the bundle and returns its model_id.

        The learning is repeated if it is interrupted, as it takes only minutes.
        """
        importance = None
        if self.training.importance_articles:
            with stage("learn importance"):
                importance = self.learn_importance()
        return save_selector(
            self.output,
            network=SelectorNetwork.of(self.network),
            encoder=self.encoder,
            precision=self.training.vector_precision,
            provenance=provenance,
            importance=importance,
        )

    def learn_importance(self) -> ImportanceModel | None:
        """Learns the importance of words and pairs from the training articles that have
        texts, with the scores of the trained network as features.

        Returns:
          The importance; None if there is nothing to learn from.
        """
        sample = [article for article in self.articles if article.sentences]
        scored = []
        for start in range(0, len(sample), _SCORED_TOGETHER):
            articles = sample[start : start + _SCORED_TOGETHER]
            scores = _score(self.network, articles)
            for article, row in zip(articles, scores, strict=True):
                language = article.language
                sentences = [tokenize(each, language) for each in article.sentences]
                reference, stops = (
                    tokenize(article.highlights, language),
                    stop_words(language),
                )
                if reference and any(sentences):
                    scored.append(ScoredArticle(sentences, row, reference, stops))
        importance = train_importance(scored, seed=self.training.seed)
        return importance and self._calibrated(importance)

    def _calibrated(self, importance: ImportanceModel) -> ImportanceModel:
        """Calibrates the expected ROUGE-2 of extracts on the validation articles."""
        values, figures = [], []
        scores = _score(self.network, self.validated)
        articles = self.validated
        expectations = importance.expect_references(
            [article.sentences for article in articles],
            scores,
            [article.language for article in articles],
        )
        for article, row, expected in zip(articles, scores, expectations, strict=True):
            if expected is None or not article.highlights:
                continue
            language = article.language
            places = select_expected(
                article.sentences,
                row,
                expected,
                selection=SelectionConfig(),
                language=language,
            )
            summary = "\n".join(article.sentences[place] for place in sorted(places))
            values.append(expected_rouge2(summary, expected, language))
            reference = Reference(article.highlights, language)
            figures.append(reference.score(summary)["rouge2"])
        if not values:
            return importance
        calibration = fit_rising(np.array(values), np.array(figures))
        return importance._replace(calibration=calibration)

    def _read(
        self, split: str, *, texts: int, most: int | None = None
    ) -> list[TrainingArticle]:
        """Reads the articles of a split that have sentences.

        Args:
          split: the name of the split.
          texts: the approximate number of articles that keep their texts, evenly
            spread over the articles.
          most: the maximum number of articles, from the beginning; None reads all.

        Raises:
          UsageError: the split holds no records.
          DataError: a shard is damaged.
        """
        with tempfile.TemporaryDirectory(prefix="precis-records-") as staging:
            shards = check_shards(self.records, self.info, split, staging=staging)
            records = self.info.records(split)
            total = min(records, most or records)
            every = -(-total // texts) if texts else 0
            shuffled = self.training.shuffled_share if split == "train" else 0.0
            generator = np.random.default_rng(self.training.seed)
            articles = itertools.chain.from_iterable(
                self._read_shard(path, every, shuffled, generator) for path in shards
            )
            with stage(f"read {split}", total=total) as reading:
                return list(map(reading.counted, itertools.islice(articles, most)))

    def _read_shard(
        self,
        path: str,
        text_every: int,
        shuffled: float,
        generator: np.random.Generator,
    ) -> Iterator[TrainingArticle]:
        """The articles of a shard. The share `shuffled` has another order of sentences;
        of the others, one in `text_every` keeps its texts.
        """
        records = list(read_labelled(path))
        most = self.training.window_sentences
        vectors = self._vectors(path, [record.sentences[:most] for record in records])
        orders = [np.arange(len(record.sentences)) for record in records]
        is_shuffled = generator.random(len(records)) < shuffled
        for place in np.flatnonzero(is_shuffled):
            orders[place][:most] = _another_order(orders[place][:most], generator)
        features = features_of_all(
            [
                [record.sentences[number] for number in order]
                for record, order in zip(records, orders, strict=True)
            ],
            languages=[record.language for record in records],
        )
        for place, (record, order) in enumerate(zip(records, orders, strict=True)):
            if not record.sentences:
                continue
            labels = np.zeros(len(record.sentences), np.float32)
            labels[list(record.oracle)] = 1.0
            article = TrainingArticle(
                vectors[place][order[:most]],
                features[place][:most],
                labels[order[:most]],
            )
            if text_every and place % text_every == 0 and not is_shuffled[place]:
                article = article._replace(
                    sentences=record.sentences[:most],
                    highlights=record.highlights,
                    language=record.language,
                )
            yield article

    def _vectors(
        self, shard: str, documents: Sequence[Sequence[str]]
    ) -> list[np.ndarray]:
        """The vectors of a shard's sentences, float16 [N, D] for each document; read
        from a file, which is first computed if it does not exist.
        """
        if self.encoder is None:
            return [np.zeros((len(texts), 0), np.float16) for texts in documents]
        name = f"{shard.rsplit('/', 1)[-1]}-{self._vector_fingerprint[:16]}.npy"
        path = files.join(self.output, TRAINING_FOLDER, "vectors", name)
        if not files.exists(path):
            encoder = self._sentence_encoder
            parts = [np.zeros((0, encoder.width), np.float16)]
            with stage("encode", total=len(documents)) as encoding:
                for start in range(0, len(documents), _ENCODED_TOGETHER):
                    batch = documents[start : start + _ENCODED_TOGETHER]
                    for vectors in encoder.vectors(batch):
                        parts.append(encoding.counted(vectors.astype(np.float16)))
            with files.write_aside(path) as file:
                np.save(file, np.concatenate(parts), allow_pickle=False)
        with files.open_read(path) as file:
            vectors = np.load(file, allow_pickle=False)
        ends = np.cumsum([len(document) for document in documents])
        return np.split(vectors, ends[:-1])


def _another_order(order: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """A random order of sentences or, half of the time, a rotation by a random number
    of places.
    """
    if generator.random() < 0.5:
        return generator.permutation(order)
    return np.roll(order, generator.integers(len(order) + 1))


def _make_optimizer(learning_rate: float, steps: int) -> keras.optimizers.Optimizer:
    """AdamW (Loshchilov and Hutter 2019) with a linear warm-up and a cosine decay to
    zero over `steps` steps.
    """
    warmup = max(1, int(_WARMUP_SHARE * steps))
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, max(1, steps - warmup), warmup_target=learning_rate, warmup_steps=warmup
    )
    return keras.optimizers.AdamW(schedule, weight_decay=_WEIGHT_DECAY)  # pyright: ignore[reportArgumentType]  # Keras takes schedules.


def _score(network: Selector, articles: Sequence[TrainingArticle]) -> list[np.ndarray]:
    """The scores of the sentences, [N] for each article."""
    selector = SelectorBundle(SelectorNetwork.of(network))
    return selector.score_inputs(
        [article.vectors.astype(np.float32) for article in articles],
        [article.features for article in articles],
    )
