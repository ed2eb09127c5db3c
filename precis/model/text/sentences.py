"""The sentences of an article, as offsets into the article as it was read.

article     "(CNN) -- Rain fell.  It was cold.\\r\\nNobody came."
sentences             [9, 19)     [21, 33)     [35, 47)

The lines of a wrapped paragraph are read as a single line (`wrapping`).
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sentencex import get_sentence_boundaries  # pyright: ignore[reportAttributeAccessIssue]  # Made in Rust.

from precis.model.text.language import ENGLISH
from precis.model.text.sentence_ends import sentence_ends
from precis.model.text.wrapping import flat, shown_line


class Sentence(NamedTuple):
    """A sentence and its offsets in the article: `article[start:end] == text`, except
    that line breaks of a wrapped paragraph are spaces in the text.
    """

    start: int
    end: int
    text: str


_MAX_PIECE_CHARACTERS = 100_000
_WORD_CHARACTER = re.compile(r"[^\W_]")


def split_sentences(
    article: str,
    *,
    start: int = 0,
    language: str = ENGLISH,
    lines: Iterable[str] | None = None,
) -> list[Sentence]:
    """Splits a text into sentences, in order, with their offsets.

    The end of a line ends a sentence. Within a line sentencex finds the boundaries, in
    other languages than English `sentence_ends`, and `_cuts` moves them by the rules
    for quotation marks. Text without a letter or digit belongs to the sentence before
    it on the line, or else to the sentence after it; a line with no letter or digit has
    no sentence. A line of more than 100,000 characters is first cut at white space, so
    that the time stays proportional to the length.

    Args:
      article: the text.
      start: the first character to read.
      language: the language, whose abbreviations do not end a sentence.
      lines: the lines of the text after `start`, from `unwrapped_lines`; by default
        its lines as they are.
    """
    sentences = []
    for line in article[start:].splitlines(keepends=True) if lines is None else lines:
        is_plain = line.lstrip()[:1] != ">" and len(line.splitlines()) < 2
        for piece in _pieces(line if is_plain else flat(line)):
            for left, right in _sentences_of_piece(piece, language):
                text = article[start + left : start + right]
                if not is_plain and len(text.splitlines()) > 1:
                    text = shown_line(text)
                sentences.append(Sentence(start + left, start + right, text))
            start += len(piece)
    return sentences


def _pieces(line: str) -> Iterator[str]:
    """Cuts a line into pieces of at most 100,000 characters, if possible at spaces."""
    start = 0
    while len(line) - start > _MAX_PIECE_CHARACTERS:
        end = start + _MAX_PIECE_CHARACTERS
        space = max(line.rfind(blank, start, end) for blank in " \t\xa0\u3000")
        end = space + 1 if space >= start else end
        yield line[start:end]
        start = end
    yield line[start:] if start else line


def _sentences_of_piece(piece: str, language: str) -> list[tuple[int, int]]:
    """The start and end of each sentence, without the white space around it. Each
    sentence has a letter or digit.
    """
    bounds: list[tuple[int, int]] = []
    # Where the marks begin that belong to the next sentence; -1 if there are none.
    marks_start = -1
    for start, end in _cuts(piece, language):
        chunk = piece[start:end]
        stripped = chunk.strip()
        if not stripped:
            continue
        start += len(chunk) - len(chunk.lstrip())
        end = start + len(stripped)
        if not (stripped[0].isalnum() or _WORD_CHARACTER.search(stripped)):
            if bounds:
                bounds[-1] = (bounds[-1][0], end)
            elif marks_start < 0:
                marks_start = start
            continue
        bounds.append((start if marks_start < 0 else marks_start, end))
        marks_start = -1
    return bounds


_MARKS = "\"'“”„«»‘’`()[]"
_OPENS = {**dict.fromkeys("“„«‘`([", True), **dict.fromkeys("”»’)]", False)}
# For `str.replace`: `translate` takes a hundred times as long if a text has a character
# beyond ASCII.
_HIDDEN = {**dict.fromkeys('"“”„«»`()[]\xa0\n\r', " "), **dict.fromkeys("•▪●‣◦", "-")}
# A mark before or after a space. The pattern begins with the plain mark, for speed.
_SINGLE_QUOTE = re.compile(r"'(?:(?<!\S.)|(?!\S))")
_MAX_GAP_CHARACTERS = 32
_SURROGATE = re.compile("[\ud800-\udfff]")


def _hide_marks(piece: str) -> str:
    """Replaces marks by other characters, for sentencex; the length stays the same.

        He said "Go. Now." Isn't it ? yes
        He said  Go. Now.  Isn-t it . yes

    sentencex treats the text between two quotation marks, or between two items of a
    list, as one sentence. But a quotation may have several sentences, and a mark that
    is never closed would join the rest of the article. So quotation marks and brackets
    become spaces, apostrophes and bullets hyphens. In tokenised lower-case text
    sentencex does not end a sentence at a question mark, so ` ? ` becomes ` . `.
    """
    hidden = piece
    for mark, other in _HIDDEN.items():
        hidden = hidden.replace(mark, other)
    hidden = hidden.replace("’", "'").replace("‘", "'")
    hidden = _SINGLE_QUOTE.sub(" ", hidden).replace("'", "-")
    for mark in "?!":
        if mark in hidden:
            hidden = hidden.replace(f" {mark} ", " . ")
    return hidden if hidden.isascii() else _SURROGATE.sub("\ufffd", hidden)


def _english_ends(piece: str, language: str) -> Iterator[tuple[int, int]]:
    """The same as `sentence_ends`, by sentencex."""
    for boundary in get_sentence_boundaries(language, _hide_marks(piece)):
        stop = boundary["start_index"] + len(boundary["text"].rstrip())
        yield stop, boundary["end_index"]


def _cuts(piece: str, language: str) -> Iterator[tuple[int, int]]:
    """The start and end of the chunks of a piece, one sentence each, without gaps.

    A closing quotation mark or bracket belongs to the sentence that it ends. After a
    question or exclamation mark in quotation marks, and after a bracket, the sentence
    goes on if the next letter is lower case: `"Why?" she asked.` is one sentence.
    """
    start = 0
    spaced = f" {piece}"
    find_ends = _english_ends if language == ENGLISH else sentence_ends
    for stop, end in find_ends(piece, language):
        if end >= len(piece):
            break
        gap = piece[stop : min(end, stop + _MAX_GAP_CHARACTERS)]
        if not gap.isspace():
            end = stop + _closing_length(gap, stop, spaced, language)
            may_go_on = piece[stop - 1] in "?!" or ")" in gap
            if may_go_on and piece[stop:end].strip():
                rest = piece[end : end + _MAX_GAP_CHARACTERS].lstrip()
                if rest[:1].islower():
                    continue
        yield start, end
        start = end
    yield start, len(piece)


def _closing_length(gap: str, position: int, spaced: str, language: str) -> int:
    """The number of marks and spaces between two sentences that belong to the first.

    Args:
      gap: the marks and spaces between the sentences.
      position: the index of the gap in the piece.
      spaced: the piece after a space.
      language: the language.

    text            gap
    gone." She      `" `    the mark touches the first sentence: closing
    gone. "She      ` "`    the mark touches the second sentence: opening
    gone . " she    ` " `   the mark touches neither: closing if a mark is open
    """
    for index, mark in enumerate(gap):
        if mark not in _MARKS:
            continue
        touches_left = not gap[:index].strip(_MARKS)
        touches_right = not gap[index:].strip(_MARKS)
        # Other languages have „German“ and »Danish« quotation marks.
        if mark in _OPENS and (touches_left == touches_right or language == ENGLISH):
            opens = _OPENS[mark]
        elif touches_left != touches_right:
            opens = touches_right
        else:
            opens = spaced.count(f" {mark} ", 0, position + index + 1) % 2 == 0
        if opens:
            return index
    return len(gap)
