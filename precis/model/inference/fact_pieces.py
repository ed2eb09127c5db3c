"""Which pieces of a vocabulary spell numbers, dates and names: the table that
`search.copy_constraint` needs.

The word lists are the same as in `quality.facts`, so that the search and the quality
flags agree on what a fact is. Both are for English only.
"""

from collections.abc import Sequence

import numpy as np

from precis.model.quality.dates import AMBIGUOUS_MONTHS, MONTHS, WEEKDAYS
from precis.model.quality.names import NO_NAMES, OPENINGS
from precis.model.quality.numerals import RARELY_NUMBERS, SCALES, SMALL, TENS
from precis.model.search import copy_constraint
from precis.model.search.config import NAMES, NUMBERS, SpecialTokens
from precis.model.tokenization.folder import AnyTokenizer
from precis.model.tokenization.wordpiece import JOINER, LINE_BREAK, SPACE

_NUMBER_WORDS = frozenset([*SMALL, *TENS, *SCALES]) - RARELY_NUMBERS
_DATE_WORDS = frozenset([*MONTHS, *WEEKDAYS])
_CONNECTORS = frozenset(".,:-–/")
_SENTENCE_ENDS = frozenset(".?!:\"'“”‘’`([" + LINE_BREAK)


def fact_pieces(
    tokenizer: AnyTokenizer, special: SpecialTokens, kinds: Sequence[str]
) -> copy_constraint.PieceTable:
    """Makes the table of a vocabulary.

    Args:
      tokenizer: the tokenizer of sources and summaries.
      special: the special tokens; a sentence begins after the start token and prefix.
      kinds: `numbers`, which include dates, and `names`.
    """
    pieces = [tokenizer.piece(token) for token in range(tokenizer.vocabulary_size)]
    has_spaces = any(piece.startswith(SPACE) for piece in pieces)
    table = copy_constraint.PieceTable(
        classes=np.zeros(len(pieces), np.int32),
        marks=np.zeros(len(pieces), np.int32),
        capitalised=np.full(len(pieces), -1, np.int32),
    )
    ids = {piece: token for token, piece in reversed(list(enumerate(pieces)))}
    beginnings = _number_beginnings(tokenizer) if NUMBERS in kinds else frozenset()
    no_text = {special.start_id, *special.end_ids, special.pad_id, *special.prefix}
    for token, piece in enumerate(pieces):
        text = piece.removeprefix(JOINER).strip(SPACE)
        if token in no_text or text[-1:] in _SENTENCE_ENDS:
            table.marks[token] |= copy_constraint.OPENS
        if token in no_text or not text:
            continue
        word = text.casefold()
        is_behind_space = has_spaces and piece.startswith(SPACE)
        continues = piece.startswith(JOINER) or (has_spaces and not is_behind_space)
        has_digit = any(character.isdigit() for character in text)
        is_whole = False
        if text[0].isalnum():
            kind, is_whole = _classify(text, kinds)
            if token in beginnings:
                kind = copy_constraint.FACT
            if continues and has_digit and kind != copy_constraint.FREE:
                kind = copy_constraint.INNER_NUMBER
            elif continues:
                is_name = kind in (copy_constraint.FACT, copy_constraint.OPENING)
                kind = copy_constraint.INNER_NAME if is_name else copy_constraint.INNER
            table.classes[token] = kind
        is_number = has_digit or word in _NUMBER_WORDS
        for mark, holds in (
            (copy_constraint.WHOLE, is_whole),
            (copy_constraint.CONNECTS, text in _CONNECTORS and not is_behind_space),
            (copy_constraint.WORD, text[-1].isalnum()),
            (copy_constraint.NUMBER, NUMBERS in kinds and is_number),
            (
                copy_constraint.SCALE,
                NUMBERS in kinds and word in SCALES and not continues,
            ),
        ):
            table.marks[token] |= mark * holds
        if text[0].islower() and not piece.startswith(JOINER):
            capital = piece.replace(text[0], text[0].upper(), 1)
            table.capitalised[token] = ids.get(capital, -1)
    return table


def _classify(text: str, kinds: Sequence[str]) -> tuple[int, bool]:
    """The class of a piece that begins a word, and whether it is a whole word that need
    not be in the source.
    """
    word = text.casefold()
    is_capital = text[0].isupper()
    if NUMBERS in kinds:
        if any(character.isdigit() for character in text) or word in _NUMBER_WORDS:
            return copy_constraint.FACT, False
        if word in _DATE_WORDS and (is_capital or word not in AMBIGUOUS_MONTHS):
            return copy_constraint.FACT, False
    if NAMES not in kinds or not is_capital:
        return copy_constraint.FREE, False
    if word in NO_NAMES:
        return copy_constraint.FREE, True
    return (
        copy_constraint.OPENING if word in OPENINGS else copy_constraint.FACT
    ), False


def _number_beginnings(tokenizer: AnyTokenizer) -> frozenset[int]:
    """The first pieces of number words that consist of several pieces."""
    words = sorted(_NUMBER_WORDS)
    encoded = tokenizer.encode_parts([f" {word}" for word in words])
    return frozenset(int(ids[0]) for ids in encoded if len(ids) > 1)
