"""Attention weights of a network while it writes a summary, with the tokens that the
weights belong to.
"""

from typing import NamedTuple

import numpy as np

from precis.model.bundle.network_bundle import Bundle
from precis.model.errors import UsageError
from precis.model.network.generator import AttentionMap
from precis.model.search.special import special_tokens
from precis.model.tokenization.source import encode_sources, encode_targets


class HeadWeights(NamedTuple):
    """The weights of one attention, with a row for each token that reads.

    Attributes:
      block: encoder, self, cross or copy.
      layer: its number, from 1.
      weights: float32 [H, T, S]; each row sums to one.
      rows: the T tokens that read.
      columns: the S tokens that are read.
      summary: the text that is written; `…` ends a text longer than the network writes.
      source_tokens: of the whole article; the network may have read fewer.
      read_tokens: of these, those that the network read.
      mean_of: how many heads the weights are the mean of; 0 where they are those of
        the heads themselves.
    """

    block: str
    layer: int
    weights: np.ndarray
    rows: list[str]
    columns: list[str]
    summary: str = ""
    source_tokens: int = 0
    read_tokens: int = 0
    mean_of: int = 0


def mean_of_heads(attention: HeadWeights) -> HeadWeights:
    """The mean of all heads as one."""
    weights = attention.weights
    mean = weights.mean(axis=0, keepdims=True)
    return attention._replace(weights=mean, mean_of=len(weights))


def read_attention(
    bundle: Bundle, text: str, summary: str, *, block: str, layer: int
) -> HeadWeights:
    """Reads the weights of one attention while a document's summary is written.

    The network reads the tokens of the summary up to the one before; a row of the
    weights belongs to the token that is written next:

        input      [START]  ▁Rain  ▁fell
        written    ▁Rain    ▁fell  [END]

    Args:
      bundle: the network and its tokenizers.
      text: the normalised article, behind the task prefix if there is one.
      summary: the summary, normalised.
      block: encoder, where the source reads itself; self, where the summary reads
        itself; cross, where the summary reads the source; copy, the distribution that
        the pointer copies from. A decoder-only network reads the source and the summary
        as one sequence, in `self`.
      layer: from 1 at the bottom; 0 is the last.

    Raises:
      UsageError: the network has no such block or layer.
    """
    (source,) = encode_sources(
        bundle.source_tokenizer,
        [text],
        max_source_tokens=bundle.network.config.max_source_tokens,
    )
    special = special_tokens(bundle.tokenizer, bundle.special)
    (ids,) = encode_targets(bundle.tokenizer, [summary])
    written = [*ids.tolist(), special.end_id]
    limit = bundle.network.config.max_target_tokens + 1
    cut_mark = " …" if len(written) > limit else ""
    written = written[:limit]
    (text_written,) = bundle.tokenizer.decode(
        [[token for token in written if token != special.end_id]]
    )
    inputs = [special.start_id, *written[:-1]]
    maps = bundle.network.attention(
        np.asarray([source.ids], "int32"), np.asarray([inputs], "int32")
    )
    chosen = _choose_map(maps, block=block, layer=layer)
    read = list(map(bundle.source_tokenizer.piece, source.ids.tolist()))
    target = list(map(bundle.tokenizer.piece, inputs))
    columns = {"source": read, "target": target, "both": read + target}
    return HeadWeights(
        block,
        chosen.layer + 1,
        np.asarray(chosen.weights[0], "float32"),
        read if chosen.rows == "source" else list(map(bundle.tokenizer.piece, written)),
        columns[chosen.columns],
        text_written + cut_mark,
        source_tokens=source.source_tokens,
        read_tokens=len(source.ids),
    )


def _choose_map(maps: list[AttentionMap], *, block: str, layer: int) -> AttentionMap:
    """The map of a block's layer, from 1; 0 is the last."""
    block_maps = [weights for weights in maps if weights.block == block]
    if not block_maps:
        known = ", ".join(dict.fromkeys(weights.block for weights in maps))
        reads_both = any(weights.columns == "both" for weights in maps)
        way_out = "; self reads the source and the summary as one" if reads_both else ""
        raise UsageError(
            f"--block {block}: this network has none; it has {known}{way_out}"
        )
    if not 0 <= layer <= len(block_maps):
        raise UsageError(
            f"--layer {layer}: the block {block} has the layers 1 to {len(block_maps)}"
        )
    return block_maps[layer - 1]
