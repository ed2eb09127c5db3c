"""Limits a search to few pieces: the setting `common_pieces`.

Most words of a summary are common words or words of its source. So a batch needs only
the first pieces of a vocabulary and the pieces of its sources, the shortlist. Output
layer, softmax and the choice of candidates then cost a fraction. Within the search, a
token is its place in the shortlist, which keeps the order of the vocabulary; the first
pieces, with the special tokens, keep their ids. A document cannot use pieces of other
documents in its batch, so its summary does not depend on the batch.

    vocabulary    0 1 2 3 | 4 5 6 7 8 9        4 common pieces
    sources       7 2 9
                  5 7
    shortlist     0 1 2 3   5 7 9
    numbers       0 1 2 3   4 5 6              the first source reads 5 2 6
    document 1    x x x x     x x
    document 2    x x x x   x x
"""

from typing import Any, NamedTuple

import tensorflow as tf

from precis.model.backend import ops
from precis.model.cache import Cache
from precis.model.errors import UsageError
from precis.model.network.generator import ALLOWED, Generator, Memory
from precis.model.network.layers import MASKED, LinearWeights
from precis.model.search.config import SpecialTokens
from precis.model.search.copy_constraint import PieceTable
from precis.model.search.hypotheses import Hypotheses
from precis.model.tokenization.folder import AnyTokenizer
from precis.model.tokenization.wordpiece import JOINER, SPACE

# Few different sizes, as oneDNN prepares a matrix product for each new shape.
_SIZE_STEP = 256


class Shortlist(NamedTuple):
    """The N pieces that a batch of B sources needs, of a vocabulary of V.

    Attributes:
      ids: int32 [N], ascending; padded with piece 0, which no document may write at
          these places.
      numbers: int32 [V], the place of each piece in `ids`; -1 if it is not there.
      bias: float32 [B, 1, N], MASKED at pieces that a document may not write.
    """

    ids: tf.Tensor
    numbers: tf.Tensor
    bias: tf.Tensor

    def number(self, ids: tf.Tensor) -> tf.Tensor:
        """The places of pieces in the shortlist, int32; negative ids are unchanged."""
        return tf.where(ids < 0, ids, tf.gather(self.numbers, tf.maximum(ids, 0)))

    def gather_table(self, table: PieceTable) -> PieceTable:
        """The rows of a table for the pieces of the shortlist."""
        held = PieceTable(*(tf.gather(part, self.ids) for part in table))
        return held._replace(capitalised=self.number(held.capitalised))

    def restore(self, hypotheses: Hypotheses) -> Hypotheses:
        """Hypotheses with ids of the whole vocabulary."""
        return hypotheses._replace(tokens=tf.gather(self.ids, hypotheses.tokens))


def common_end(
    tokenizer: AnyTokenizer, special: SpecialTokens, common_pieces: int
) -> int:
    """The number of pieces up to the last common piece; 0 allows the whole vocabulary.

    Args:
      tokenizer: the tokenizer; its single characters come before or among the common
        pieces.
      special: the special tokens.
      common_pieces: the number of common pieces, without single characters; 0 is all.

    Raises:
      UsageError: a special token comes after them and could not be written.
    """
    end = longer_pieces = 0
    while end < tokenizer.vocabulary_size and longer_pieces < common_pieces:
        text = tokenizer.piece(end).removeprefix(JOINER).strip(SPACE)
        is_special = text.startswith("[") and text.endswith("]")
        longer_pieces += len(text) > 1 and not is_special
        end += 1
    if end in (0, tokenizer.vocabulary_size):
        return 0
    ids = {special.start_id, *special.end_ids, special.pad_id, special.last_id or 0}
    highest = max(ids.union(special.suppressed, special.prefix))
    if highest >= end:
        raise UsageError(
            f"common_pieces {common_pieces} leaves out piece {highest}, a special "
            "token of this network; set it to 0"
        )
    return end


def make_shortlist(
    source: tf.Tensor,
    *,
    vocabulary_size: int,
    common: int,
    least: int,
    table: PieceTable | None,
) -> Shortlist:
    """Chooses the pieces of a batch.

    Args:
      source: int32 [B, S], negative at padding.
      vocabulary_size: V.
      common: the number of leading pieces that every document may write.
      least: the minimum of N, as the choice of candidates compares this many.
      table: the table of the copy constraint; if given, the shortlist also has the
          pieces of the source with a capital, which may open a sentence.
    """
    batch = tf.shape(source)[0]
    if table is not None:
        capitals = tf.gather(table.capitalised, tf.maximum(source, 0))
        capitals = tf.where(source < 0, -1, capitals)
        source = tf.concat([source, capitals], axis=1)
    # Padding counts as piece 0, which is common.
    pieces = tf.maximum(source, 0)
    rows = tf.broadcast_to(tf.range(batch)[:, None], tf.shape(pieces))
    allowed = tf.tensor_scatter_nd_update(
        tf.broadcast_to(tf.range(vocabulary_size) < common, [batch, vocabulary_size]),
        tf.reshape(tf.stack([rows, pieces], axis=-1), [-1, 2]),
        tf.fill([tf.size(pieces)], True),
    )  # [B, V]
    needed = tf.cast(tf.where(tf.reduce_any(allowed, axis=0))[:, 0], tf.int32)
    count = tf.size(needed)
    missing = tf.maximum(-count % _SIZE_STEP, least - count)
    missing += -(count + missing) % _SIZE_STEP
    ids = tf.concat([needed, tf.zeros([missing], tf.int32)], axis=0)
    numbers = tf.tensor_scatter_nd_update(
        tf.fill([vocabulary_size], -1), needed[:, None], tf.range(count)
    )
    is_held = tf.gather(allowed, ids, axis=1) & (tf.range(count + missing) < count)
    bias = tf.where(is_held, 0.0, MASKED)
    return Shortlist(ids, numbers, bias[:, None])


class ShortlistedNetwork:
    """A `Network` of a search whose tokens are places in a shortlist."""

    def __init__(self, network: Generator, shortlist: Shortlist) -> None:
        self._network = network
        self._shortlist = shortlist

    def start(self, memory: Memory, beams: int, length: int) -> Cache:
        """As in `Generator`."""
        memory = memory._replace(source=self._shortlist.number(memory.source))
        cache = self._network.start(memory, beams, length)
        whole: LinearWeights = cache.shared["output"]
        ids = self._shortlist.ids
        output = LinearWeights(
            tf.gather(whole.kernel, ids, axis=1),
            () if isinstance(whole.bias, tuple) else tf.gather(whole.bias, ids),
        )
        return cache._replace(
            per_document={**cache.per_document, ALLOWED: self._shortlist.bias},
            shared={**cache.shared, "output": output},
        )

    def step(self, tokens: Any, cache: Cache, index: Any) -> tuple[Any, Cache]:
        """As in `Generator`, with N in place of V."""
        return self._network.step(
            ops.take(self._shortlist.ids, tokens, axis=0), cache, index
        )
