"""Whether a line that was written of a sentence is complete and says what it says, by
rules on its words. A small network often stops within a clause, joins the beginning of
one clause to the end of another, or changes a word. English only.

    sentence   On Monday, troops seized the old bridge when the mayor left his town.
    faithful   Troops seized the bridge.            `when` begins another clause
    cut        Troops seized the old.               `bridge` belongs to it
    cut        Bridge when the mayor left.          begins behind `old`
    joined     Troops left his town.                too much between the first two
    changed    Rebels seized the old bridge.        no `rebels` in the sentence
"""

import itertools
import re
from collections.abc import Sequence

from precis.model.rouge import tokenize
from precis.model.text.stop_words import STOP_WORDS

_TOKEN = re.compile(r"\w+|[^\w\s]")
_MIN_WORDS = 4
# A line that ends in such a word was cut.
_OPEN_ENDS = STOP_WORDS - {"it", "them", "him", "her", "me", "us", "you"}
_PUNCTUATION = frozenset('.,;:?!"”“()[]–—…`')
_DETERMINERS = frozenset({"a", "an", "the"})
# What may stand in the sentence behind the last word of a line,
_NEW_CLAUSES = frozenset(
    "after although amid among and as at because before but by despite during "
    "following for from if in into nor on or over since so though through under "
    "unless until when where which while who whom whose with without".split()
)
# and before its first.
_OPENINGS = frozenset(
    "although and because but if or said say saying says since so that though when "
    "where while yet".split()
)
# A clause that begins so needs another one behind a comma.
_SUBORDINATE = frozenset(
    "after although as because before if once since though unless until what when "
    "whenever where while who whoever".split()
)
# Words of a sentence that a line may leave out at one place.
_MAX_SKIPPED = 5
_SAY = frozenset(tokenize("say says said"))
_SPEAKING = frozenset(
    tokenize(
        "according added announced asked claimed confirmed insisted reported said say "
        "stated statement tell told warned wrote write"
    )
)
# Words that a line may have without its sentence.
_FREE = _SAY.union(*(tokenize(word) for word in STOP_WORDS))


def is_complete(line: str, sentence: str) -> bool:
    """Whether a line neither ends nor begins within a clause."""
    written, source = _tokens(line), _tokens(sentence)
    words = [token for token in written if token.isalnum()]
    if len(words) < _MIN_WORDS or words[-1] in _OPEN_ENDS:
        return False
    if words[0] in _SUBORDINATE and "," not in written and "?" not in written:
        return False
    return _is_allowed(source, words[-1], words[-2], -1) and _is_allowed(
        source, words[0], words[1], 1
    )


def keeps_words(written: Sequence[str], source: Sequence[str]) -> bool:
    """Whether a line has no words that its sentence does not have, but for those that
    join words, and puts none side by side that stand in another order or far apart.

    Args:
      written: the words of the line, as ROUGE reads them.
      source: those of the sentence.
    """
    known = frozenset(source)
    if not frozenset(written) <= known | _FREE:
        return False
    if not _SAY.isdisjoint(written) and _SPEAKING.isdisjoint(known):
        return False
    places: dict[str, list[int]] = {}
    for place, word in enumerate(source):
        places.setdefault(word, []).append(place)
    return all(
        any(
            0 < right - left <= 1 + _MAX_SKIPPED
            for left in places[first]
            for right in places[second]
        )
        for first, second in itertools.pairwise(written)
        if first in places and second in places
    )


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.casefold().replace("’", "'"))


def _is_allowed(source: list[str], word: str, neighbour: str, side: int) -> bool:
    """Whether a line may have a word of its sentence as its last (side -1) or its first
    (side 1).

    Args:
      source: the tokens of the sentence.
      word: the word.
      neighbour: that on the named side of it in the line; it tells which of several
          equal words of the sentence is meant.
      side: of the neighbour.
    """
    places = [place for place, token in enumerate(source) if token == word]
    near = [
        place
        for place in places
        if 0 <= place + side < len(source) and source[place + side] == neighbour
    ]
    check = _may_end if side < 0 else _may_begin
    return not places or any(check(source, place) for place in near or places)


def _may_end(source: list[str], place: int) -> bool:
    if place + 1 == len(source):
        return True
    token = source[place + 1]
    if token == "'":  # closes a quotation, or opens `'s`
        return place + 2 == len(source) or source[place + 2] != "s"
    return token in _PUNCTUATION or token in _NEW_CLAUSES


def _may_begin(source: list[str], place: int) -> bool:
    while place > 0 and source[place - 1] in _DETERMINERS:
        place -= 1
    if place == 0:
        return True
    token = source[place - 1]
    return token in _PUNCTUATION or token in _OPENINGS
