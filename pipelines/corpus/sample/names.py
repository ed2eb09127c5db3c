"""Draws invented names, places and figures, never the same one twice in a document."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Words = Mapping[str, Sequence[str]]


class Draw:
    """A stream of random choices for one document.

    Only `random.Random.random` is used, because it alone is promised to give the same
    numbers in every version of Python.

    Attributes:
      values: the values that the document has drawn so far, by name.
    """

    def __init__(self, seed: str, names: Words, words: Words) -> None:
        self.values: dict[str, str | int] = {}
        self._names = names
        self._words = words
        self._random = random.Random(seed).random
        self._used: set[str] = set()

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + int(self._random() * (high - low + 1))

    def one(self, items: Sequence[Item]) -> Item:
        """One of the items."""
        return items[int(self._random() * len(items))]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """The items in a random order (Fisher and Yates)."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = int(self._random() * (last + 1))
            order[last], order[other] = order[other], order[last]
        return order

    def fresh(self, make: Callable[[], str]) -> str:
        """A string that this document has not drawn before."""
        while (drawn := make()) in self._used:
            pass
        self._used.add(drawn)
        return drawn

    def name(self, name: str) -> str:
        """A name of the list that is called `name`, not drawn before."""
        names = self._names[name]
        while (drawn := self.one(names)) in self._used:
            pass
        self._used.add(drawn)
        return drawn

    def person(self) -> str:
        """A given and a family name."""
        return f"{self.name('first_name')} {self.name('last_name')}"

    def town(self) -> str:
        """An invented town, one in eight with a word before its name."""
        town = self.name("town")
        if self.between(0, 7):
            return town
        return f"{self.one(self._words['before_town'])} {town}"

    def street(self) -> str:
        """A street of an invented town."""
        return f"{self.town()} {self.one(self._words['road'])}"

    def company(self) -> str:
        """A company named after a family or two."""
        partner = "" if self.between(0, 3) else f"{self.name('last_name')} & "
        return f"{partner}{self.name('last_name')}"

    def date(self) -> str:
        """A day of a month, as in `March 14`."""
        return self.fresh(
            lambda: f"{self.one(self._words['month'])} {self.between(1, 28)}"
        )

    def year(self) -> str:
        """A year of the last century."""
        return self.fresh(lambda: f"{self.between(1904, 1999)}")

    def hour(self) -> str:
        """A time of day, as in `4am` or `9.40pm`."""
        minutes = self.one(["", "", ".15", ".20", ".30", ".40", ".50"])
        return self.fresh(
            lambda: f"{self.between(1, 11)}{minutes}{self.one(['am', 'pm'])}"
        )

    def count(self, low: int, high: int) -> str:
        """A number in figures with a comma at the thousands, as in `1,240`."""
        return self.fresh(lambda: f"{self.between(low, high):,}")

    def percent(self, low: int, high: int) -> str:
        """A share, as in `12 per cent`."""
        return self.fresh(lambda: f"{self.between(low, high)} per cent")

    def rest(self, name: str, low: int, high: int) -> int:
        """What the value `name` leaves of 100, less a number from `low` to `high`."""
        return 100 - int(self.values[name]) - self.between(low, high)

    def millions(self, low: int, high: int) -> str:
        """A large sum, as in `$3.5 million`."""
        return self.fresh(
            lambda: f"${self.between(low, high)}.{self.between(1, 9)} million"
        )

    def thousands(self, low: int, high: int) -> str:
        """A sum in thousands, as in `$240,000`."""
        return self.fresh(lambda: f"${self.between(low, high) * 1000:,}")
