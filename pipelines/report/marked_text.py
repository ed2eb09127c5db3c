"""Texts cut into pieces, each with the marks that it has on the page.

    text     Rain fell on Monday. Three roads closed.
    spans    [0, 20) lead     [0, 20) line 1
    pieces   ["Rain fell on Monday.", ["lead", "line 1"]]  [" Three roads closed.", []]

So the page needs no offsets: those of Python count characters, and those of a browser
count UTF-16 units.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

Piece = tuple[str, list[str]]


class Span(NamedTuple):
    """A part of a text with a mark: [start, end) in characters."""

    start: int
    end: int
    mark: str


def cut(text: str, spans: Iterable[Span]) -> list[Piece]:
    """The pieces of a text, which joined are the text again.

    Spans may overlap. Those that lie outside the text are left out.

    Args:
      text: the whole text.
      spans: in any order.
    """
    spans = sorted(
        Span(max(0, span.start), min(span.end, len(text)), span.mark)
        for span in spans
        if span.start < span.end and span.start < len(text)
    )
    places = sorted({0, len(text), *(place for span in spans for place in span[:2])})
    pieces: list[Piece] = []
    open_spans: list[Span] = []
    position = 0
    for start, end in zip(places, places[1:], strict=False):
        open_spans = [span for span in open_spans if span.end > start]
        while position < len(spans) and spans[position].start == start:
            open_spans.append(spans[position])
            position += 1
        marks = list(dict.fromkeys(span.mark for span in open_spans))
        pieces.append((text[start:end], marks))
    return pieces


def find_terms(text: str, terms: Sequence[str], mark: str) -> list[Span]:
    """Where a text writes some terms, whatever their case and what joins their words.

    A row holds numbers in lower case and without their unit, so that `4.5 million` is
    found in `$4.5 million` and `1200` in `1,200`.

    Args:
      text: the text.
      terms: numbers, dates or names as a row holds them.
      mark: of the spans.
    """
    spans = []
    for term in terms:
        words = re.findall(r"\w+(?:[.,]\w+)*", term)
        # Of `4.5 million` the text may write `4.5m`.
        for wanted in (words, words[:1]):
            matches = list(_matches(text, wanted))
            if matches:
                spans += [Span(*match.span(), mark) for match in matches]
                break
    return spans


def _matches(text: str, words: Sequence[str]) -> Iterable[re.Match[str]]:
    if not words:
        return []
    pattern = r"\W{1,3}".join(map(_word_pattern, words))
    return re.finditer(
        rf"(?<!\w)(?<!\d[.,]){pattern}(?!\d|(?<=\D)\w)", text, re.IGNORECASE
    )


def _word_pattern(word: str) -> str:
    if word.isdecimal():
        return ",?".join(word)
    return re.escape(word)
