"""The state of a beam search between two steps.

Live and finished hypotheses are kept apart, so that a finished hypothesis neither grows
nor takes the place of a live one.

With G groups each is a beam of its own of k = K/G hypotheses. G is an axis like that of
the documents: the state has R = B * G rows of k hypotheses, the groups of a document
side by side.
"""

from typing import Any, NamedTuple

from keras import ops

from precis.model.cache import Cache
from precis.model.search.config import SearchConfig, SpecialTokens
from precis.model.search.scores import LOWEST_SCORE


class Live(NamedTuple):
    """Hypotheses that have not ended.

    Attributes:
      tokens: int32 [R, k, T + 1], start token first.
      log_probs: float32 [R, k].
    """

    tokens: Any
    log_probs: Any


class Finished(NamedTuple):
    """Hypotheses that have ended, best first.

    Attributes:
      tokens: int32 [R, k, T + 1], start token first.
      scores: float32 [R, k], LOWEST_SCORE at empty places.
      log_probs: float32 [R, k].
    """

    tokens: Any
    scores: Any
    log_probs: Any


class BeamState(NamedTuple):
    """All that a step changes.

    Attributes:
      index: int32 scalar, the number of tokens written so far.
      live: hypotheses that may be extended.
      finished: hypotheses that have ended.
      is_done: bool [R], whether no later hypothesis can count.
      cache: of the network, with the hypotheses in the order of `live`.
    """

    index: Any
    live: Live
    finished: Finished
    is_done: Any
    cache: Cache


def start_state(
    cache: Cache, *, batch: Any, config: SearchConfig, special: SpecialTokens
) -> BeamState:
    """The state before the first step of B documents."""
    length = config.max_summary_tokens
    width = config.beam_width // config.beam_groups
    rows = batch * config.beam_groups
    start = ops.full((rows, width, 1), special.start_id, dtype="int32")
    padding = ops.full((rows, width, length), special.pad_id, dtype="int32")
    tokens = ops.concatenate([start, padding], axis=2)
    # All hypotheses of a row are equal at first. Only the first may be extended, or the
    # row would hold copies of one hypothesis.
    first = ops.where(ops.arange(width) == 0, 0.0, LOWEST_SCORE)
    empty = ops.full((rows, width), LOWEST_SCORE, dtype="float32")
    return BeamState(
        index=ops.convert_to_tensor(0, "int32"),
        live=Live(tokens, ops.tile(first[None], (rows, 1))),
        finished=Finished(tokens, empty, empty),
        is_done=ops.zeros((rows,), dtype="bool"),
        cache=cache,
    )


def extend(tokens: Any, last: Any, index: Any) -> Any:
    """Writes tokens [R, k] behind place `index` of tokens [R, k, T + 1]."""
    is_next = ops.arange(tokens.shape[2]) == index + 1
    return ops.where(is_next, last[..., None], tokens)
