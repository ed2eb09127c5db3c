"""Which piece may follow others if numbers and names are copied from a source: in plain
Python, on the text of the pieces, written from the rules at the head of
`precis.model.search.copy_constraint`.
"""

from collections.abc import Sequence
from typing import Literal

from support.plain_search import BOUND

# Every kind of piece, by hand: what it is as a fact, and how it is attached.
NUMBER, NAME, OPENING, WHOLE, PLAIN = "number", "name", "opening", "whole", "plain"
KINDS = {
    "[PAD]": PLAIN,
    "[UNK]": PLAIN,
    "[START]": PLAIN,
    "[END]": PLAIN,
    "▁paid": PLAIN,
    "▁ker": PLAIN,
    "▁Ker": NAME,
    "##ry": PLAIN,
    "##Ry": NAME,
    "▁The": WHOLE,
    "▁New": OPENING,
    "▁new": PLAIN,
    "▁4": NUMBER,
    "4": NUMBER,
    "##5": NUMBER,
    ".": PLAIN,
    "▁million": NUMBER,
    "Ker": NAME,
    "▁": PLAIN,
}
VOCABULARY = tuple(KINDS)
SENTENCE_ENDS = (".", "[START]")


def continues_word(piece: str) -> bool:
    """Whether a piece is read on where the one before it ended."""
    return piece.startswith("##") or piece in ("4", "Ker")


def ends_word(piece: str) -> bool:
    return piece[-1].isalnum()


def is_number(piece: str) -> bool:
    return KINDS[piece] == NUMBER


def joined_places(source: Sequence[str]) -> set[int]:
    """The places of a source whose piece goes on with the unit before."""
    joined: set[int] = set()
    for place in range(1, len(source)):
        before, piece = source[place - 1], source[place]
        behind = source[place + 1] if place + 1 < len(source) else ""
        is_inside = piece == "." and ends_word(before) and continues_word(behind)
        follows_inside = before == "." and place - 1 in joined and continues_word(piece)
        if (
            (continues_word(piece) and ends_word(before))
            or is_inside
            or follows_inside
            or (piece == "▁million" and is_number(before))
        ):
            joined.add(place)
    return joined


def may_follow(
    written: Sequence[str], piece: str, source: Sequence[str]
) -> bool | Literal["bound"]:
    """Whether a piece may be written behind others, the start token included; BOUND
    where only such a piece may be, because a unit is not complete.
    """
    joined = joined_places(source)
    starts = {place for place in range(len(source)) if place not in joined}
    ends = {place for place in range(len(source)) if place + 1 not in joined}
    unit, needs_no_end, fact_ended = last_unit(written, source)
    opens = written[-1] in SENTENCE_ENDS
    may_end = unit is None or needs_no_end or bool(unit & ends)
    following = {place + 1 for place in unit or ()}
    if any(
        source[place] == piece for place in following & joined & set(range(len(source)))
    ):
        return True if may_end else BOUND
    if not may_end:
        return False
    if continues_word(piece):
        if unit is not None:
            return False
        if ends_word(written[-1]) and KINDS[piece] == NAME:
            return True
        if KINDS[piece] == PLAIN:
            return True
    elif KINDS[piece] in (PLAIN, WHOLE) or (KINDS[piece] == OPENING and opens):
        return True
    begins = {
        place
        for place in starts
        if source[place] == piece and (not fact_ended or place in following)
    }
    if opens:
        begins |= {place for place in starts if capitalised(source[place]) == piece}
    return bool(begins)


def last_unit(
    written: Sequence[str], source: Sequence[str]
) -> tuple[set[int] | None, bool, bool]:
    """What was written last.

    Returns:
      The places that the last unit may have been copied from, None outside of a unit;
      whether it may end wherever the source ends its own; whether it was a fact.
    """
    joined = joined_places(source)
    starts = {place for place in range(len(source)) if place not in joined}
    ends = {place for place in range(len(source)) if place + 1 not in joined}
    unit: set[int] | None = None
    needs_no_end = False
    fact_ended = False
    for number, last in enumerate(written):
        opens = number == 0 or written[number - 1] in SENTENCE_ENDS
        behind_word = number > 0 and ends_word(written[number - 1])
        following = {place + 1 for place in unit or ()}
        goes_on = {place for place in following & joined if source[place] == last}
        kind = KINDS[last]
        if unit is not None and (
            continues_word(last) or last == "." or (last == "▁million" and goes_on)
        ):
            unit, needs_no_end = (
                goes_on,
                last == "." and (needs_no_end or bool(unit & ends)),
            )
            fact_ended = last != "."
            continue
        is_free = kind == WHOLE or (kind == OPENING and opens)
        if kind == PLAIN or (continues_word(last) and behind_word):
            unit, needs_no_end, fact_ended = None, False, False
            continue
        begins = {
            place
            for place in starts
            if source[place] == last or (opens and capitalised(source[place]) == last)
        }
        if fact_ended and not is_free:
            begins &= following
        unit, needs_no_end, fact_ended = begins, is_free, not is_free
    return unit, needs_no_end, fact_ended


def capitalised(piece: str) -> str:
    """The same piece with a capital, where the vocabulary has it."""
    return {"▁ker": "▁Ker", "▁new": "▁New"}.get(piece, "")
