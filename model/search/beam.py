"""Beam search (Vaswani et al. 2017, section 6.1; Wu et al. 2016, section 7), with
groups as in diverse beam search (Vijayakumar et al. 2018).
"""

from collections.abc import Callable
from typing import Any

from keras import ops

from precis.model.cache import reorder_beams
from precis.model.search.candidates import across_groups, choose_candidates, keep_live
from precis.model.search.compaction import first_room, run_in_segments
from precis.model.search.config import SearchConfig, SpecialTokens
from precis.model.search.constraints import score_next
from precis.model.search.contract import Hypotheses, Network
from precis.model.search.finished import is_decided, keep_finished, rank_hypotheses
from precis.model.search.state import BeamState, start_state
from precis.model.search.supported import (
    Support,
    follow_facts,
    keep_facts,
    start_facts,
)


def beam_search(
    network: Network,
    memory: Any,
    *,
    batch: Any,
    config: SearchConfig,
    special: SpecialTokens,
    coverage: Callable[[Any], Any] | None = None,
    support: Support | None = None,
) -> Hypotheses:
    """Finds the K most likely summaries of each document.

    Args:
      network: computes the logits of next tokens.
      memory: what the network's `encode` made of B sources.
      batch: B, a number or a scalar tensor.
      config: width, penalties and bounds.
      special: the ids of special tokens.
      coverage: computes the coverage penalty (Wu et al. 2016, equation 14) of each live
        hypothesis from the cache after a step, float32 [B, K], at most 0. Times
        `config.coverage_penalty` it is added to the score of a hypothesis that ends.
      support: the sources whose numbers and names may be written; None where a search
        may write all.

    Returns:
      K hypotheses per document, finished ones first or by score alone, as
      `config.unfinished` says.
    """

    def advance(state: BeamState) -> BeamState:
        """Writes one token of each live hypothesis."""
        index = state.index
        tokens = ops.reshape(
            state.live.tokens, (-1, config.beam_width, config.max_summary_tokens + 1)
        )  # [B, K, T + 1]
        last = ops.take(tokens, index, axis=2)
        written = follow_facts(state.cache, last)
        logits, cache = network.step(last, state.cache, index)
        cache = keep_facts(cache, written)
        scores = score_next(
            logits, tokens, index, cache, config=config, special=special
        )
        bonus = _weigh(coverage, cache, config)
        return _choose(state._replace(cache=cache), scores, bonus, config, special)

    def rank(state: BeamState) -> Hypotheses:
        bonus = _weigh(coverage, state.cache, config)
        return rank_hypotheses(state, bonus, config, special.end_id)

    counts_coverage = coverage is not None
    cache = network.start(
        memory, config.beam_width, first_room(config), counts_coverage=counts_coverage
    )
    cache = start_facts(cache, support, config.beam_width)
    state = start_state(cache, batch=batch, config=config, special=special)
    return run_in_segments(
        state, advance=advance, rank=rank, batch=batch, config=config
    )


def _choose(
    state: BeamState,
    scores: Any,
    bonus: Any,
    config: SearchConfig,
    special: SpecialTokens,
) -> BeamState:
    """The state after each hypothesis has gone on with its best tokens.

    Args:
      state: before, with the cache after the step.
      scores: of the next tokens, as `score_next` computes them.
      bonus: of a hypothesis that ends, as `_weigh` computes it.
      config, special: as for `beam_search`.
    """
    candidates = choose_candidates(scores, state.live.log_probs, config)
    finished = keep_finished(state, candidates, bonus, config, special.end_id)
    live, parents = keep_live(state, candidates, special.end_id)
    cache = reorder_beams(state.cache, across_groups(parents, config.beam_groups))
    written = state.index + 1
    is_done = is_decided(finished, live.log_probs, written, config)
    is_done = ops.logical_or(state.is_done, is_done)
    return BeamState(written, live, finished, is_done, cache)


def _weigh(
    coverage: Callable[[Any], Any] | None, cache: Any, config: SearchConfig
) -> Any:
    """The weighted coverage penalty, float32 [R, k]; None where it is off."""
    if coverage is None:
        return None
    width = config.beam_width // config.beam_groups
    return ops.reshape(coverage(cache), (-1, width)) * config.coverage_penalty
