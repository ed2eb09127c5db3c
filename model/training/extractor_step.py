"""The batches, the compiled step and the optimizer of an extractor's training."""

from collections.abc import Callable, Iterator, Sequence

import keras
import numpy as np
import tensorflow as tf

from precis.model.extractive.features import FEATURE_COUNT
from precis.model.inference.sentence_scorer import pad_inputs
from precis.model.network.extractor import Extractor
from precis.model.training.config import ExtractiveTraining
from precis.model.training.extractor_articles import TrainingArticle

_WARMUP_SHARE = 0.1  # of all steps
_WEIGHT_DECAY = 0.01
_CLIP_NORM = 1.0
_LENGTH_JITTER = 8  # sentences


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
    lengths = [
        len(article.labels) + noise
        for article, noise in zip(articles, jitter, strict=True)
    ]
    order = np.argsort(lengths, kind="stable")
    for number in generator.permutation(steps_per_epoch(articles, batch_documents)):
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


def steps_per_epoch(articles: Sequence[TrainingArticle], batch_documents: int) -> int:
    """The number of batches of an epoch; the last may be smaller."""
    return -(-len(articles) // batch_documents)


def make_extractor_step(
    network: Extractor, optimizer: keras.optimizers.Optimizer
) -> Callable[..., tf.Tensor]:
    """A compiled function that makes one step on a batch of `article_batches`.

    It returns the mean loss of a sentence, float32 scalar. It is traced for batches of
    any shape: traced for the shape of its first batch, a resumed training would differ
    from an uninterrupted one in the last bits.
    """

    def train_step(
        vectors: tf.Tensor, features: tf.Tensor, places: tf.Tensor, labels: tf.Tensor
    ) -> tf.Tensor:
        """Binary cross entropy over the sentences of a batch."""
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
        return loss

    signature = [
        tf.TensorSpec([None, None, network.config.vector_width], tf.float32),
        tf.TensorSpec([None, None, FEATURE_COUNT], tf.float32),
        tf.TensorSpec([None, None], tf.int32),
        tf.TensorSpec([None, None], tf.float32),
    ]
    return tf.function(train_step, input_signature=signature, autograph=False)


def make_extractor_optimizer(
    training: ExtractiveTraining, *, steps: int
) -> keras.optimizers.Optimizer:
    """AdamW (Loshchilov and Hutter 2019) with a linear warm-up and a cosine decay to
    zero over `steps` steps.
    """
    peak = training.learning_rate
    warmup = max(1, int(_WARMUP_SHARE * steps))
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, max(1, steps - warmup), warmup_target=peak, warmup_steps=warmup
    )
    return keras.optimizers.AdamW(schedule, weight_decay=_WEIGHT_DECAY)
