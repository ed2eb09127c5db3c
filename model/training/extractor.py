"""The training of an extractor, which scores sentences: records with oracle labels ->
bundle of the kind `extractive`.

An encoder, where there is one, is not trained. The vectors of the sentences of each
shard are computed once and kept, so that an epoch costs a minute on a laptop whatever
the encoder's size. Each epoch ends with a validation and a checkpoint.

    training/vectors/<shard>-<fingerprint>.npy   float16 [sentences of the shard, D], in
                                                 the order of the records
"""

import dataclasses
import functools
import io
import itertools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from precis.model import files
from precis.model.bundle.manifest import TRAINING_FOLDER
from precis.model.bundle.network_bundle import EncoderBundle, load_encoder_bundle
from precis.model.errors import DataError, UsageError
from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.features import FEATURE_COUNT, features_of_all
from precis.model.extractive.importance import ImportanceModel
from precis.model.extractive.selection import select
from precis.model.extractive.terms import TermCache
from precis.model.inference.sentence_scorer import (
    SentenceScorer,
    pad_inputs,
    save_scorer,
)
from precis.model.inference.sentence_vectors import SentenceEncoder
from precis.model.network.build import build_network
from precis.model.network.config import ExtractorConfig
from precis.model.network.extractor import Extractor
from precis.model.progress.stages import stage
from precis.model.records.dataset import DatasetInfo, load_dataset, require_oracle
from precis.model.records.example import read_labelled
from precis.model.rouge import Reference, tokenize
from precis.model.training.config import ExtractiveTraining, TrainingConfig
from precis.model.training.importance import ScoredArticle, train_importance
from precis.model.training.loop import TrainResult, run_training
from precis.model.training.record_sets import check_shards
from precis.model.training.state import Step, Training
from precis.model.training.workers import Workers

# The first articles of the validation split, scored at the end of each epoch.
VALIDATION_ARTICLES = 2_000
_ENCODED_TOGETHER = 64  # articles
_SCORED_TOGETHER = 256  # articles
_WARMUP_SHARE = 0.1  # of all steps
_WEIGHT_DECAY = 0.01
_CLIP_NORM = 1.0
_LENGTH_JITTER = 8  # sentences


class TrainingArticle(NamedTuple):
    """An article, cut after the sentences that the extractor reads together.

    Attributes:
      vectors: float16 [N, D]; D is 0 without an encoder.
      features: float32 [N, F].
      labels: float32 [N], 1 for a sentence of the oracle summary.
      sentences: the texts of the sentences; empty where they are only trained on.
      highlights: the reference summary, in the same way.
    """

    vectors: np.ndarray
    features: np.ndarray
    labels: np.ndarray
    sentences: tuple[str, ...] = ()
    highlights: str = ""


def train_extractor(
    records: str,
    output: str,
    *,
    training: ExtractiveTraining,
    request: Mapping[str, Any] | None = None,
) -> TrainResult:
    """Trains an extractor and writes it as a bundle; goes on where an interrupted run
    of the same flags stopped.

    Args:
      records: folder that `precis prepare --oracle_sentences` wrote.
      output: folder for the bundle, with vectors, checkpoints and losses in `training/`
          below it.
      training: how to train.
      request: the command and its flags, for the manifest.

    Raises:
      UsageError: settings that cannot be, records without oracle labels, or checkpoints
          of another training.
      DataError: damaged records, none with sentences, or a loss that is not finite.
    """
    return run_training(
        prepare_extractor(records, output, training=training, request=request or {})
    )


def prepare_extractor(
    records: str,
    output: str,
    *,
    training: ExtractiveTraining,
    request: Mapping[str, Any],
) -> Training:
    """The training at step 0; arguments and errors are those of `train_extractor`."""
    reader = open_articles(records, output, training)
    train = reader.read("train")
    validation = reader.read("validation", most=VALIDATION_ARTICLES, keep_text=True)
    if not train or not validation:
        raise DataError(
            f"{records}: no article of a split has a sentence to learn from; "
            "prepare another corpus"
        )
    encoder, config = reader.encoder, reader.config
    network = build_network(config, seed=training.seed)
    features = np.concatenate([article.features for article in train])
    network.feature_mean.assign(features.mean(axis=0))
    network.feature_scale.assign(1.0 / np.maximum(features.std(axis=0), 1e-3))
    steps_per_epoch = -(-len(train) // training.batch_documents)
    steps = training.epochs * steps_per_epoch
    optimizer = _make_optimizer(training.learning_rate, steps)
    optimizer.build(network.trainable_variables)
    scorer = SentenceScorer(network, None)
    # The model id of the encoder counts in place of its folder.
    settings = dataclasses.asdict(training)
    del settings["encoder"]
    return Training(
        output=output,
        settings={
            "records": reader.info.fingerprint,
            "encoder": encoder.model_id if encoder else "",
            **dataclasses.asdict(config),
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
        batches=lambda epoch, skip: itertools.islice(
            article_batches(
                train,
                batch_documents=training.batch_documents,
                seed=training.seed,
                epoch=epoch,
            ),
            skip,
            None,
        ),
        make_step=lambda _: make_extractor_step(network, optimizer),
        validate=lambda: validate_extractor(scorer, validation),
        score=lambda figures: -figures["loss"],
        save=functools.partial(_save, output, reader, network, training),
        provenance={
            **request,
            "records_fingerprint": reader.info.fingerprint,
            "data": [reader.info.facts()],
            "encoder": encoder.model_id if encoder else None,
            "training": settings,
        },
        way_out="lower --learning_rate",
        workers=Workers(),
    )


def _save(
    output: str,
    reader: "ArticleReader",
    network: Extractor,
    training: ExtractiveTraining,
    provenance: dict[str, Any],
) -> str:
    """Learns the importance of words, writes the bundle and returns its model_id."""
    importance = None
    if training.importance_articles:
        importance = learn_importance(
            reader, network, training.importance_articles, seed=training.seed
        )
    return save_scorer(
        output,
        extractor=network,
        encoder=reader.encoder,
        precision=training.vector_precision,
        provenance=provenance,
        importance=importance,
    )


def _make_optimizer(learning_rate: float, steps: int) -> keras.optimizers.Optimizer:
    """AdamW (Loshchilov and Hutter 2019) with a linear warm-up and a cosine decay to
    zero over `steps` steps.
    """
    warmup = max(1, int(_WARMUP_SHARE * steps))
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0,
        max(1, steps - warmup),
        warmup_target=learning_rate,
        warmup_steps=warmup,
    )
    return keras.optimizers.AdamW(schedule, weight_decay=_WEIGHT_DECAY)


def article_batches(
    articles: Sequence[TrainingArticle], *, batch_documents: int, seed: int, epoch: int
) -> Iterator[tuple[tf.Tensor, ...]]:
    """One epoch in batches of articles of similar length, in an order that depends on
    the seed and the epoch alone.

    Yields:
      The arguments of a step: vectors float32 [B, N, D], features float32 [B, N, F],
      places int32 [B, N] with -1 at padding, labels float32 [B, N].
    """
    generator = np.random.default_rng([seed, epoch])
    jitter = generator.uniform(0, _LENGTH_JITTER, len(articles))
    lengths = np.array([len(article.labels) for article in articles])
    order = np.argsort(lengths + jitter, kind="stable")
    for number in generator.permutation(-(-len(articles) // batch_documents)):
        start = number * batch_documents
        batch = [articles[place] for place in order[start : start + batch_documents]]
        inputs = pad_inputs(
            [article.vectors for article in batch],
            [article.features for article in batch],
            [0] * len(batch),
        )
        labels = np.zeros(inputs.places.shape, np.float32)
        for row, article in enumerate(batch):
            labels[row, : len(article.labels)] = article.labels
        yield tuple(map(tf.constant, (*inputs, labels)))


def make_extractor_step(
    network: Extractor, optimizer: keras.optimizers.Optimizer
) -> Step:
    """A compiled function that makes one step on a batch of `article_batches`.

    It returns `loss`, the mean loss of a sentence, float32 scalar. It is traced for
    batches of any shape: traced for the shape of its first batch, a resumed training
    would differ from an uninterrupted one in the last bits.
    """
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
        gradients = tape.gradient(
            loss, [weight.value for weight in network.trainable_variables]
        )
        gradients, _ = tf.clip_by_global_norm(
            [tf.convert_to_tensor(gradient) for gradient in gradients], _CLIP_NORM
        )
        optimizer.apply_gradients(
            zip(gradients, network.trainable_variables, strict=True)
        )
        return {"loss": loss}

    return train_step


def validate_extractor(
    scorer: SentenceScorer, articles: Sequence[TrainingArticle]
) -> dict[str, float]:
    """Scores the extractor: the mean loss of a sentence, by which the best epoch is
    chosen, and the mean ROUGE F1 of summaries of three sentences.
    """
    scores = _score(scorer, articles)
    rows = []
    for article, article_scores in zip(articles, scores, strict=True):
        places = select(article.sentences, article_scores, selection=SelectionConfig())
        summary = "\n".join(article.sentences[place] for place in sorted(places))
        figures = Reference(article.highlights).score(summary)
        rows.append([figures[name].fmeasure for name in ("rouge1", "rouge2")])
    rouge1, rouge2 = np.mean(rows, axis=0).tolist()
    labels = np.concatenate([article.labels for article in articles])
    positive = np.concatenate(scores)
    right = np.clip(np.where(labels > 0, positive, 1.0 - positive), 1e-12, 1.0)
    loss = float(-np.log(right).mean())
    return {"loss": loss, "rouge1": rouge1, "rouge2": rouge2}


def _score(
    scorer: SentenceScorer, articles: Sequence[TrainingArticle]
) -> list[np.ndarray]:
    """The scores of the sentences of each article, [N] each."""
    return scorer.score_inputs(
        [article.vectors.astype(np.float32) for article in articles],
        [article.features for article in articles],
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ArticleReader:
    """Reads the articles that an extractor is trained on.

    Attributes:
      records: the folder of the records.
      info: their description.
      config: the shape of the extractor.
      encoder: reads the sentences; None where features alone are read.
      vector_folder: of the files of vectors.
      vector_fingerprint: of all that the vectors depend on.
      terms: of the words that were read.
    """

    records: str
    info: DatasetInfo
    config: ExtractorConfig
    encoder: EncoderBundle | None
    vector_folder: str
    vector_fingerprint: str
    terms: TermCache = dataclasses.field(default_factory=TermCache)

    @functools.cached_property
    def sentence_encoder(self) -> SentenceEncoder:
        """The encoder in batches."""
        assert self.encoder is not None
        return SentenceEncoder(self.encoder.encoder, self.encoder.tokenizer)

    def read(
        self,
        split: str,
        *,
        most: int | None = None,
        keep_text: bool = False,
        is_sample: bool = False,
    ) -> list[TrainingArticle]:
        """The articles of a split that have sentences, with vectors of this run or an
        earlier one.

        Args:
          split: of the records.
          most: articles, at most; all by default.
          keep_text: whether articles keep their sentences and highlights.
          is_sample: whether they are evenly from the whole split, not its first.

        Raises:
          UsageError: there is no such split.
          DataError: a damaged shard.
        """
        records = self.info.records(split)
        total = records if most is None else min(records, most)
        stride = -(-records // most) if most and is_sample else 1
        name = "read importance" if is_sample else f"read {split}"
        with (
            tempfile.TemporaryDirectory(prefix="precis-records-") as staging,
            stage(name, total=total) as reading,
        ):
            shards = check_shards(self.records, self.info, split, staging=staging)
            articles = (
                article
                for path in shards
                for article in self._read_shard(path, keep_text, stride)
            )
            wanted = itertools.islice(articles, None if is_sample else most)
            return [reading.counted(article) for article in wanted]

    def _read_shard(
        self, path: str, keep_text: bool, stride: int
    ) -> Iterator[TrainingArticle]:
        records = list(read_labelled(path))
        most = self.config.max_sentences
        documents = [record.sentences[:most] for record in records]
        vectors = self._vectors(path, documents)
        rows = list(zip(records, documents, vectors, strict=True))[::stride]
        features = features_of_all(
            [record.sentences for record, _, _ in rows], self.terms
        )
        for (record, texts, own), own_features in zip(rows, features, strict=True):
            if not record.sentences:
                continue
            labels = np.zeros(len(record.sentences), np.float32)
            labels[list(record.oracle)] = 1.0
            article = TrainingArticle(own, own_features[:most], labels[:most])
            if keep_text:
                article = article._replace(
                    sentences=texts, highlights=record.highlights
                )
            yield article

    def _vectors(
        self, shard: str, documents: Sequence[Sequence[str]]
    ) -> list[np.ndarray]:
        """The vectors of a shard's sentences, float16 [N, D] for each document, from
        the file of an earlier run, or computed and written to it.
        """
        if self.encoder is None:
            return [np.zeros((len(texts), 0), np.float16) for texts in documents]
        name = f"{shard.rsplit('/', 1)[-1]}-{self.vector_fingerprint[:16]}.npy"
        path = files.join(self.vector_folder, name)
        if not files.exists(path):
            encoder = self.sentence_encoder
            parts = [np.zeros((0, encoder.width), np.float16)]
            with stage("encode", total=len(documents)) as encoding:
                for start in range(0, len(documents), _ENCODED_TOGETHER):
                    batch = documents[start : start + _ENCODED_TOGETHER]
                    parts += [
                        each.astype(np.float16) for each in encoder.vectors(batch)
                    ]
                    encoding.advance(len(batch))
            content = io.BytesIO()
            np.save(content, np.concatenate(parts), allow_pickle=False)
            files.write_bytes(path, content.getvalue())
        vectors = np.load(io.BytesIO(files.read_bytes(path)), allow_pickle=False)
        ends = np.cumsum([len(document) for document in documents])
        return np.split(vectors, ends[:-1])


def open_articles(
    records: str, output: str, training: ExtractiveTraining
) -> ArticleReader:
    """Checks the records and loads the encoder.

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
    fingerprint = files.sha256_json(
        {
            "records": info.fingerprint,
            "encoder": encoder.model_id if encoder else "",
            "precision": training.vector_precision,
            "sentences": training.window_sentences,
        }
    )
    return ArticleReader(
        records=records,
        info=info,
        config=ExtractorConfig(
            vector_width=encoder.encoder.config.width if encoder else 0,
            dropout=training.dropout,
            max_sentences=training.window_sentences,
        ),
        encoder=encoder,
        vector_folder=files.join(output, TRAINING_FOLDER, "vectors"),
        vector_fingerprint=fingerprint,
    )


def learn_importance(
    reader: ArticleReader, network: Extractor, most: int, *, seed: int
) -> ImportanceModel | None:
    """Learns the importance of words and pairs, with the scores of the trained network
    as features.

    A part of the training articles is enough, drawn evenly from the records. It takes a
    minute or two, so an interrupted training learns it again.

    Returns:
      None where there is nothing to learn from.
    """
    sample = reader.read("train", most=most, keep_text=True, is_sample=True)
    scorer = SentenceScorer(network, None)
    scored = []
    for start in range(0, len(sample), _SCORED_TOGETHER):
        articles = sample[start : start + _SCORED_TOGETHER]
        for article, scores in zip(articles, _score(scorer, articles), strict=True):
            sentences = [tokenize(sentence) for sentence in article.sentences]
            lines = article.highlights.split("\n")
            words = [word for line in lines for word in tokenize(line)]
            if words and any(sentences):
                pairs = frozenset(itertools.pairwise(words))
                scored.append(
                    ScoredArticle(
                        sentences, scores, frozenset(words), pairs, len(words)
                    )
                )
    return train_importance(scored, seed=seed)
