"""Sentence vectors that see the document around the sentence: an encoder reads windows
of sentences, a vector is a mean over tokens.

A window holds whole sentences, as many as the encoder can read. The next one begins
some sentences back, so that its first new sentence sees what went before; a sentence's
vector comes from the first window that holds it. So every sentence of a long document
has one.

    sentences      0  1  2  3  4  5  6
    first window   ^^^^^^^^^^
    second window           ~~^^^^^^^     ~ read again, not taken
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from precis.model.tokenization.imported import ImportedTokenizer
from precis.model.tokenization.wordpiece import Tokenizer

if TYPE_CHECKING:
    from precis.model.network.encoder import Encoder

# padded tokens of one call: more takes memory and gains no speed on a processor
_BATCH_TOKENS = 8_192
_LENGTH_STEP = 32  # windows are padded to multiples of it


class Window(NamedTuple):
    """Sentences `first` to `last` (not included) are read together; the vectors of
    those from `new` on are taken.
    """

    first: int
    new: int
    last: int


def cut_windows(lengths: Sequence[int], *, limit: int, overlap: int) -> list[Window]:
    """Cuts a document into windows.

    Args:
      lengths: tokens of each sentence, each at most `limit`.
      limit: tokens of a window, at most.
      overlap: tokens of the sentences before a window's first new one that it reads
          again, at most.
    """
    windows = []
    new = 0
    while new < len(lengths):
        first, again = new, 0
        while first and again + lengths[first - 1] <= min(
            overlap, limit - lengths[new]
        ):
            first -= 1
            again += lengths[first]
        last, total = new + 1, again + lengths[new]
        while last < len(lengths) and total + lengths[last] <= limit:
            total += lengths[last]
            last += 1
        windows.append(Window(first, new, last))
        new = last
    return windows


class SentenceEncoder:
    """Turns the sentences of documents into vectors."""

    def __init__(
        self,
        encoder: "Encoder",
        tokenizer: Tokenizer | ImportedTokenizer,
        *,
        overlap_tokens: int = 64,
    ) -> None:
        import tensorflow as tf

        self.width = encoder.config.width
        self._encoder, self._tokenizer = encoder, tokenizer
        self._before, self._behind = tokenizer.around
        self._limit = (
            encoder.config.max_source_tokens - len(self._before) - len(self._behind)
        )
        self._overlap = min(overlap_tokens, self._limit // 2)
        signature = [
            tf.TensorSpec([None, None], tf.int32),
            tf.TensorSpec([None, None], tf.int32),
            tf.TensorSpec([], tf.int32),
        ]
        self._pool = tf.function(
            self._pool_batch, input_signature=signature, autograph=False
        )

    def vectors(self, documents: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """A vector for every sentence of every document.

        A sentence without tokens has the zero vector; of one that is longer than the
        encoder reads, the beginning counts.

        Returns:
          float32 [N, D] a document.
        """
        encoded = iter(
            self._tokenizer.encode_bare(
                [sentence for document in documents for sentence in document]
            )
        )
        ids = [
            [next(encoded)[: self._limit] for _ in document] for document in documents
        ]
        found = [
            np.zeros((len(document), self.width), np.float32) for document in documents
        ]
        windows = [
            (number, window)
            for number, own in enumerate(ids)
            for window in cut_windows(
                [len(one) for one in own], limit=self._limit, overlap=self._overlap
            )
        ]
        rows = [self._row(ids[number], window) for number, window in windows]
        for batch in _batches([len(tokens) for tokens, _ in rows]):
            most = max(
                windows[place][1].last - windows[place][1].first for place in batch
            )
            pooled = self._pool_rows([rows[place] for place in batch], most)
            for place, vectors in zip(batch, pooled, strict=True):
                number, (first, new, last) = windows[place]
                found[number][new:last] = vectors[new - first : last - first]
        return found

    def _row(
        self, ids: Sequence[np.ndarray], window: Window
    ) -> tuple[np.ndarray, np.ndarray]:
        """The tokens of a window and for each the sentence it belongs to, counted from
        1; two int32 [S].

        tokens     [CLS] a b c . d e . [SEP]
        sentence     0   1 1 1 1 2 2 2   0
        """
        own = ids[window.first : window.last]
        tokens = np.concatenate([self._before, *own, self._behind]).astype(np.int32)
        numbers = np.repeat(np.arange(1, len(own) + 1), [len(one) for one in own])
        return tokens, np.concatenate(
            [np.zeros(len(self._before)), numbers, np.zeros(len(self._behind))]
        ).astype(np.int32)

    def _pool_rows(
        self, rows: Sequence[tuple[np.ndarray, np.ndarray]], most: int
    ) -> np.ndarray:
        """The mean vectors of the sentences of some windows, of which none has more
        than `most`; float32 [B, N, D].
        """
        longest = (
            -(-max(len(tokens) for tokens, _ in rows) // _LENGTH_STEP) * _LENGTH_STEP
        )
        longest = min(longest, self._limit + len(self._before) + len(self._behind))
        tokens = np.full((len(rows), longest), self._encoder.config.pad_id, np.int32)
        numbers = np.zeros((len(rows), longest), np.int32)
        for row, (own, sentence) in enumerate(rows):
            tokens[row, : len(own)], numbers[row, : len(own)] = own, sentence
        return self._pool(tokens, numbers, np.int32(most)).numpy()

    def _pool_batch(
        self, tokens: "np.ndarray", numbers: "np.ndarray", count: int
    ) -> "np.ndarray":
        """int32 [B, S], int32 [B, S], how many sentences -> float32 [B, N, D]."""
        from keras import ops

        states = ops.cast(self._encoder(tokens), "float32")
        member = ops.cast(
            numbers[:, None, :]
            == ops.arange(1, count + 1, dtype="int32")[None, :, None],
            "float32",
        )  # [B, N, S]
        return ops.matmul(member, states) / ops.maximum(
            ops.sum(member, axis=-1, keepdims=True), 1.0
        )


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """The positions of rows in batches of similar length."""
    batches: list[list[int]] = []
    padded = 0
    for place in sorted(
        range(len(lengths)), key=lambda place: (-lengths[place], place)
    ):
        if not batches or (len(batches[-1]) + 1) * padded > _BATCH_TOKENS:
            batches.append([])
            padded = -(-lengths[place] // _LENGTH_STEP) * _LENGTH_STEP
        batches[-1].append(place)
    return batches
