"""A SavedModel that reads texts and writes summaries, without Python.

    signature          input                                output
    serving_default    article, string [B]                  summary, string [B]
                                                            score, float32 [B]
    serving_examples   examples, string [B], each a         the same
                       tf.train.Example with `article`

With N candidates there are also `summaries`, string [B, N], and `scores`, float32
[B, N], best first. Where a document has fewer, the texts are empty and the scores
-inf; an article without text has none.

A text is the one that `summarizer.distinct_summaries` gives for the beginning of the
article as it was read.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from precis.model.inference.batches import LENGTH_STEP
from precis.model.inference.searcher import TensorFlowSearcher
from precis.model.network.config import SOURCE_PADDING
from precis.model.tokenization.folder import AnyTokenizer
from precis.model.tokenization.tensors import TensorTokenizer, normalise
from precis.model.tokenization.unigram import UnigramTensors
from precis.model.tokenization.wordpiece import Tokenizer

ARTICLE = "article"


def save_model(
    folder: str,
    searcher: TensorFlowSearcher,
    *,
    source_tokenizer: AnyTokenizer,
    tokenizer: AnyTokenizer,
    task_prefix: str = "",
) -> None:
    """Writes a SavedModel.

    Args:
      folder: an empty local folder.
      searcher: the network with its search settings.
      source_tokenizer: the tokenizer of articles.
      tokenizer: the tokenizer of summaries.
      task_prefix: the text before each article.
    """
    reader, writer = (
        TensorTokenizer(each) if isinstance(each, Tokenizer) else UnigramTensors(each)
        for each in (source_tokenizer, tokenizer)
    )
    module: Any = tf.Module()
    # What a SavedModel stores must be an attribute.
    module.weights = [weight.value for weight in searcher.network.weights]
    module.resources = [*reader.resources, *writer.resources]

    def summarize(article: Any) -> dict[str, Any]:
        has_text = normalise(article) != ""
        ids = reader.encode(task_prefix + article)
        sources = _padded(ids, searcher, *source_tokenizer.surrounding_ids)
        tokens, scores, exists, *_ = searcher.search_batch(sources)
        # If a score is not finite, the document has no summary.
        is_sound = tf.reduce_all(scores < float("inf"), axis=1) & has_text
        return _ranked(
            normalise(writer.decode(tokens)), scores, exists & is_sound[:, None]
        )

    def summarize_examples(examples: Any) -> dict[str, Any]:
        features = {ARTICLE: tf.io.FixedLenFeature([], tf.string)}
        return summarize(tf.io.parse_example(examples, features)[ARTICLE])

    def signature(function: Any, name: str) -> Any:
        texts = tf.TensorSpec([None], tf.string, name=name)
        return tf.function(function, input_signature=[texts], autograph=False)

    signatures = {
        "serving_default": signature(summarize, ARTICLE),
        "serving_examples": signature(summarize_examples, "examples"),
    }
    tf.saved_model.save(module, folder, signatures)


def _padded(
    ids: Any, searcher: TensorFlowSearcher, before: Sequence[int], after: Sequence[int]
) -> Any:
    """Ids, ragged [B, S], between special tokens, cut and padded as by
    `batches.pad_sources`.
    """
    room = searcher.max_source_tokens - len(after)
    before, after = (
        tf.repeat(tf.constant([row], tf.int32), ids.nrows(), 0)
        for row in (before, after)
    )
    ids = tf.concat([tf.concat([before, ids], 1)[:, :room], after], 1)
    longest = tf.cast(tf.reduce_max(ids.row_lengths()), tf.int32)
    length = -(-longest // LENGTH_STEP) * LENGTH_STEP
    length = tf.minimum(length, searcher.max_source_tokens)
    return ids.to_tensor(SOURCE_PADDING, shape=tf.stack([ids.nrows(tf.int32), length]))


def _ranked(texts: Any, scores: Any, exists: Any) -> dict[str, Any]:
    """The outputs of a signature, from candidates [B, N] that may be empty or equal.

    An empty text is kept only if there is no other.
    """
    n_best = texts.shape[1]
    is_earlier = tf.range(n_best)[:, None] > tf.range(n_best)
    is_equal = (texts[:, :, None] == texts[:, None, :]) & exists[:, None, :]
    is_new = exists & ~tf.reduce_any(is_equal & is_earlier, axis=2)
    is_kept = is_new & (texts != "")
    any_kept = tf.reduce_any(is_kept, axis=1, keepdims=True)
    is_kept = tf.where(any_kept, is_kept, is_new)
    order = tf.argsort(tf.cast(tf.logical_not(is_kept), tf.int32), stable=True)
    texts = tf.gather(tf.where(is_kept, texts, ""), order, batch_dims=1)
    scores = tf.where(is_kept, scores, -float("inf"))
    scores = tf.gather(scores, order, batch_dims=1)
    outputs = {"summary": texts[:, 0], "score": scores[:, 0]}
    return outputs | ({"summaries": texts, "scores": scores} if n_best > 1 else {})
