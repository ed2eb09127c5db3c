"""Attention weights of a network while it writes a summary, with the tokens that the
weights belong to.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from precis.model.bundle.network_bundle import Bundle
from precis.model.errors import UsageError
from precis.model.inference.summarizer import make_searcher
from precis.model.network.generator import AttentionMap
from precis.model.search.config import SearchConfig
from precis.model.search.special import special_tokens
from precis.model.tokenization.folder import AnyTokenizer
from precis.model.tokenization.source import encode_sources
from precis.model.tokenization.target import encode_targets


class HeadWeights(NamedTuple):
    """The weights of one attention, with a row for each token that reads.

    Attributes:
      block: encoder, self, cross or copy.
      layer: its number, from 1.
      weights: float32 [H, T, S]; each row sums to one.
      rows: the T tokens that read.
      columns: the S tokens that are read.
      summary: the text that is written.
      unit: what the rows and columns are, tokens or words.
    """

    block: str
    layer: int
    weights: np.ndarray
    rows: list[str]
    columns: list[str]
    summary: str = ""
    unit: str = "tokens"


def read_attention(
    bundle: Bundle,
    text: str,
    *,
    block: str,
    layer: int,
    decoding: SearchConfig,
    summary: str | None = None,
) -> HeadWeights:
    """Reads the weights of one attention while a document's summary is written.

    The network reads the tokens of the summary up to the one before; a row of the
    weights belongs to the token that is written next:

        input      [START]  ▁Rain  ▁fell
        written    ▁Rain    ▁fell  [END]

    Args:
      bundle: the network and its tokenizers.
      text: the normalised article, behind the task prefix if there is one.
      block: encoder, where the source reads itself; self, where the summary reads
        itself; cross, where the summary reads the source; copy, the distribution that
        the pointer copies from. A decoder-only network reads the source and the summary
        as one sequence, in `self`.
      layer: from 1 at the bottom; 0 is the last.
      decoding: the search settings.
      summary: a text to read in place of the summary that the network writes.

    Raises:
      UsageError: the network has no such block or layer, or the search found no
        summary.
    """
    (source,) = encode_sources(
        bundle.source_tokenizer,
        [text],
        max_source_tokens=bundle.network.config.max_source_tokens,
    )
    special = special_tokens(bundle.tokenizer, bundle.special)
    if summary is None:
        written = _search_tokens(bundle, source.ids, decoding)
    else:
        written = _tokens_of(bundle, summary, special.end_id)
    written = written[: bundle.network.config.max_target_tokens + 1]
    of_text = [token for token in written if token != special.end_id]
    (text_written,) = bundle.tokenizer.decode([of_text])
    inputs = [special.start_id, *written[:-1]]
    maps = bundle.network.attention(
        np.asarray([source.ids], "int32"), np.asarray([inputs], "int32")
    )
    chosen = _choose_map(maps, block=block, layer=layer)
    source_pieces = _pieces(bundle.source_tokenizer, source.ids)
    rows = {"source": source_pieces, "target": _pieces(bundle.tokenizer, written)}
    columns = {"source": source_pieces, "target": _pieces(bundle.tokenizer, inputs)}
    columns["both"] = columns["source"] + columns["target"]
    return HeadWeights(
        block,
        chosen.layer + 1,
        np.asarray(chosen.weights[0], "float32"),
        rows[chosen.rows],
        columns[chosen.columns],
        text_written,
    )


def _tokens_of(bundle: Bundle, summary: str, end_id: int) -> list[int]:
    """The tokens of a given summary."""
    (ids,) = encode_targets(bundle.tokenizer, [summary])
    return [*ids.tolist(), end_id]


def _search_tokens(
    bundle: Bundle, source: np.ndarray, decoding: SearchConfig
) -> list[int]:
    """The tokens of the network's best summary, the end token included."""
    searcher = make_searcher(
        bundle.network,
        bundle.tokenizer,
        decoding,
        bundle.special,
        bundle.source_tokenizer,
    )
    (hypotheses,) = searcher.search([source])
    if not hypotheses:
        raise UsageError(
            "the search found no summary under these settings; relax them, or give one "
            "with --summary"
        )
    return hypotheses[0].tokens


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


def _pieces(tokenizer: AnyTokenizer, ids: Iterable[int]) -> list[str]:
    """The text of each token."""
    return [tokenizer.piece(int(token)) for token in ids]
