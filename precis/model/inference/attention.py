"""Reads the attention weights of a network while it writes a summary, and draws them: a
heat map for each head, or for their mean. A row is a token that is written or, in the
encoder, read; columns are the tokens that are attended to.

A few weights are much larger than the rest, so the colours follow a power of the
weights.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from precis.model.bundle.network_bundle import Bundle
from precis.model.errors import UsageError
from precis.model.network.generator import AttentionMap
from precis.model.search.special import special_tokens
from precis.model.tokenization.source import encode_sources, encode_targets
from precis.model.tokenization.wordpiece import LINE_BREAK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMN_INCHES, _ROW_INCHES, _MARGIN_INCHES = 0.19, 0.2, 2.5
_POWER = 0.6


class HeadWeights(NamedTuple):
    """The weights of one attention block, with a row for each place that attends.

    Attributes:
      weights: float32 [H, T, S]; each row sums to one.
      rows: the T tokens of the rows: those written next or, in the encoder, read.
      columns: the S tokens that are attended to.
      source_tokens: the number of tokens of the whole article.
      read_tokens: the number of tokens of the article that the network has read.
    """

    weights: np.ndarray
    rows: list[str]
    columns: list[str]
    source_tokens: int = 0
    read_tokens: int = 0


def read_attention(
    bundle: Bundle, text: str, summary: str, *, block: str, layer: int
) -> HeadWeights:
    """Reads the weights of one attention block while a given summary is written.

    The network reads the summary one token behind. So a row belongs to the token that
    is written next, except in the encoder:

        input      [START]  ▁Rain  ▁fell
        written    ▁Rain    ▁fell  [END]

    Args:
      bundle: the network and its tokenizers.
      text: the normalised article, after the task prefix if there is one.
      summary: the summary, normalised.
      block: encoder, where the source attends to itself; self, where the summary
        attends to itself; cross, where the summary attends to the source; copy, the
        distribution that the pointer copies from. In a decoder-only network, `self`
        covers source and summary as one sequence.
      layer: the number of the layer, from 1 at the bottom; 0 is the last.

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
    written = written[: bundle.network.config.max_target_tokens + 1]
    inputs = [special.start_id, *written[:-1]]
    maps = bundle.network.attention(
        np.asarray([source.ids], "int32"), np.asarray([inputs], "int32")
    )
    chosen = _choose_map(maps, block=block, layer=layer)
    read = list(map(bundle.source_tokenizer.piece, source.ids.tolist()))
    target = list(map(bundle.tokenizer.piece, inputs))
    columns = {"source": read, "target": target, "both": read + target}
    return HeadWeights(
        np.asarray(chosen.weights[0], "float32"),
        read if chosen.rows == "source" else list(map(bundle.tokenizer.piece, written)),
        columns[chosen.columns],
        source_tokens=source.source_tokens,
        read_tokens=len(source.ids),
    )


def _choose_map(maps: list[AttentionMap], *, block: str, layer: int) -> AttentionMap:
    """The map of a layer of a block; layers count from 1, and 0 is the last."""
    block_maps = [weights for weights in maps if weights.block == block]
    if not block_maps:
        known = ", ".join(dict.fromkeys(weights.block for weights in maps))
        reads_both = any(weights.columns == "both" for weights in maps)
        way_out = "; self covers both source and summary" if reads_both else ""
        raise UsageError(
            f"`block={block}`: this network has no such block, only {known}{way_out}"
        )
    if not 0 <= layer <= len(block_maps):
        raise UsageError(
            f"`layer={layer}`: must be from 1 to {len(block_maps)}, the layers of "
            f"block {block}; 0 is the last"
        )
    return block_maps[layer - 1]


def draw(attention: HeadWeights, *, most_columns: int = 60) -> "Figure":
    """Draws attention weights.

    Args:
      attention: the weights and their tokens.
      most_columns: the maximum number of columns; the columns with the largest single
        weights are drawn, in their order. 0 draws all.
    """
    from matplotlib.colors import PowerNorm
    from matplotlib.figure import Figure

    weights = attention.weights  # [H, T, S]
    largest = weights.max(axis=(0, 1))
    columns = np.sort(np.argsort(-largest, kind="stable")[: most_columns or None])
    across = math.ceil(math.sqrt(len(weights)))
    down = -(-len(weights) // across)
    width = across * (len(columns) * _COLUMN_INCHES + _MARGIN_INCHES)
    height = down * (len(attention.rows) * _ROW_INCHES + _MARGIN_INCHES)
    figure = Figure(figsize=(width, height), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False)
    norm = PowerNorm(_POWER, 0.0, max(float(largest.max()), 1e-6))
    skips = np.diff(columns, prepend=-1) > 1
    labels = [
        "… " * bool(skip) + attention.columns[column]
        for column, skip in zip(columns, skips, strict=True)
    ]
    text = {"fontsize": 8, "parse_math": False}  # `$` is not a formula
    for axes, values in zip(grid.flat, weights[:, :, columns], strict=False):
        image = axes.imshow(values, aspect="auto", cmap="YlGnBu", norm=norm)
        axes.set_xticks(range(len(columns)), _shown(labels), rotation=90, **text)
        axes.set_yticks(range(len(attention.rows)), _shown(attention.rows), **text)
    for axes in grid.flat[len(weights) :]:
        axes.axis("off")
    figure.colorbar(image, ax=grid, fraction=0.02, pad=0.01, label="weight")
    return figure


def _shown(tokens: list[str]) -> list[str]:
    """Tokens as labels, with line breaks shown as a character that the font has."""
    return [token.replace(LINE_BREAK, "↵") for token in tokens]
