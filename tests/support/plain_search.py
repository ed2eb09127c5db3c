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
    log-probabilities, whether the end was written.
    """

    tokens: Tokens
    score: float
    log_prob: float
    finished: bool


class SearchResult(NamedTuple):
    """The result of a search.

    Attributes:
      hypotheses: best first.
      steps: until every group was done.
      ties: how often equal candidates were on both sides of a cut.
    """

    hypotheses: list[Hypothesis]
    steps: int
    ties: int


class Live(NamedTuple):
    log_prob: float
    tokens: Tokens


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
        if token == special.end_id and len(written) < config.min_summary_tokens:
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


class Group:
    """One beam of k hypotheses; a search with G groups has G of them."""

    def __init__(self, config: SearchConfig) -> None:
        self.width = config.beam_width // config.beam_groups
        self.live = [Live(0.0, ())]
        self.finished: list[Hypothesis] = []
        self.done = False

    def candidates(
        self,
        logits_after: Logits,
        lowered: Callable[[int], float],
        config: SearchConfig,
        special: SpecialTokens,
        may_follow: MayFollow,
    ) -> tuple[list[tuple[float, int, int]], bool]:
        """The 2k best (log-probability, token, place of the parent), and whether equals
        stand around the k-th or the 2k-th place.
        """
        candidates = []
        for place, parent in enumerate(self.live):
            for token, log_prob in next_log_probs(
                logits_after(parent.tokens), parent.tokens, config, special, may_follow
            ).items():
                candidates.append(
                    (parent.log_prob + (log_prob - lowered(token)), token, place)
                )
        candidates.sort(
            key=lambda candidate: (-candidate[0], candidate[1], candidate[2])
        )
        tie = any(
            cut < len(candidates) and candidates[cut - 1][0] == candidates[cut][0]
            for cut in (self.width, 2 * self.width)
        )
        return candidates[: 2 * self.width], tie

    def advance(
        self,
        candidates: list[tuple[float, int, int]],
        bonus: Callable[[Tokens], float],
        config: SearchConfig,
        special: SpecialTokens,
    ) -> None:
        """Ends and extends hypotheses. A group that is done goes on writing, but
        hypotheses that it ends no longer count.
        """
        live = []
        for rank, (log_prob, token, place) in enumerate(candidates):
            parent = self.live[place].tokens
            tokens = (*parent, token)
            ends = token == special.end_id
            cut = (
                config.unfinished == "compete"
                and len(tokens) == config.max_summary_tokens
            )
            if (ends or cut) and rank < self.width and not self.done:
                score = log_prob / penalty(len(tokens), config) + bonus(parent)
                self.finished.append(Hypothesis(tokens, score, log_prob, ends))
            if not ends and not cut:
                live.append(Live(log_prob, tokens))
        self.live = live[: self.width]
        self.finished.sort(
            key=lambda hypothesis: -hypothesis.score
        )  # a stable sort: of equals the older is first
        del self.finished[self.width :]

    def is_decided(self, written: int, config: SearchConfig) -> bool:
        if len(self.finished) < self.width:
            return False
        if config.early_stopping == "first_k" or not self.live:
            return True
        longest = config.early_stopping == "never" and config.length_penalty > 0
        at_best = max(live.log_prob for live in self.live) / penalty(
            config.max_summary_tokens if longest else written, config
        )
        return at_best <= self.finished[-1].score


def beam_search(
    logits_after: Logits,
    *,
    config: SearchConfig,
    special: SpecialTokens,
    coverage: Callable[[Tokens], float] | None = None,
    stops: bool = True,
    may_follow: MayFollow = lambda written, token: True,
) -> SearchResult:
    """The best hypotheses of one document, at most as many as the beam is wide; fewer
    where nothing else can be written.

    Args:
      logits_after: of the next token.
      config: the search.
      special: special tokens.
      coverage: the coverage of a hypothesis that has read these tokens.
      stops: False searches to the last place whatever `config.early_stopping` says.
      may_follow: which tokens may follow others.
    """

    def bonus(read: Tokens) -> float:
        return config.coverage_penalty * coverage(read) if coverage else 0.0

    groups = [Group(config) for _ in range(config.beam_groups)]
    ties = written = 0
    while written < config.max_summary_tokens and not all(
        group.done for group in groups
    ):
        chosen: list[int] = []
        for group in groups:
            best, tie = group.candidates(
                logits_after,
                lambda token, chosen=tuple(chosen): (
                    config.diversity_penalty * chosen.count(token)
                ),
                config,
                special,
                may_follow,
            )
            ties += tie
            chosen += [token for _, token, _ in best[: group.width]]
            group.advance(best, bonus, config, special)
        written += 1
        for group in groups:
            group.done = group.done or (stops and group.is_decided(written, config))
    by_score = ranked(groups, bonus, config)
    return SearchResult(by_score[: config.beam_width], written, ties)


def ranked(
    groups: Sequence[Group], bonus: Callable[[Tokens], float], config: SearchConfig
) -> list[Hypothesis]:
    """Finished hypotheses by their scores, then unfinished ones by theirs."""
    finished = [hypothesis for group in groups for hypothesis in group.finished]
    unfinished = [
        Hypothesis(
            tokens,
            log_prob / penalty(len(tokens), config) + bonus(tokens[:-1]),
            log_prob,
            False,
        )
        for group in groups
        for log_prob, tokens in group.live
    ]
    return [
        hypothesis
        for part in (finished, unfinished)
        for hypothesis in sorted(part, key=lambda each: -each.score)
    ]


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
    log_prob = 0.0
    while len(tokens) < config.max_summary_tokens and special.end_id not in tokens:
        allowed = next_log_probs(
            logits_after(tokens), tokens, config, special, may_follow
        )
        if not allowed:
            return None
        best = min(allowed, key=lambda token: (-allowed[token], token))
        tokens, log_prob = (*tokens, best), log_prob + allowed[best]
    return Hypothesis(
        tokens,
        log_prob / penalty(len(tokens), config),
        log_prob,
        special.end_id in tokens,
    )


def all_hypotheses(
    logits_after: Logits,
    *,
    config: SearchConfig,
    special: SpecialTokens,
    coverage: Callable[[Tokens], float] | None = None,
) -> list[Hypothesis]:
    """Every hypothesis there is, by enumeration: finished ones by score, then
    unfinished ones; all by score alone where they compete.
    """
    hypotheses: list[Hypothesis] = []

    def extend(tokens: Tokens, log_prob: float) -> None:
        for token, step_log_prob in next_log_probs(
            logits_after(tokens), tokens, config, special
        ).items():
            longer, total = (*tokens, token), log_prob + step_log_prob
            if token == special.end_id or len(longer) == config.max_summary_tokens:
                bonus = config.coverage_penalty * coverage(tokens) if coverage else 0.0
                hypotheses.append(
                    Hypothesis(
                        longer,
                        total / penalty(len(longer), config) + bonus,
                        total,
                        token == special.end_id,
                    )
                )
            else:
                extend(longer, total)

    extend((), 0.0)
    last = config.unfinished == "last"
    return sorted(
        hypotheses,
        key=lambda hypothesis: (last and not hypothesis.finished, -hypothesis.score),
    )
