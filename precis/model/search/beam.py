"""Beam search (Vaswani et al. 2017, section 6.1; Wu et al. 2016, section 7). A beam of
width 1 is greedy search, which takes the most likely token at every step.

The time of a step grows with the documents in the batch and with the slots in the
cache. So a search runs in segments of a few steps. After each segment it removes the
documents that are done and the slots that no hypothesis reads, and makes room for the
next segment.
"""

from typing import Any, Protocol

from precis.model.backend import Tensor, ops, tree, with_unknown_size
from precis.model.cache import Cache, grow, reorder_beams, select_documents
from precis.model.search.config import SearchConfig, SpecialTokens
from precis.model.search.constraints import score_next
from precis.model.search.copy_constraint import (
    FactSource,
    follow_facts,
    keep_facts,
    start_facts,
)
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

# The number of steps in a segment.
SEGMENT = 8
_LONGEST = "longest"  # the cache entry with the maximum length of each document


class Network(Protocol):
    """What a search calls of a network; `model.network` documents the methods."""

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
    fact_source: FactSource | None = None,
    longest: Tensor | None = None,
) -> Hypotheses:
    """Finds the K most likely summaries of each document.

    Args:
      network: computes the logits of next tokens.
      memory: the output of the network's `encode` for B sources.
      batch: B, a number or a scalar tensor.
      config: beam width, penalties and maximum lengths.
      special: the ids of special tokens.
      fact_source: the sources for the copy constraint; None turns it off.
      longest: int32 [B], the maximum number of tokens for each document; hypotheses
        that have not ended by then rank last. None: only `config` limits the length.

    Returns:
      K hypotheses per document, ranked by score; `config.unfinished` says whether
      finished hypotheses come first.
    """
    length = config.max_summary_tokens

    def run_segment(state: BeamState, documents: Tensor, results: Hypotheses) -> Any:
        """Runs steps until the segment ends or all documents are done."""
        end = ops.minimum(state.index + SEGMENT, length)
        (state,) = ops.while_loop(
            lambda state: _is_running(state, end),
            lambda state: (_advance(network, state, config, special),),
            (state,),
        )
        results = tree.map_structure(
            lambda old, new: ops.scatter_update(old, documents[:, None], new),
            results,
            rank_hypotheses(state, config, special.end_ids),
        )
        state, documents = _drop_done(state, documents)
        # Not needed after the last segment, but a condition would cost more.
        cache = grow(state.cache, written=end, more=SEGMENT)
        return state._replace(cache=cache), documents, results

    cache = network.start(memory, config.beam_width, min(SEGMENT, length))
    cache = start_facts(cache, fact_source, config.beam_width)
    if longest is not None:
        bound = {_LONGEST: longest}
        cache = cache._replace(per_document=cache.per_document | bound)
    state = start_state(cache, batch=batch, config=config, special=special)
    # The state of the documents that are not done, their places in the batch, int32
    # [N], and the results of all documents, so far provisional for these N.
    progress = (
        state,
        ops.arange(batch, dtype="int32"),
        rank_hypotheses(state, config, special.end_ids),
    )
    _, _, results = ops.while_loop(
        lambda state, *_: _is_running(state, length),
        run_segment,
        tree.map_structure(with_unknown_size, progress),
    )
    return results


def _advance(
    network: Network, state: BeamState, config: SearchConfig, special: SpecialTokens
) -> BeamState:
    """Adds one token to each live hypothesis."""
    index, tokens = state.index, state.live.tokens
    last = ops.take(tokens, index, axis=2)
    written = follow_facts(state.cache, last)
    logits, cache = network.step(last, state.cache, index)
    cache = keep_facts(cache, written)
    scores = score_next(logits, tokens, index, cache, config=config, special=special)
    candidates = choose_candidates(
        scores, state.live.log_probs, config.beam_width, ends=len(special.end_ids)
    )
    finished = keep_finished(state, candidates, config, special.end_ids)
    live, parents = keep_live(state, candidates, special.end_ids)
    index = index + 1
    is_done = is_decided(finished, live.log_probs, index, config)
    is_done = ops.logical_or(state.is_done, is_done)
    if _LONGEST in cache.per_document:
        is_done = ops.logical_or(is_done, index >= cache.per_document[_LONGEST])
    return BeamState(index, live, finished, is_done, reorder_beams(cache, parents))


def _is_running(state: BeamState, end: Tensor) -> Tensor:
    """Whether fewer than `end` tokens are written and some document is not done."""
    any_open = ops.logical_not(ops.all(state.is_done))
    return ops.logical_and(state.index < end, any_open)


def _drop_done(state: BeamState, documents: Tensor) -> tuple[BeamState, Tensor]:
    """Drops the documents that are done; `documents` has their places, int32 [N]."""
    is_done = state.is_done  # [N]
    # One document always stays, as a network may not support an empty batch.
    is_first = ops.arange(ops.shape(is_done)[0]) == 0
    is_needed = ops.logical_and(ops.all(is_done), is_first)

    def drop() -> tuple[BeamState, Tensor]:
        (kept,) = ops.nonzero(ops.logical_or(ops.logical_not(is_done), is_needed))
        kept = ops.cast(kept, "int32")
        live, finished, still_done, places = tree.map_structure(
            lambda part: ops.take(part, kept, axis=0),
            (state.live, state.finished, state.is_done, documents),
        )
        cache = select_documents(state.cache, kept)
        return BeamState(state.index, live, finished, still_done, cache), places

    return ops.cond(ops.any(is_done), drop, lambda: (state, documents))
