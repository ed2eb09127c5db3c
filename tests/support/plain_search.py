"""Beam search and greedy search in plain Python, written from their definition;
`precis.model.search` must equal them.

There are no tensors and no sentinels: a forbidden continuation does not exist.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from precis.model.search.config import SearchConfig, SpecialTokens

Tokens = tuple[int, ...]
# The logits of the next token after the start token and these tokens.
Logits = Callable[[Tokens], Sequence[float]]
BOUND: Literal["bound"] = "bound"
# Whether a token may be written after these tokens; BOUND where it is written though it
# repeats an n-gram.
MayFollow = Callable[[Tokens, int], bool | Literal["bound"]]


class Hypothesis(NamedTuple):
    """Tokens up to and with the end, the normalised score, the sum of
    log-probabilities, whether the end was written, the least log-probability.
    """

    tokens: Tokens
    score: float
    log_prob: float
    finished: bool
    min_log_prob: float


class SearchResult(NamedTuple):
    """The result of a search.

    Attributes:
      hypotheses: best first.
      steps: until it was done.
      ties: how often equal candidates were on both sides of a cut.
    """

    hypotheses: list[Hypothesis]
    steps: int
    ties: int


class Live(NamedTuple):
    log_prob: float
    tokens: Tokens
    min_log_prob: float


def penalty(length: int, config: SearchConfig) -> float:
    """The divisor of the log-probability of `length` tokens, the end token included."""
    base = {"none": 1.0, "average": float(length), "wu": (5 + length) / 6}[
        config.length_penalty_form
    ]
    return base**config.length_penalty


def log_softmax(logits: Sequence[float]) -> list[float]:
    values = [float(value) for value in logits]
    highest = max(values)
    norm = highest + math.log(math.fsum(math.exp(value - highest) for value in values))
    return [value - norm for value in values]


def ngrams(tokens: Tokens, order: int) -> list[Tokens]:
    return [tokens[i : i + order] for i in range(len(tokens) - order + 1)]


def penalised(logit: float, log_prob: float, config: SearchConfig) -> float:
    """The log-probability of a token that was written before."""
    if config.repetition_penalty_form == "log_probs":
        return log_prob * config.repetition_penalty
    norm = logit - log_prob
    return (
        logit * config.repetition_penalty
        if logit < 0
        else logit / config.repetition_penalty
    ) - norm


def next_log_probs(
    logits: Sequence[float],
    written: Tokens,
    config: SearchConfig,
    special: SpecialTokens,
    may_follow: MayFollow = lambda written, token: True,
) -> dict[int, float]:
    """The tokens that may follow the start token and those written, with their
    log-probabilities.
    """
    if len(written) < len(special.prefix):
        return {special.prefix[len(written)]: 0.0}
    if len(written) == config.max_summary_tokens - 1 and special.last_id is not None:
        return {special.last_id: 0.0}
    past = (special.start_id, *written)
    allowed = {}
    for token, log_prob in enumerate(log_softmax(logits)):
        follows = may_follow(written, token)
        if token in special.suppressed or not follows:
            continue
        if token in special.end_ids and len(written) < config.min_summary_tokens:
            continue
        order = config.no_repeat_ngram
        if (
            order
            and follows != BOUND
            and len(past) + 1 >= order
            and (*past, token)[-order:] in ngrams(past, order)
        ):
            continue
        allowed[token] = (
            penalised(logits[token], log_prob, config) if token in past else log_prob
        )
    return allowed


def continuations(
    live: Sequence[Live],
    logits_after: Logits,
    config: SearchConfig,
    special: SpecialTokens,
    may_follow: MayFollow,
) -> tuple[list[tuple[float, int, int]], bool]:
    """The 2K best (log-probability, token, place of the parent), (1 + E) K where E
    tokens end a summary, and whether equals stand around the K-th or the last place.
    """
    candidates = [
        (parent.log_prob + log_prob, token, place)
        for place, parent in enumerate(live)
        for token, log_prob in next_log_probs(
            logits_after(parent.tokens), parent.tokens, config, special, may_follow
        ).items()
    ]
    candidates.sort(key=lambda candidate: (-candidate[0], *candidate[1:]))
    width = config.beam_width
    count = (1 + len(special.end_ids)) * width
    tie = any(
        cut < len(candidates) and candidates[cut - 1][0] == candidates[cut][0]
        for cut in (width, count)
    )
    return candidates[: count if width > 1 else 1], tie


def is_decided(
    finished: list[Hypothesis], live: list[Live], written: int, config: SearchConfig
) -> bool:
    if len(finished) < config.beam_width:
        return False
    if config.early_stopping == "first_k" or not live:
        return True
    longest = config.early_stopping == "never" and config.length_penalty > 0
    at_best = max(each.log_prob for each in live) / penalty(
        config.max_summary_tokens if longest else written, config
    )
    return at_best <= finished[-1].score


def beam_search(
    logits_after: Logits,
    *,
    config: SearchConfig,
    special: SpecialTokens,
    stops: bool = True,
    may_follow: MayFollow = lambda written, token: True,
) -> SearchResult:
    """The best hypotheses of one document, at most as many as the beam is wide; fewer
    where nothing else can be written.

    Args:
      logits_after: of the next token.
      config: the search.
      special: special tokens.
      stops: False searches to the last place whatever `config.early_stopping` says.
      may_follow: which tokens may follow others.
    """
    live, finished = [Live(0.0, (), 0.0)], []
    ties = written = 0
    is_done = False
    while written < config.max_summary_tokens and not is_done:
        best, tie = continuations(live, logits_after, config, special, may_follow)
        ties += tie
        longer = []
        for rank, (log_prob, token, place) in enumerate(best):
            parent = live[place]
            tokens = (*parent.tokens, token)
            least = min(parent.min_log_prob, log_prob - parent.log_prob)
            ends = token in special.end_ids
            cut = (
                config.unfinished == "compete"
                and len(tokens) == config.max_summary_tokens
            )
            if (ends or cut) and rank < config.beam_width:
                finished.append(hypothesis_of(tokens, log_prob, ends, least, config))
            if not ends and not cut:
                longer.append(Live(log_prob, tokens, least))
        live = longer[: config.beam_width]
        finished = by_score(finished)[: config.beam_width]
        written += 1
        is_done = stops and is_decided(finished, live, written, config)
    unfinished = [
        hypothesis_of(each.tokens, each.log_prob, False, each.min_log_prob, config)
        for each in live
    ]
    ranked = finished + by_score(unfinished)
    return SearchResult(ranked[: config.beam_width], written, ties)


def hypothesis_of(
    tokens: Tokens, log_prob: float, ends: bool, least: float, config: SearchConfig
) -> Hypothesis:
    score = log_prob / penalty(len(tokens), config)
    return Hypothesis(tokens, score, log_prob, ends, least)


def by_score(hypotheses: list[Hypothesis]) -> list[Hypothesis]:
    """Best first; a stable sort: of equals the older is first."""
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)


def greedy_search(
    logits_after: Logits,
    *,
    config: SearchConfig,
    special: SpecialTokens,
    may_follow: MayFollow = lambda written, token: True,
) -> Hypothesis | None:
    """The one hypothesis of the most likely token at every step, the smaller of equals;
    None where a step allows no token.
    """
    tokens: Tokens = ()
    log_prob = least = 0.0
    while len(tokens) < config.max_summary_tokens and special.end_id not in tokens:
        allowed = next_log_probs(
            logits_after(tokens), tokens, config, special, may_follow
        )
        if not allowed:
            return None
        best = min(allowed, key=lambda token: (-allowed[token], token))
        tokens, log_prob = (*tokens, best), log_prob + allowed[best]
        least = min(least, allowed[best])
    return hypothesis_of(tokens, log_prob, special.end_id in tokens, least, config)
