"""A bundle as one TensorFlow graph: text as it was read in, summaries out, with the
tokenizer and the search inside.

articles    string [B]      "(CNN) -- Rain fell."
bodies      string [B]      "Rain fell."
sources     int32 [B, S]    cut at what the network reads, padded
tokens      int32 [B, N, T] ranked hypotheses
summaries   string [B, N]   those that differ, best first; "" with the score -inf where there are fewer than N
"""

import tensorflow as tf

from precis.model.bundle.network_bundle import Bundle
from precis.model.errors import UsageError
from precis.model.inference.searcher import Searcher
from precis.model.inference.summarizer import special_tokens
from precis.model.inference.text_operations import body_tensor, normalise_tensor
from precis.model.search.config import SearchConfig
from precis.model.tokenization.imported import ImportedTokenizer
from precis.model.tokenization.wordpiece import Tokenizer

SIGNATURE = "serving_default"


class SummarizingModule(tf.Module):
    """What is saved: the weights of a network and `summarize`, which writes with them
    what `Summarizer` would.

    Attributes:
      summarize: articles string [B] -> {"summaries": string [B, N], "scores": float32
          [B, N]}.
    """

    def __init__(
        self,
        bundle: Bundle,
        config: SearchConfig,
        *,
        strip_boilerplate: bool = True,
        task_prefix: str = "",
    ) -> None:
        """Takes a bundle that was trained here.

        Raises:
          UsageError: an imported bundle, whose tokenizer no graph can hold.
        """
        super().__init__()
        self._tokenizer, self._source_tokenizer = map(
            tokenizer_with_graph, (bundle.tokenizer, bundle.source_tokenizer)
        )
        self._task_prefix = task_prefix
        self._searcher = Searcher(
            bundle.network,
            config=config,
            special=special_tokens(self._tokenizer, bundle.special),
        )
        self._strip_boilerplate = strip_boilerplate
        self.weights = [
            weight.value for weight in bundle.network.weights
        ]  # tracked, so that they are saved
        articles = tf.TensorSpec([None], tf.string, name="articles")
        self.summarize = tf.function(
            self._summarize, input_signature=[articles], autograph=False
        )

    def _summarize(self, articles: tf.Tensor) -> dict[str, tf.Tensor]:
        bodies = body_tensor(articles, strip_boilerplate=self._strip_boilerplate)
        tokens = self._source_tokenizer.encode_tensor(
            tf.strings.join([self._task_prefix, bodies])
        )[:, : self._searcher.max_source_tokens]
        found, scores, is_one, *_ = self._searcher.search_batch(
            tokens.to_tensor(self._searcher.special.pad_id)
        )
        texts = normalise_tensor(tf.reshape(self._tokenizer.decode_tensor(found), [-1]))
        is_one = tf.logical_and(
            is_one, (bodies != "")[:, None]
        )  # an article without text has no summary
        summaries, scores = keep_distinct(
            tf.reshape(texts, tf.shape(scores)), scores, is_one
        )
        return {"summaries": summaries, "scores": scores}


def keep_distinct(
    texts: tf.Tensor, scores: tf.Tensor, is_one: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Moves the texts of each document that equal no better one to the front, in their
    order, and blanks the rest.

    Args:
      texts: string [B, N], best first.
      scores: float32 [B, N].
      is_one: bool [B, N], False where there is no hypothesis.

    Returns:
      string [B, N], and float32 [B, N] that is -inf where a text is blank because there
      is none.
    """
    ranks = tf.range(tf.shape(texts)[1])
    is_better = ranks < ranks[:, None]  # [N, N], whether the second index is
    is_same = tf.logical_and(
        texts[:, :, None] == texts[:, None], is_one[:, None]
    )  # [B, N, N]
    is_kept = tf.logical_and(
        is_one,
        tf.logical_not(tf.reduce_any(tf.logical_and(is_same, is_better), axis=2)),
    )
    order = tf.argsort(
        tf.cast(is_kept, "int32"), axis=1, direction="DESCENDING", stable=True
    )
    texts, scores, is_kept = (
        tf.gather(part, order, axis=1, batch_dims=1)
        for part in (texts, scores, is_kept)
    )
    return tf.where(is_kept, texts, ""), tf.where(is_kept, scores, float("-inf"))


def tokenizer_with_graph(tokenizer: Tokenizer | ImportedTokenizer) -> Tokenizer:
    """The tokenizer of a bundle, if it can run in a graph.

    Raises:
      UsageError: it is an imported network's.
    """
    if isinstance(tokenizer, Tokenizer):
        return tokenizer
    raise UsageError(
        "an imported network cannot be exported: its tokenizer runs in the tokenizers library, which no TensorFlow graph can hold; "
        "use the bundle itself with `precis summarize`, or export a network of `precis train`"
    )


def save_graph(module: SummarizingModule, folder: str) -> None:
    """Writes the SavedModel into a local folder."""
    tf.saved_model.save(module, folder, signatures={SIGNATURE: module.summarize})
