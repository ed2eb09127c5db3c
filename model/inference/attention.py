"""What a network reads of a document while it writes: the weights of every attention,
with the tokens they belong to.
"""

from typing import NamedTuple

import numpy as np

from precis.model.bundle.network_bundle import Bundle
from precis.model.errors import UsageError
from precis.model.inference.searcher import Searcher
from precis.model.inference.summarizer import special_tokens
from precis.model.search.config import SearchConfig
from precis.model.tokenization.folder import AnyTokenizer, encode_targets


class HeadWeights(NamedTuple):
    """The weights of one attention.

    Attributes:
      block: encoder, self, cross or copy.
      layer: its number, from 1.
      weights: float32 [H, T, S]; each row sums to one.
      rows: the T tokens that read.
      columns: the S tokens that are read.
    """

    block: str
    layer: int
    weights: np.ndarray
    rows: list[str]
    columns: list[str]


def read_attention(
    bundle: Bundle,
    text: str,
    *,
    block: str,
    layer: int,
    decoding: SearchConfig,
    summary: str | None = None,
) -> HeadWeights:
    """The weights of one attention while a document's summary is written.

    Args:
      bundle: the network.
      text: the normalised article, behind the task prefix if there is one.
      block: encoder, what the encoder reads of the source; self, what is read of what
        was written; cross, what is read of the source; copy, what the pointer copies. A
        decoder-only network reads the source and what was written in one: `self`.
      layer: from 1 at the bottom; 0 is the last.
      decoding: how the summary is searched.
      summary: is read as if it were being written, in place of the network's own.

    Raises:
      UsageError: the network has no such block or layer, or wrote nothing.
    """
    special = special_tokens(bundle.tokenizer, bundle.special)
    source = bundle.source_tokenizer.cut(
        bundle.source_tokenizer.encode([text])[0],
        bundle.network.config.max_source_tokens,
    )
    if summary is None:
        searcher = Searcher(bundle.network, config=decoding, special=special)
        found = searcher.search([source])[0]
        if not found:
            raise UsageError(
                "the search found no summary under these settings; relax them, or give one with --summary"
            )
        written = found[0].tokens
    else:
        written = [
            *encode_targets(bundle.tokenizer, [summary])[0].tolist(),
            special.end_id,
        ]
    written = written[: bundle.network.config.max_target_tokens + 1]
    read = [special.start_id, *written[:-1]]
    maps = bundle.network.attention(
        np.asarray([source], "int32"), np.asarray([read], "int32")
    )
    own = [one for one in maps if one.block == block]
    if not own:
        there = ", ".join(dict.fromkeys(one.block for one in maps))
        raise UsageError(f"--block {block}: this network has none; it has {there}")
    if not 0 <= layer <= len(own):
        raise UsageError(
            f"--layer {layer}: the block {block} has the layers 1 to {len(own)}"
        )
    chosen = own[layer - 1]
    sources, targets, labels = (
        _pieces(bundle.source_tokenizer, source),
        _pieces(bundle.tokenizer, read),
        _pieces(bundle.tokenizer, written),
    )
    columns = {"source": sources, "target": targets, "both": sources + targets}[
        chosen.columns
    ]
    rows = {"source": sources, "target": labels}[chosen.rows]
    return HeadWeights(
        block, chosen.layer + 1, np.asarray(chosen.weights[0], "float32"), rows, columns
    )


def _pieces(tokenizer: AnyTokenizer, ids: "np.ndarray | list[int]") -> list[str]:
    return [tokenizer.piece(int(token)) for token in ids]
