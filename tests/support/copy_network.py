"""A network that copies a sentence of its source by a rule, so that a test knows what
a summary of any passage is: the sentence with the marker, or else the first one.
"""

from typing import Any, NamedTuple

from keras import ops

from precis.model.cache import Cache


class CopyConfig(NamedTuple):
    """What a searcher asks of a network's configuration."""

    max_source_tokens: int
    max_target_tokens: int
    pad_id: int
    pointer: bool = False


class CopyNetwork:
    """A network as a greedy search knows it; its memory is the source."""

    def __init__(
        self, config: CopyConfig, *, vocabulary: int, marker: int, stop: int, end: int
    ) -> None:
        """Takes the ids of the marker, of the full stop and of the end token."""
        self.config = config
        self._vocabulary = vocabulary
        self._marker = marker
        self._stop = stop
        self._end = end

    def encode(self, source: Any) -> Any:
        return source

    def start(self, memory: Any, beams: int, length: int, **_: Any) -> Cache:
        assert beams == 1
        first = ops.argmax(ops.equal(memory, self._marker), axis=1)  # 0 without one
        places = ops.cast(first, "int32")[:, None] + ops.arange(length)[None]
        last = ops.shape(memory)[1] - 1
        copied = ops.take_along_axis(memory, ops.minimum(places, last), axis=1)
        stops = ops.cast(ops.equal(copied, self._stop), "int32")
        stops_before = ops.cumsum(stops, axis=1) - stops
        is_over = ops.logical_or(stops_before > 0, places > last)
        copied = ops.where(is_over, self._end, copied)
        return Cache(per_beam={}, per_document={"copied": copied}, shared={})

    def step(self, tokens: Any, cache: Cache, index: Any) -> tuple[Any, Cache]:
        token = ops.take(cache.per_document["copied"], index, axis=1)[:, None]
        return 20.0 * ops.one_hot(token, self._vocabulary), cache
