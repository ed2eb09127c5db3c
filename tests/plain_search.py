"""Beam search written from its definition, in plain Python: what `model.decoding.beam` is checked against.

It never stops early, knows no tensors and no sentinels: a forbidden continuation does not exist.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from model.config import DecodingConfig

Tokens = tuple[int, ...]


class Hypothesis(NamedTuple):
    """Tokens up to and with the end, the normalised score, the sum of log-probabilities, whether the end was written."""

    tokens: Tokens
    score: float
    log_prob: float
    finished: bool


def penalty(length: int, alpha: float) -> float:
    return ((5 + length) / 6) ** alpha


def log_softmax(logits: Sequence[float]) -> np.ndarray:
    values = np.asarray(logits, "float64")
    return values - max(values) - np.log(np.sum(np.exp(values - max(values))))


def repeats(tokens: Tokens, order: int) -> bool:
    """Whether the last `order` tokens occur earlier, too."""
    newest = tokens[len(tokens) - order :]
    return len(tokens) >= order and any(tokens[i : i + order] == newest for i in range(len(tokens) - order))


def is_allowed(tokens: Tokens, config: DecodingConfig, suppressed: Sequence[bool], end_id: int) -> bool:
    """Whether the last of the tokens may be written after the others."""
    if suppressed[tokens[-1]]:
        return False
    if tokens[-1] == end_id and len(tokens) - 1 < config.min_summary_tokens:
        return False
    return not (config.no_repeat_ngram and repeats(tokens, config.no_repeat_ngram))


def beam_search(
    logits_after: Callable[[Tokens], Sequence[float]], *, config: DecodingConfig, end_id: int, suppressed: Sequence[bool]
) -> list[Hypothesis]:
    """The best hypotheses of one document, at most as many as the beam is wide; fewer where nothing else can be written."""
    live: list[tuple[float, Tokens]] = [(0.0, ())]
    finished: list[Hypothesis] = []
    for _ in range(config.max_summary_tokens):
        candidates = []
        for log_prob, tokens in live:
            for token, step_log_prob in enumerate(log_softmax(logits_after(tokens))):
                longer = (*tokens, token)
                if is_allowed(longer, config, suppressed, end_id):
                    candidates.append((log_prob + float(step_log_prob), longer))
        candidates = sorted(candidates, reverse=True)[: 2 * config.beam_width]
        for log_prob, tokens in candidates:
            if tokens[-1] == end_id:
                finished.append(Hypothesis(tokens, log_prob / penalty(len(tokens), config.length_penalty), log_prob, True))
        finished = sorted(finished, key=lambda hypothesis: -hypothesis.score)[: config.beam_width]
        live = [candidate for candidate in candidates if candidate[1][-1] != end_id][: config.beam_width]
    unfinished = [Hypothesis(tokens, log_prob / penalty(len(tokens), config.length_penalty), log_prob, False) for log_prob, tokens in live]
    return (finished + unfinished)[: config.beam_width]


def all_hypotheses(
    logits_after: Callable[[Tokens], Sequence[float]], *, config: DecodingConfig, end_id: int, suppressed: Sequence[bool]
) -> list[Hypothesis]:
    """Every hypothesis there is, by enumeration: finished ones by score, then unfinished ones by score."""
    found: list[Hypothesis] = []

    def extend(tokens: Tokens, log_prob: float) -> None:
        if len(tokens) == config.max_summary_tokens:
            found.append(Hypothesis(tokens, log_prob / penalty(len(tokens), config.length_penalty), log_prob, False))
            return
        for token, step_log_prob in enumerate(log_softmax(logits_after(tokens))):
            longer, total = (*tokens, token), log_prob + float(step_log_prob)
            if not is_allowed(longer, config, suppressed, end_id):
                continue
            if token == end_id:
                found.append(Hypothesis(longer, total / penalty(len(longer), config.length_penalty), total, True))
            else:
                extend(longer, total)

    extend((), 0.0)
    return sorted(found, key=lambda hypothesis: (not hypothesis.finished, -hypothesis.score))
