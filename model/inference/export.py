"""A bundle as one TensorFlow graph: articles in, summaries out, with the cleaning of
text, the tokenizer and the search inside.

    articles    string [B]      "(CNN) -- Rain fell."
    bodies      string [B]      "Rain fell."
    sources     int32 [B, S]    cut at the network's source length, padded
    tokens      int32 [B, N, T] ranked hypotheses
    summaries   string [B, N]   distinct, best first; where there are fewer than N, the
                                rest is "" with the score -inf

The graph cuts sources by itself, because `encode_sources` does not run in TensorFlow.
It can do so by slicing: tokenizers that run in a graph set no special tokens around a
text.
"""

import tensorflow as tf

from precis.model.bundle.network_bundle import Bundle
from precis.model.errors import UsageError
from precis.model.inference.summarizer import make_searcher
from precis.model.inference.text_operations import (
    body_tensor,
    normalise_tensor,
    valid_utf8,
)
from precis.model.network.config import SOURCE_PADDING
from precis.model.search.config import SearchConfig
from precis.model.tokenization.folder import AnyTokenizer
from precis.model.tokenization.wordpiece import Tokenizer

SIGNATURE = "serving_default"


class SummarizingModule(tf.Module):
    """The saved module: a network's weights and the function that summarizes with them.

    Attributes:
      summarize: articles string [B] -> {"summaries": string [B, N], "scores": float32
        [B, N]}, the same as `Summarizer` writes.
      weights: the network's variables, kept here so that TensorFlow saves them.
    """

    def __init__(
        self,
        bundle: Bundle,
        config: SearchConfig,
        *,
        clean: str = "standard",
        strip_boilerplate: bool = True,
        task_prefix: str = "",
    ) -> None:
        """Takes a bundle that this project trained.

        Args:
          bundle: the bundle.
          config: the search settings.
          clean, strip_boilerplate: as in `Article`.
          task_prefix: the text before each article.

        Raises:
          UsageError: an imported bundle, whose tokenizer no graph can hold.
        """
        super().__init__()
        self._tokenizer = tokenizer_with_graph(bundle.tokenizer)
        self._source_tokenizer = tokenizer_with_graph(bundle.source_tokenizer)
        self._task_prefix = task_prefix
        self._is_raw = clean == "none"
        self._strip_boilerplate = strip_boilerplate
        self._searcher = make_searcher(
            bundle.network,
            self._tokenizer,
            config,
            bundle.special,
            self._source_tokenizer,
        )
        self.weights = [weight.value for weight in bundle.network.weights]
        articles = tf.TensorSpec([None], tf.string, name="articles")
        self.summarize = tf.function(
            self._summarize, input_signature=[articles], autograph=False
        )

    def _summarize(self, articles: tf.Tensor) -> dict[str, tf.Tensor]:
        """The graph of `summarize`."""
        if self._is_raw:
            texts = valid_utf8(articles)
            bodies = normalise_tensor(texts)
            # The tokenizer normalises the whole of it, as `encode` does.
            sources = normalise_tensor(tf.strings.join([self._task_prefix, texts]))
        else:
            bodies = body_tensor(articles, strip_boilerplate=self._strip_boilerplate)
            sources = tf.strings.join([self._task_prefix, bodies])
        tokens = self._source_tokenizer.encode_tensor(sources)
        cut = tokens[:, : self._searcher.max_source_tokens]
        sources = cut.to_tensor(SOURCE_PADDING)  # [B, S]
        summary_tokens, scores, exists, *_ = self._searcher.search_batch(sources)
        texts = self._tokenizer.decode_tensor(summary_tokens)  # [B, N]
        texts = tf.reshape(
            normalise_tensor(tf.reshape(texts, [-1])), tf.shape(scores)
        )  # [B, N]
        # An article without text has no summary.
        exists = tf.logical_and(exists, (bodies != "")[:, None])
        summaries, scores = keep_distinct(texts, scores, exists)
        return {"summaries": summaries, "scores": scores}


def keep_distinct(
    texts: tf.Tensor, scores: tf.Tensor, exists: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Keeps each text of a document once.

    The texts that equal no better one move to the front, in their order:

        texts     "a"   "b"   "a"   "c"       "a"   "b"   "c"   ""
        scores    -1    -2    -3    -4    ->  -1    -2    -4    -inf

    Args:
      texts: string [B, N], best first.
      scores: float32 [B, N].
      exists: bool [B, N], False where there is no hypothesis.

    Returns:
      texts, string [B, N], and scores, float32 [B, N]; "" and -inf in the places that
      are left.
    """
    ranks = tf.range(tf.shape(texts)[1])
    is_better = ranks < ranks[:, None]  # [N, N], the second hypothesis than the first
    is_same = texts[:, :, None] == texts[:, None]  # [B, N, N]
    is_same = tf.logical_and(is_same, exists[:, None])
    has_better = tf.reduce_any(tf.logical_and(is_same, is_better), axis=2)
    is_kept = tf.logical_and(exists, tf.logical_not(has_better))  # [B, N]
    order = tf.argsort(
        tf.cast(is_kept, "int32"), axis=1, direction="DESCENDING", stable=True
    )
    texts, scores, is_kept = (
        tf.gather(part, order, axis=1, batch_dims=1)
        for part in (texts, scores, is_kept)
    )
    return tf.where(is_kept, texts, ""), tf.where(is_kept, scores, float("-inf"))


def tokenizer_with_graph(tokenizer: AnyTokenizer) -> Tokenizer:
    """The tokenizer of a bundle, if it can run in a graph.

    Raises:
      UsageError: it is the tokenizer of an imported network.
    """
    if isinstance(tokenizer, Tokenizer):
        return tokenizer
    raise UsageError(
        "an imported network cannot be exported: its tokenizer runs in the tokenizers "
        "library, which no TensorFlow graph can hold; use the bundle itself with "
        "`precis summarize`, or export a network of `precis train`"
    )


def save_graph(module: SummarizingModule, folder: str) -> None:
    """Writes the SavedModel into a local folder."""
    tf.saved_model.save(module, folder, signatures={SIGNATURE: module.summarize})
