"""What the copies of a summarizer share their models by.

A worker of Beam has several threads, each with its copy, and passes `Shared` of Beam,
which takes seconds to import. Where one document is summarized there is one copy.
"""

from collections.abc import Callable
from typing import Any, Protocol


class Handle(Protocol):
    """Shares an object between the copies of a summarizer."""

    def acquire(self, make: Callable[[], Any]) -> Any:
        """The object, made where there is none yet."""


class Unshared:
    """Makes an object for each copy."""

    def acquire(self, make: Callable[[], Any]) -> Any:
        """A new object."""
        return make()
