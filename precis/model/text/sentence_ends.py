"""Where sentences end in languages other than English.

    Der 2. Weltkrieg endete 1945. Das 20. Jh. war z. B. „anders!“ Heute ...
                                  ^                               ^

The abbreviations of each language, and other data, are in `sentence_rules.toml`.
"""

import functools
import re
import tomllib
from collections.abc import Iterator
from importlib import resources
from typing import NamedTuple

_MARKS = "\"'“”„«»‘’`()\\[\\]"
_GAP = re.compile(rf"[\s{_MARKS}]*+")
# Up to the first word of the next sentence.
_LEAD = re.compile(rf"[\s{_MARKS}‚‹›「『（¿¡*•–—-]*+")
_HARD = "。｡！？।॥۔؟։።፧፨။។៕།༎᠃"  # A space may be missing behind these full stops.
_HAN = "\u3040-\u9fff"  # and kana
_END = (
    # A full stop that needs no space, with the marks that it closes.
    rf"(?P<hard>(?:(?!។ល។)(?<!។ល)[{_HARD}]|(?<=[{_HAN}])．|፡፡)++(?![》〉])"
    rf"[.!?…]*+[”’」』）】]*+|(?<![.!?…])[.!?]++(?=[\"”’」』]*+[{_HAN}])[”’」』]*+"
    rf"|(?<=[{_HAN}])\.(?=[^\W\d_]))"
    # A full stop before a space.
    rf"|(?<![.!?…])[.!?…%s]++(?:\[\d+\])*+(?=[{_MARKS}]*+\s)"
    # A full stop between two letters (`gone.She`).
    r"|(?P<bare>(?:(?<=[^\W\d_]{3})|(?<=\d{4})|(?<=[\s\"”»)%%])|(?<=[ऀ-෿]{4})|(?<=है)"
    rf"|(?<=हैं))[.!?…]++(?=[{_MARKS} •–—-]*+[^\W\d_]))"
)
_CLOSED = re.compile('["”’」』]')
_REST_OF_QUOTE = re.compile("[^「」]{0,200}」")
_MAX_WORD = 24  # characters
_LAST_WORDS = re.compile(  # the last word, and single letters before it: `т. д`
    r"(?:\b[^\W\d_]{1,2}\. ?)*+[^\s\"'“”„‚‘’«»‹›()\[\]]*+\Z"
)
_LETTERS = re.compile(r"[^\s\d.]{1,4}(?:\.-?[^\s\d.]{1,4})+")  # `S.p.A`
_NUMBER = re.compile(r"(?:.*(?:/|\.[-–]))?(?:\d{1,3}|[IVXLC]{1,7})")
_DATE = re.compile(r"\d{1,2}\.(?!\d)")
_WORD = re.compile(r"[\w'’-]*")

# Thai and Lao have no full stop: a sentence ends at a space. Most spaces are within a
# sentence, around names and numbers. A space counts if the sentence has this many
# characters, ...
_MIN_SENTENCE = 60
# ... and, times the text to the next space on either side, so many: 20 characters of
# text end a sentence of 60, and 5 a sentence of 240.
_MIN_PRODUCT = 1200
_THAI = re.compile("[ก-ฮะ-ฺเ-ๅ็-๎ກ-ຮະ-ໄ່-ໍໜ-ໟ]")


class _Rules(NamedTuple):
    """The data of a language; see `sentence_rules.toml`."""

    never: frozenset[str]
    may_end: frozenset[str]
    ends: frozenset[str]
    starters: frozenset[str]
    stop: re.Pattern[str]
    end: re.Pattern[str]
    goes_on: re.Pattern[str] | None
    has_ordinals: bool


@functools.cache
def _rules(language: str) -> _Rules:
    file = resources.files("precis.model.text").joinpath("sentence_rules.toml")
    data = tomllib.loads(file.read_text("utf-8"))
    names = ["common", language, *data["same_as"].get(language, "").split()]

    def joined(key: str) -> str:
        return " ".join(data.get(name, {}).get(key, "") for name in names).strip()

    keys = ("never", "may_end", "ends", "starters")
    return _Rules(
        *(frozenset(joined(key).split()) for key in keys),
        stop=re.compile(f"[.!?…．፡{_HARD}{joined('stops')}]"),
        end=re.compile(_END % joined("stops")),
        goes_on=re.compile(joined("goes_on")) if joined("goes_on") else None,
        has_ordinals=language in data["ordinals"].split(),
    )


def sentence_ends(piece: str, language: str) -> Iterator[tuple[int, int]]:
    """Finds the ends of the sentences in a piece of a line.

    Yields:
      The index after the full stop, and the index after the spaces, quotation marks
      and brackets that follow it.
    """
    rules = _rules(language)
    if language in ("th", "lo"):
        yield from _ends_at_spaces(piece, rules)
        return
    has_capitals = not piece.islower()
    start = stop = quotes = counted = 0
    for place in rules.stop.finditer(piece):
        match = rules.end.match(piece, place.start())
        if place.start() < stop or not match:
            continue
        stop = match.end()
        if piece.startswith('"', stop) and not piece[stop + 1 : stop + 2].isspace():
            # The mark closes a quotation that another mark opened.
            quotes += piece.count('"', counted, stop)
            counted = stop
            stop += quotes % 2
        end = _end_of(_GAP, piece, stop)
        first = _end_of(_LEAD, piece, end)
        after = piece[first : first + _MAX_WORD]
        before = piece[max(start, match.start() - _MAX_WORD) : match.start()]
        if not (
            after[:1] in (",", ";", ":")
            or (has_capitals and _is_small(after) and match[0][0] not in _HARD)
            or (match["bare"] and not _may_touch(before, after))
            or (match[0] in (".", "۔") and _is_abbreviation(before, after, rules))
            or (
                rules.goes_on and _quote_goes_on(piece, match, stop, end, rules.goes_on)
            )
        ):
            yield stop, end
            start = end


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start


def _is_small(text: str) -> bool:
    """Whether a text begins with a small letter. Georgian has no capitals there."""
    return text[:1].islower() and not "ა" <= text[0] <= "ჿ"


def _may_touch(before: str, after: str) -> bool:
    """Whether a sentence may end before a letter with no space: `gone.She`."""
    if after[0].isupper():
        return not before[-1:].isupper()
    return not _is_small(after) and not before[-1:].isascii()


def _is_abbreviation(before: str, after: str, rules: _Rules) -> bool:
    """Whether a point belongs to the word before it and ends no sentence.

    Args:
      before: the end of the sentence so far, without the point.
      after: the text after the point, from the first letter or digit.
      rules: the data of the language.
    """
    match = _LAST_WORDS.search(before)
    words = match[0] if match else ""
    word = words.rpartition(" ")[2]
    small = word.casefold()
    names = {words.casefold().replace(" ", ""), small, small.rpartition("-")[2]}
    if not word or not names.isdisjoint(rules.ends):
        return False
    if names.isdisjoint(rules.may_end):
        if not names.isdisjoint(rules.never) or (
            word.isdecimal() and _DATE.match(after)
        ):
            return True
        is_letter = len(word) == 1 and word.isalpha() and word < "\u3000"
        if is_letter and not _is_small(word) and word not in "IVX":
            return True  # the initial of a name
        # An ordinal, or the number of an item in a list.
        is_number = rules.has_ordinals or before.strip() == word
        is_number = is_number and bool(_NUMBER.fullmatch(word))
        if not (is_number or is_letter or _LETTERS.fullmatch(small)):
            return False
    following = _WORD.match(after)
    return not following or following[0].casefold() not in rules.starters


def _quote_goes_on(
    piece: str, match: re.Match[str], stop: int, end: int, goes_on: re.Pattern[str]
) -> bool:
    """Whether the sentence goes on after a quotation that ends here, or ends later."""
    end = stop if match["hard"] else end
    if _CLOSED.search(piece, match.start(), end):
        return bool(goes_on.match(piece, end))
    rest = _REST_OF_QUOTE.match(piece, end)
    return bool(rest and goes_on.match(piece, rest.end()))


def _ends_at_spaces(piece: str, rules: _Rules) -> Iterator[tuple[int, int]]:
    """The same for Thai and Lao."""
    spaces = [match.span() for match in re.finditer(r"\s+", piece)]
    starts = [0, *(end for _, end in spaces)]
    stops = [*(stop for stop, _ in spaces[1:]), len(piece)]
    never = tuple(rules.never)
    start = 0
    for before, (stop, end), after in zip(starts, spaces, stops, strict=False):
        if piece[stop - 1] in "?!" or (
            stop - start >= _MIN_SENTENCE
            and (stop - start) * min(stop - before, after - end) >= _MIN_PRODUCT
            and _THAI.match(piece[stop - 1])
            and not piece.endswith(never, start, stop)
            and _THAI.match(piece, end + piece.startswith(('"', "“"), end))
            and not (rules.goes_on and rules.goes_on.match(piece, end))
        ):
            yield stop, end
            start = end
