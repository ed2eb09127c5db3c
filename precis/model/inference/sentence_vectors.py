"""Sentence vectors: the mean of an encoder's states over the tokens of a sentence, read
together with the document around it.

An encoder reads windows of as many whole sentences as fit its length. A window repeats
some sentences of the window before it, so that the new ones are read in context. The
vector of a sentence comes from the first window that holds it, so every sentence of a
long document has a vector.

    sentences      0  1  2  3  4  5  6
    first window   ^^^^^^^^^^
    second window           ~~^^^^^^^     ~ is read again; its vectors are not used
"""

from collections.abc import Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from precis.model.inference.batches import group_by_length
from precis.model.network.config import SOURCE_PADDING
from precis.model.tokenization.folder import AnyTokenizer

if TYPE_CHECKING:
    from precis.model.network.transformer import Encoder

# Padded tokens in one call. More tokens take more memory and are no faster on a CPU.
_BATCH_TOKENS = 8_192
# Windows are padded to a multiple of this length.
_LENGTH_STEP = 32


class SentenceWindow(NamedTuple):
    """A range of sentences that are read together.

    Attributes:
      first: the first sentence of the window.
      new: the first sentence whose vector is used.
      last: the first sentence after the window.
    """

    first: int
    new: int
    last: int


def cut_windows(
    lengths: Sequence[int], *, max_tokens: int, overlap: int
) -> list[SentenceWindow]:
    """Cuts a document into windows.

    Args:
      lengths: tokens of each sentence, each at most `max_tokens`.
      max_tokens: the maximum number of tokens in a window.
      overlap: the maximum number of tokens that a window repeats before its first new
        sentence.
    """
    windows = []
    new = 0
    while new < len(lengths):
        first = new
        repeated = 0
        most_repeated = min(overlap, max_tokens - lengths[new])
        while first and repeated + lengths[first - 1] <= most_repeated:
            first -= 1
            repeated += lengths[first]
        last = new + 1
        total = repeated + lengths[new]
        while last < len(lengths) and total + lengths[last] <= max_tokens:
            total += lengths[last]
            last += 1
        windows.append(SentenceWindow(first, new, last))
        new = last
    return windows


class SentenceEncoder:
    """Computes the vectors of the sentences of documents.

    Attributes:
      width: the size of a vector.
    """

    def __init__(
        self,
        encoder: "Encoder",
        tokenizer: AnyTokenizer,
        *,
        overlap_tokens: int = 64,
    ) -> None:
        """Prepares the encoder.

        Args:
          encoder: the network that reads the sentences.
          tokenizer: the tokenizer of the encoder.
          overlap_tokens: the maximum number of tokens that a window repeats.
        """
        import tensorflow as tf

        self.width = encoder.config.width
        self._encoder = encoder
        self._tokenizer = tokenizer
        self._before, self._behind = tokenizer.surrounding_ids
        self._special_tokens = len(self._before) + len(self._behind)
        self._max_tokens = encoder.config.max_source_tokens - self._special_tokens
        self._overlap = min(overlap_tokens, self._max_tokens // 2)
        signature = [
            tf.TensorSpec([None, None], tf.int32),
            tf.TensorSpec([None, None], tf.int32),
            tf.TensorSpec([], tf.int32),
        ]
        self._mean_states = tf.function(
            self._mean_states_graph, input_signature=signature, autograph=False
        )

    def vectors(self, documents: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """Computes a vector for every sentence of every document.

        The vector of a sentence without tokens is zero. A sentence that is too long for
        the encoder is cut off.

        Returns:
          float32 [N, D] for each document.
        """
        encoded = iter(self._tokenizer.encode_parts(list(chain(*documents))))
        ids_of_all = [
            [ids[: self._max_tokens] for ids in islice(encoded, len(document))]
            for document in documents
        ]
        vectors = [np.zeros((len(ids), self.width), np.float32) for ids in ids_of_all]
        windows = [
            (number, window, ids[window.first : window.last])
            for number, ids in enumerate(ids_of_all)
            for window in cut_windows(
                list(map(len, ids)), max_tokens=self._max_tokens, overlap=self._overlap
            )
        ]
        lengths = [self._length(ids) for _, _, ids in windows]
        for batch in group_by_length(
            lengths, lambda longest: _BATCH_TOKENS // _round_up(longest)
        ):
            means = self._read([windows[place][2] for place in batch])
            for place, window_means in zip(batch, means, strict=True):
                number, (first, new, last), _ = windows[place]
                vectors[number][new:last] = window_means[new - first : last - first]
        return vectors

    def _length(self, sentences: Sequence[np.ndarray]) -> int:
        """The tokens of a window, special ones included."""
        return sum(map(len, sentences)) + self._special_tokens

    def _read(self, windows: Sequence[Sequence[np.ndarray]]) -> np.ndarray:
        """Reads windows as one batch.

        tokens       [CLS]  a b c .  d e .  [SEP]
        sentences      0    1 1 1 1  2 2 2    0

        Args:
          windows: the token ids of the sentences of B windows.

        Returns:
          The mean states of each window's sentences, float32 [B, N, D]; N is the
          largest number of sentences in a window.
        """
        longest = _round_up(max(map(self._length, windows)))
        longest = min(longest, self._encoder.config.max_source_tokens)
        tokens = np.full((len(windows), longest), SOURCE_PADDING, np.int32)
        numbers = np.zeros_like(tokens)
        start = len(self._before)
        for row, sentences in enumerate(windows):
            ids = np.concatenate([self._before, *sentences, self._behind])
            tokens[row, : len(ids)] = ids
            numbers[row, start : len(ids) - len(self._behind)] = np.repeat(
                np.arange(1, len(sentences) + 1), list(map(len, sentences))
            )
        most = np.int32(max(map(len, windows)))
        return np.asarray(self._mean_states(tokens, numbers, most).numpy())

    def _mean_states_graph(self, tokens: Any, sentences: Any, count: Any) -> Any:
        """Means of the encoder's states over the tokens of each sentence.

        Args:
          tokens: int32 [B, S].
          sentences: int32 [B, S], the number of each token's sentence, from 1; 0 for
            special tokens and padding.
          count: N, int32.

        Returns:
          float32 [B, N, D].
        """
        from precis.model.backend import ops

        states = ops.cast(self._encoder(tokens), "float32")  # [B, S, D]
        numbers = ops.arange(1, count + 1, dtype="int32")  # [N]
        is_member = sentences[:, None, :] == numbers[None, :, None]  # [B, N, S]
        member = ops.cast(is_member, "float32")
        lengths = ops.sum(member, axis=-1, keepdims=True)  # [B, N, 1]
        return ops.matmul(member, states) / ops.maximum(lengths, 1.0)


def _round_up(length: int) -> int:
    """The next multiple of _LENGTH_STEP."""
    return -(-length // _LENGTH_STEP) * _LENGTH_STEP
