"""Attention weights of whole words, from those of the pieces that a tokenizer cuts.

pieces   ▁Rain  ▁fe  ##ll  ▁on  ▁Os  ##lo  .  [END]     WordPiece
pieces   ▁Rain  ▁fe  ll    ▁on  ▁Os  lo    .  </s>      SentencePiece
pieces   rain   fe   ##ll  on   os   ##lo  .  [SEP]     BERT, which marks no spaces
words    Rain   fell       on   Oslo       .  [END]
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from precis.model.inference.attention import HeadWeights
from precis.model.tokenization.wordpiece import SPACE

_CONTINUED = "##"
_SPACE_ALONE = "␣"
# Tokens that are no part of a text, such as [END], <s> and <extra_id_0>.
_SPECIAL = re.compile(r"\[[A-Z]+\d*\]|<[^<>\s]+>")
_WORD_CHARACTER = re.compile(r"\w")


class Word(NamedTuple):
    """A word of a text.

    Attributes:
      text: without the marks of its pieces.
      begin, end: the half-open range of its pieces.
    """

    text: str
    begin: int
    end: int


def group_pieces(pieces: Sequence[str]) -> list[Word]:
    """The words of some pieces, in order; each piece belongs to one.

    Punctuation behind a word is a word, and so is a special token.
    """
    starts = [*_starts(pieces), len(pieces)]
    words = []
    for begin, end in zip(starts, starts[1:], strict=False):
        split = _end_of_word(pieces, begin, end)
        words += [_word(pieces, begin, split)]
        if split < end:
            words += [_word(pieces, split, end)]
    return words


def _starts(pieces: Sequence[str]) -> Iterator[int]:
    """The places of the pieces that stand at the beginning or behind a space."""
    marks_spaces = any(piece.startswith(SPACE) for piece in pieces)
    was_special = True
    for place, piece in enumerate(pieces):
        is_special = _SPECIAL.fullmatch(piece) is not None
        if marks_spaces:
            is_first = piece.startswith(SPACE)
        else:
            is_first = not _is_continued(piece)
        if is_first or is_special or was_special:
            yield place
        was_special = is_special


def _end_of_word(pieces: Sequence[str], begin: int, end: int) -> int:
    """Where the punctuation behind a word begins; the end where there is none."""
    split = end
    while split > begin and not _WORD_CHARACTER.search(_text(pieces[split - 1])):
        split -= 1
    return end if split == begin else split


def _is_continued(piece: str) -> bool:
    return piece.startswith(_CONTINUED) and len(piece) > len(_CONTINUED)


def _text(piece: str) -> str:
    """The text of a piece without its mark."""
    if _is_continued(piece):
        return piece.removeprefix(_CONTINUED)
    return piece.removeprefix(SPACE)


def _word(pieces: Sequence[str], begin: int, end: int) -> Word:
    text = "".join(_text(piece) for piece in pieces[begin:end])
    return Word(text or _SPACE_ALONE, begin, end)


def is_word(text: str) -> bool:
    """Whether a word has a letter or digit and is no special token."""
    return bool(_WORD_CHARACTER.search(text)) and not _SPECIAL.fullmatch(text)


def weights_of_words(attention: HeadWeights) -> HeadWeights:
    """The weights of whole words.

    A word is read with the sum of the weights of its pieces, and reads with the mean of
    those of its pieces, so that each row sums to one as before.
    """
    rows, columns = group_pieces(attention.rows), group_pieces(attention.columns)
    weights = attention.weights  # [H, T, S]
    weights = np.add.reduceat(weights, [word.begin for word in columns], axis=2)
    weights = np.add.reduceat(weights, [word.begin for word in rows], axis=1)
    lengths = np.array([word.end - word.begin for word in rows], weights.dtype)
    return attention._replace(
        weights=weights / lengths[:, None],
        rows=[word.text for word in rows],
        columns=[word.text for word in columns],
        unit="words",
    )


def mean_of_heads(attention: HeadWeights) -> HeadWeights:
    """The mean of all heads as one."""
    return attention._replace(weights=attention.weights.mean(axis=0, keepdims=True))
