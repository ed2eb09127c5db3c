"""What a search needs of a network, and what it returns."""

from typing import Any, NamedTuple, Protocol

from precis.model.cache import Cache


class Network(Protocol):
    """A network as a search knows it; see `model.network` for shapes and meaning."""

    def start(
        self, memory: Any, beams: int, length: int, *, counts_coverage: bool = False
    ) -> Cache: ...

    def step(self, tokens: Any, cache: Cache, index: Any) -> tuple[Any, Cache]: ...


class Hypotheses(NamedTuple):
    """Ranked hypotheses, best first.

    Where fewer than K can be written at all, the last places are empty:
    `is_possible(log_probs)` is False there.

    Attributes:
      tokens: int32 [B, K, T], up to and with the end token, then padding.
      scores: float32 [B, K], the log-probability over the length penalty, plus the
          coverage penalty.
      log_probs: float32 [B, K], the sum of the tokens' log-probabilities.
      finished: bool [B, K], False where the maximum length was reached before the end
          token.
    """

    tokens: Any
    scores: Any
    log_probs: Any
    finished: Any
