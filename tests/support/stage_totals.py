"""A display that only notes how far each stage has come when it ends."""

import contextlib
from collections.abc import Iterator

from precis.model.progress.stages import LISTENER, StageGroup


class NotedStages:
    """Notes the stages that end.

    Attributes:
      ended: the name of a stage -> what was done of it, and its total.
    """

    def __init__(self) -> None:
        self.ended: dict[str, tuple[int, int | None]] = {}
        self._open: list[StageGroup] = []

    def begin(self, group: StageGroup) -> None:
        """Notes that stages begin."""
        self._open.append(group)

    def end(self, *, is_done: bool) -> None:
        """Notes how far the stages that began last have come."""
        group = self._open.pop()
        assert is_done
        for each, counts in zip(group.stages, group.counts(), strict=True):
            self.ended[each.name] = (counts.documents, each.total)

    def say(self, text: str) -> None:
        """Ignores a message."""


@contextlib.contextmanager
def noted_stages() -> Iterator[NotedStages]:
    """Notes the stages of the block."""
    noted = NotedStages()
    token = LISTENER.set(noted)
    yield noted
    LISTENER.reset(token)
