"""Draws invented names, places and figures, never the same one twice in a document."""

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


FIRST_NAMES = _words(
    """
    Ada Adeline Agnes Alma Alistair Amara Ambrose Anika Anselm Antonia Arlo Astrid
    August Aurelia Barnaby Beatrix Benedict Bettina Bram Brigid Bruno Callum Camilla
    Caspar Cecily Cedric Clara Clement Coralie Cormac Cosima Dagmar Damaris Damian
    Daphne Darius Delia Dermot Dilys Dominic Dora Edith Edmund Eileen Elias Elodie
    Elspeth Emeka Emmeline Enid Esme Ewan Fabian Farah Felicity Fergus Fiona Flora
    Florian Frida Gareth Gemma Gideon Gilda Greta Griffin Gwen Hamish Harriet Hattie
    Hector Helga Henrik Hester Hilda Hugo Ida Ignatius Imogen Ines Ingrid Iris Isadora
    Ivo Jasper Jemima Jocelyn Jonas Joyce Judith Julian Juno Kamal Katya Keira Kenji
    Klara Lachlan Lars Laszlo Leander Leonie Lionel Lorna Lucian Ludwig Lydia Mabel
    Magnus Malik Marcel Margot Marius Matilda Maud Merle Milo Minna Mira Morag Nadia
    Nestor Nina Noor Odette Olaf Olive Oscar Otto Pascal Petra Philippa Quentin Ramona
    Rashid Rhoda Roderick Rowan Rupert Sabine Selma Silas Sonia Stellan Sunita Sybil
    Tabitha Tamsin Thaddeus Theo Tilda Tobias Ulrich Una Ursula Vera Viggo Viola Walter
    Wanda Wilfred Willa Xenia Yara Yusuf Zelda Zora
    """
)

_LAST_BEGIN = _words(
    "Ald Bar Bren Cal Dar Drus Ell Far Gor Hal Har Jas Kor Lam "
    "Mar Ned Orl Pel Quar Ros Sal Tal Tar Ul Ver Wal Yar Zel"
)
_LAST_END = _words(
    "bright combe dane fell gard keth lock lund man mont rick son stow vale well worth"
)
LAST_NAMES = tuple(begin + end for begin in _LAST_BEGIN for end in _LAST_END)

_TOWN_BEGIN = _words(
    "Abber Brack Brim Cald Corm Dren Dusk Elver Fald Gar Hask Hollin "
    "Jarn Kell Kil Lusk Marl Merr Nar Orr Pell Quill Rav Sorl Tam Thrum "
    "Ul Vel Wen Yar Zen"
)
_TOWN_END = _words(
    "bury by cross dale ford gate haven holm ley mere moor port stead ton wick"
)
TOWNS = tuple(begin + end for begin in _TOWN_BEGIN for end in _TOWN_END)
_TOWN_BEFORE = _words("Port North South Upper Old Saint")

_DAYS = _words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
_MONTHS = _words(
    "January February March April May June July "
    "August September October November December"
)
_SMALL = _words("two three four five six seven eight nine")


class Draw:
    """A stream of random choices for one document.

    Only `random.Random.random` is used, because it alone is promised to give the same
    numbers in every version of Python.
    """

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)
        self._used: set[str] = set()

    def below(self, stop: int) -> int:
        """A whole number from 0 up to but not including `stop`."""
        return int(self._random.random() * stop)

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def one(self, items: Sequence[Item]) -> Item:
        """One of the items."""
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """The items in a random order (Fisher and Yates)."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order

    def fresh(self, make: Callable[[], str]) -> str:
        """A string that this document has not drawn before."""
        drawn = make()
        while drawn in self._used:
            drawn = make()
        self._used.add(drawn)
        return drawn

    def first_name(self) -> str:
        """A given name."""
        return self.fresh(lambda: self.one(FIRST_NAMES))

    def last_name(self) -> str:
        """A family name."""
        return self.fresh(lambda: self.one(LAST_NAMES))

    def person(self) -> str:
        """A given and a family name."""
        return f"{self.first_name()} {self.last_name()}"

    def town(self) -> str:
        """An invented town, one in eight with a word before its name."""
        town = self.fresh(lambda: self.one(TOWNS))
        return f"{self.one(_TOWN_BEFORE)} {town}" if self.below(8) == 0 else town

    def street(self) -> str:
        """A street of an invented town."""
        return f"{self.town()} {self.one(['Street', 'Road', 'Lane', 'Avenue'])}"

    def company(self, trade: str) -> str:
        """A company named after a family or two."""
        return (
            f"{self.last_name()} & {self.last_name()} {trade}"
            if self.below(4) == 0
            else f"{self.last_name()} {trade}"
        )

    def day(self) -> str:
        """A day of the week."""
        return self.fresh(lambda: self.one(_DAYS))

    def month(self) -> str:
        """A month."""
        return self.one(_MONTHS)

    def date(self) -> str:
        """A day of a month, as in `March 14`."""
        return self.fresh(lambda: f"{self.month()} {self.between(1, 28)}")

    def year(self) -> str:
        """A year of the last century."""
        return self.fresh(lambda: str(self.between(1904, 1999)))

    def hour(self) -> str:
        """A time of day, as in `4am` or `9.40pm`."""
        minutes = self.one(["", "", ".15", ".20", ".30", ".40", ".50"])
        return self.fresh(
            lambda: f"{self.between(1, 11)}{minutes}{self.one(['am', 'pm'])}"
        )

    def count(self, low: int, high: int) -> str:
        """A number in figures with a comma at the thousands, as in `1,240`."""
        return self.fresh(lambda: f"{self.between(low, high):,}")

    def small(self) -> str:
        """A number in words, from two to nine."""
        return self.fresh(lambda: self.one(_SMALL))

    def percent(self, low: int, high: int) -> str:
        """A share, as in `12 per cent`."""
        return self.fresh(lambda: f"{self.between(low, high)} per cent")

    def millions(self, low: int, high: int) -> str:
        """A large sum, as in `$3.5 million`."""
        return self.fresh(
            lambda: f"${self.between(low, high)}.{self.between(1, 9)} million"
        )

    def thousands(self, low: int, high: int) -> str:
        """A sum in thousands, as in `$240,000`."""
        return self.fresh(lambda: f"${self.between(low, high) * 1000:,}")
