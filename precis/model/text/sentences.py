"""The sentences of an article, as offsets into the article as it was read.

article     "(CNN) -- Rain fell.  It was cold.\\r\\nNobody came."
sentences             [9, 19)     [21, 33)     [35, 47)

Lines of a wrapped paragraph are read as one line (`wrapping`).
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sentencex import get_sentence_boundaries  # pyright: ignore[reportAttributeAccessIssue]  # Made in Rust.

from precis.model.text.language import ENGLISH
from precis.model.text.wrapping import flat, shown_line


class Sentence(NamedTuple):
    """A sentence and its offsets in the article: `article[start:end] == text`, but for
    the line breaks of a wrapped paragraph, which are spaces in the text.
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
    """The sentences of a text, in order, with their offsets.

    The end of a line ends a sentence. Within a line sentencex finds the boundaries, and
    `_cuts` moves them by the rules for quotation marks. Text without a letter or
    digit is no sentence: it belongs to the sentence before it on its line, or else to
    the sentence after it. A line of such text has no sentence. A line of more than
    100,000 characters is first cut at white space, so that the time is proportional to
    the length of the text.

    Args:
      article: the text.
      start: the first character that belongs to a sentence.
      language: of the text, whose abbreviations end no sentence.
      lines: of the text from there on, as `unwrapped_lines` gives them; the lines as
        they stand by default.
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
    """Pieces of a line of at most 100,000 characters, cut after white space if any."""
    start = 0
    while len(line) - start > _MAX_PIECE_CHARACTERS:
        end = start + _MAX_PIECE_CHARACTERS
        space = max(line.rfind(blank, start, end) for blank in " \t\xa0\u3000")
        end = space + 1 if space >= start else end
        yield line[start:end]
        start = end
    yield line[start:] if start else line


def _sentences_of_piece(piece: str, language: str) -> list[tuple[int, int]]:
    """Start and end of each sentence, without the white space around it.

    Each sentence has a letter or digit.
    """
    bounds: list[tuple[int, int]] = []
    # Where marks without words begin that belong to the next sentence; -1 if there are
    # none.
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
# Each is replaced by itself: `translate` takes a hundred times as long where a text has
# any character beyond ASCII.
_HIDDEN = {**dict.fromkeys('"“”„«»`()[]\xa0\n\r', " "), **dict.fromkeys("•▪●‣◦", "-")}
# Before or behind a space. It begins with the mark alone, which is found fast.
_SINGLE_QUOTE = re.compile(r"'(?:(?<!\S.)|(?!\S))")
_MAX_GAP_CHARACTERS = 32
# As of a name (`J. Kowalski`). sentencex knows those of few languages but English.
_INITIAL = re.compile(r"\b[^\W\d_]\.$")
_SURROGATE = re.compile("[\ud800-\udfff]")


def _hide_marks(piece: str) -> str:
    """The text with other characters for marks, for sentencex; its length is the same.

        He said "Go. Now." Isn't it ? yes
        He said  Go. Now.  Isn-t it . yes

    sentencex takes the text between two quotation marks or between two items of a list
    for one sentence. But a quotation in the news has several sentences, and a mark that
    is never closed would join the rest of the article. Quotation marks and brackets
    become spaces, apostrophes and bullets hyphens. sentencex does not end a sentence at
    a question mark of tokenised lower-case text either, so ` ? ` becomes ` . `.
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


def _cuts(piece: str, language: str) -> Iterator[tuple[int, int]]:
    """Start and end of the chunks of a piece, one sentence each, without gaps.

    A closing quotation mark or bracket belongs to the sentence that it ends. After a
    question or exclamation mark in quotation marks, and after a bracket, the sentence
    goes on if the next letter is lower case: `"Why?" she asked.` is one sentence.
    """
    hidden = _hide_marks(piece)
    start = 0
    spaced = f" {piece}"
    for boundary in get_sentence_boundaries(language, hidden):
        end = boundary["end_index"]
        if end >= len(piece):
            break
        stop = boundary["start_index"] + len(boundary["text"].rstrip())
        if language != ENGLISH:
            last = piece[max(start, stop - 3) : stop]
            if last.isupper() and _INITIAL.search(last):
                continue
        gap = piece[stop : min(end, stop + _MAX_GAP_CHARACTERS)]
        if not gap.isspace():
            end = stop + _closing_length(gap, stop, spaced)
            may_go_on = piece[stop - 1] in "?!" or ")" in gap
            if may_go_on and piece[stop:end].strip():
                rest = piece[end : end + _MAX_GAP_CHARACTERS].lstrip()
                if rest[:1].islower():
                    continue
        yield start, end
        start = end
    yield start, len(piece)


def _closing_length(gap: str, position: int, spaced: str) -> int:
    """How many of the marks and spaces between two sentences belong to the first.

    Args:
      gap: what stands between them.
      position: of the gap in the piece.
      spaced: the piece behind a space.

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
        if mark in _OPENS:
            opens = _OPENS[mark]
        elif touches_left != touches_right:
            opens = touches_right
        else:
            opens = spaced.count(f" {mark} ", 0, position + index + 1) % 2 == 0
        if opens:
            return index
    return len(gap)
