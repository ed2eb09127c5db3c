"""Beam search (Vaswani et al. 2017, section 6.1; Wu et al. 2016, section 7). A beam of
width 1 is greedy search, which takes the most likely token at every step.
"""

from typing import Any, Protocol

from precis.model.backend import Tensor, ops
from precis.model.cache import Cache, reorder_beams
from precis.model.search.compaction import SEGMENT, run_in_segments
from precis.model.search.config import SearchConfig, SpecialTokens
from precis.model.search.constraints import score_next
from precis.model.search.hypotheses import (
    BeamState,
    Hypotheses,
    choose_candidates,
    is_decided,
    keep_finished,
    keep_live,
    rank_hypotheses,
    start_state,
)
from precis.model.search.scores import NextTokenScores
from precis.model.search.supported import (
    Support,
    follow_facts,
    keep_facts,
    start_facts,
)

_LONGEST = "longest"  # the name of the bounds of documents in a cache


class Network(Protocol):
    """A network as a search knows it; see `model.network` for shapes and meaning."""

    def start(self, memory: Any, beams: int, length: int) -> Cache: ...

    def step(
        self, tokens: Tensor, cache: Cache, index: Tensor
    ) -> tuple[Tensor, Cache]: ...


def beam_search(
    network: Network,
    memory: Any,
    *,
    batch: Any,
    config: SearchConfig,
    special: SpecialTokens,
    support: Support | None = None,
    longest: Tensor | None = None,
) -> Hypotheses:
    """Finds the K most likely summaries of each document.

    Args:
      network: computes the logits of next tokens.
      memory: what the network's `encode` made of B sources.
      batch: B, a number or a scalar tensor.
      config: width, penalties and bounds.
      special: the ids of special tokens.
      support: the sources whose numbers and names may be written; None where a search
          may write all.
      longest: int32 [B], the tokens of a hypothesis, at most; those that have not ended
        then rank last. None where `config` alone sets a bound.

    Returns:
      K hypotheses per document, finished ones first or by score alone, as
      `config.unfinished` says.
    """

    def advance(state: BeamState) -> BeamState:
        """Writes one token of each live hypothesis."""
        scores, cache = _score_next(
            network, state.live.tokens, state.index, state.cache, config, special
        )
        candidates = choose_candidates(
            scores, state.live.log_probs, config.beam_width, ends=len(special.end_ids)
        )
        finished = keep_finished(state, candidates, config, special.end_ids)
        live, parents = keep_live(state, candidates, special.end_ids)
        written = state.index + 1
        is_done = is_decided(finished, live.log_probs, written, config)
        is_done = ops.logical_or(state.is_done, is_done)
        if _LONGEST in cache.per_document:
            is_done = ops.logical_or(is_done, written >= cache.per_document[_LONGEST])
        cache = reorder_beams(cache, parents)
        return BeamState(written, live, finished, is_done, cache)

    room = min(SEGMENT, config.max_summary_tokens)
    cache = network.start(memory, config.beam_width, room)
    cache = start_facts(cache, support, config.beam_width)
    if longest is not None:
        bound = {_LONGEST: longest}
        cache = cache._replace(per_document=cache.per_document | bound)
    return run_in_segments(
        start_state(cache, batch=batch, config=config, special=special),
        advance=advance,
        rank=lambda state: rank_hypotheses(state, config, special.end_ids),
        batch=batch,
        config=config,
    )


def _score_next(
    network: Network,
    tokens: Tensor,
    index: Tensor,
    cache: Cache,
    config: SearchConfig,
    special: SpecialTokens,
) -> tuple[NextTokenScores, Cache]:
    """The scores of the tokens that may follow tokens int32 [B, K, T + 1], of which
    `index` are written, and the cache after the step.
    """
    last = ops.take(tokens, index, axis=2)
    written = follow_facts(cache, last)
    logits, cache = network.step(last, cache, index)
    cache = keep_facts(cache, written)
    return (
        score_next(logits, tokens, index, cache, config=config, special=special),
        cache,
    )
