"""The sentences of an article, as offsets into the article as it was read.

article     "(CNN) -- Rain fell.  It was cold.\\r\\nNobody came."
sentences             [9, 19)     [21, 33)     [35, 47)
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from sentencex import get_sentence_boundaries


class Sentence(NamedTuple):
    """A sentence and where it stands: `article[start:end] == text`."""

    start: int
    end: int
    text: str


_MAX_PIECE_CHARACTERS = 100_000
_WORD_CHARACTER = re.compile(r"[^\W_]")


def split_sentences(article: str, *, start: int = 0) -> list[Sentence]:
    """The sentences of a text, in order, as offsets into it.

    A line break always ends a sentence; within a line sentencex cuts, and the rules of
    `_cuts` place quotation marks. Text without a letter or digit is no sentence: it
    belongs to the sentence before it on its line, or else to the sentence after it; a
    line of such characters has none. A line beyond 100,000 characters is first cut at
    white space, so that the work stays in proportion to the text.

    Args:
      article: the text.
      start: the first character that belongs to a sentence.
    """
    found = []
    for line in article[start:].splitlines(keepends=True):
        for piece in _pieces(line):
            for left, right in _sentences_of_piece(piece):
                found.append(Sentence(start + left, start + right, piece[left:right]))
            start += len(piece)
    return found


def _pieces(line: str) -> Iterator[str]:
    """The line in pieces of at most 100,000 characters, cut behind white space where
    there is any.
    """
    start = 0
    while len(line) - start > _MAX_PIECE_CHARACTERS:
        end = start + _MAX_PIECE_CHARACTERS
        space = max(line.rfind(white, start, end) for white in " \t\xa0\u3000")
        end = space + 1 if space >= start else end
        yield line[start:end]
        start = end
    yield line[start:] if start else line


def _sentences_of_piece(piece: str) -> list[tuple[int, int]]:
    """Start and end of every sentence, without the white space around it; each holds a
    letter or digit.
    """
    found: list[tuple[int, int]] = []
    waiting = -1  # where wordless characters start that belong to the next sentence
    for start, end in _cuts(piece):
        chunk = piece[start:end]
        bare = chunk.strip()
        if not bare:
            continue
        start += len(chunk) - len(chunk.lstrip())
        end = start + len(bare)
        if not _WORD_CHARACTER.search(bare):
            if found:
                found[-1] = (found[-1][0], end)
            elif waiting < 0:
                waiting = start
            continue
        found.append((start if waiting < 0 else waiting, end))
        waiting = -1
    return found


_MARKS = "\"'“”„«»‘’`()[]"
_DIRECTED = dict.fromkeys("“„«‘`([", True) | dict.fromkeys("”»’)]", False)  # True opens
_HIDDEN = str.maketrans(
    dict.fromkeys('"“”„«»`()[]\xa0\n\r', " ") | dict.fromkeys("•▪●‣◦", "-")
)
_SINGLE_QUOTE = re.compile(r"(?<!\S)['‘’]|['‘’](?!\S)")
_MAX_GAP_CHARACTERS = 32
_SURROGATE = re.compile("[\ud800-\udfff]")


def _hide_marks(piece: str) -> str:
    """The text, as long as before, with spaces for quotation marks and brackets,
    hyphens for apostrophes and bullets.

    sentencex takes what lies between two marks, or between two items of a list, for one
    sentence. News quotes run over several, and one mark that is never closed would join
    the rest of the article. Nor does it end a sentence at a question mark of tokenised
    lower-case text, so ` ? ` is shown to it as ` . `.
    """
    hidden = piece.translate(_HIDDEN)
    if "'" in hidden or "’" in hidden or "‘" in hidden:
        hidden = (
            _SINGLE_QUOTE.sub(" ", hidden)
            .replace("'", "-")
            .replace("’", "-")
            .replace("‘", "-")
        )
    hidden = hidden.replace(" ? ", " . ").replace(" ! ", " . ")
    return hidden if hidden.isascii() else _SURROGATE.sub("\ufffd", hidden)


def _cuts(piece: str) -> Iterator[tuple[int, int]]:
    """Cuts a piece into chunks that join up to it again, one sentence each.

    A closing quotation mark or bracket stays with the sentence it ends. A question or
    exclamation mark before it, or a bracket, ends no sentence where the text goes on in
    lower case: `"Why?" she asked.` is one.
    """
    hidden = _hide_marks(piece)
    start = 0
    quotes = _QuoteParity(piece)
    for boundary in get_sentence_boundaries("en", hidden):
        end = boundary["end_index"]
        if end >= len(piece):
            break
        stop = boundary["start_index"] + len(boundary["text"].rstrip())
        gap = piece[stop : min(end, stop + _MAX_GAP_CHARACTERS)]
        if not gap.isspace():
            end = stop + _closing_length(gap, stop, quotes)
            within = piece[stop - 1] in "?!" or ")" in gap
            if (
                within
                and piece[stop:end].strip()
                and piece[end : end + _MAX_GAP_CHARACTERS].lstrip()[:1].islower()
            ):
                continue
        yield start, end
        start = end
    yield start, len(piece)


class _QuoteParity:
    """Counts the marks that stand alone between spaces, as tokenised text has them,
    from left to right.
    """

    def __init__(self, text: str) -> None:
        self._text = f" {text}"
        self._seen = {
            '"': (0, 0),
            "'": (0, 0),
        }  # mark -> (position read up to, marks before it)

    def opens(self, mark: str, position: int) -> bool:
        """Whether the mark at that position is the first of a pair."""
        read, count = self._seen[mark]
        count += self._text.count(f" {mark} ", read, position + 1)
        self._seen[mark] = (position, count)
        return count % 2 == 0


def _closing_length(gap: str, position: int, quotes: _QuoteParity) -> int:
    """How much of the marks and spaces between two sentences belongs to the first.

    gone." She      `" `    the mark touches the first sentence: closing
    gone. "She      ` "`    it touches the second: opening
    gone . " she    ` " `   it stands alone: closing if another was opened before
    """
    for index, mark in enumerate(gap):
        if mark not in _MARKS:
            continue
        touches_left = not gap[:index].strip(_MARKS)
        touches_right = not gap[index:].strip(_MARKS)
        if mark in _DIRECTED:
            opens = _DIRECTED[mark]
        elif touches_left != touches_right:
            opens = touches_right
        else:
            opens = quotes.opens(mark, position + index)
        if opens:
            return index
    return len(gap)
