"""Wrapped text: finds the line breaks that are within a sentence.

    The survey covers the lower valley. It compares twelve    full lines that continue
    basins of the northern region, and rain fell on all of    in lower case: one
    them.                                                     paragraph

    Lakes of the northern region after the rain               lines that are not full
    Rivers                                                    and continue in upper
    Springs of the lower valley                               case: three lines

A line is full if the first word of the next line would make it longer than the column.
In scripts without case all lines of a text must be full. List items, table lines and
the words of a speaker always begin a new line.
"""

import itertools
import re
from collections.abc import Sequence
from typing import NamedTuple

# Thai, Lao, Burmese, Khmer, Chinese and Japanese, which have no space between words.
_UNSPACED = (
    r"[\u0e00-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\uffef\U00020000-\U0003ffff]"
)
# A line break, with the quotation marks (`>`) of mail before the next line.
_BREAK = r"[ \t]*(?:\r\n?|\n)[\s>]*"
# Breaks that become no space: between characters of those scripts, and within a word,
# except after `pre-` in `pre- and postwar`.
_GLUED = re.compile(
    rf"(?<={_UNSPACED}){_BREAK}(?={_UNSPACED})|\xad{_BREAK}"
    rf"|(?<=[^\W_][-‐]){_BREAK}(?!(?:and|or|to|und|oder|bis|et|ou|y|o)\b)(?=\w)"
)
_END = re.compile(r"[.!?…。！？।؟۔][\s'\"”’»)\]」』]*\Z")
# Beginnings of a new line: marks of lists, `2.1`, `(iv)`, `[7]`, `Q.`, `Ms Roe:`.
_OWN_LINE = re.compile(
    r"(?!--+ [a-z])[^\w\"'“”‘’«»„()[\]「」『』$€£¿¡,.;:!?%&、。，；：？！،؛؟۔।]"
    r"|\d+(?:\.\d+)+\.?\s+[A-ZÀ-ÞΑ-ΩА-Я]|(?:\([ivxIVX]{2,}\)|\[\d+\]|[QA][.:]"
    r"|(?:[A-ZÀ-ÞΑ-ΩА-Я][\w.'’-]*+[ ,]*+){1,4}+:)(?:\s|\Z)|\w+："
)
_NUMBER = re.compile(r"\(?(?:\d{1,3}|[A-Za-z])[.)]\s")  # of a list, if there are two
_LINK = r"https?:\S+"
_CELLS = ("\t", "     ", "|", ". . .", "....")
_MIN_COLUMN, _MAX_COLUMN, _LONGEST_WORD = 30, 120, 20  # characters


class _Break(NamedTuple):
    """A line break that may be within a sentence.

    Attributes:
      place: the index of the line before the break.
      width: the width of the wider line.
      reach: the width of the first line with the first word of the second.
      case: the case of the second line: lower, upper or other; `end` if the first line
          ends with a sentence or an abbreviation.
      pauses: whether the first line ends with a comma, semicolon or dash.
    """

    place: int
    width: int
    reach: int
    case: str
    pauses: bool


def unwrapped_lines(lines: Sequence[str]) -> list[str]:
    """The lines of a text, with line breaks; a wrapped paragraph is a single line."""
    joined = _breaks_within(lines)
    starts = [place for place in range(len(lines)) if place - 1 not in joined]
    bounds = itertools.pairwise([*starts, len(lines)])
    return ["".join(lines[start:end]) for start, end in bounds]


def flat(line: str) -> str:
    """Replaces line breaks within a line, and quotation marks (`> `) before it, by as
    many spaces.
    """
    return re.sub(rf"{_BREAK}|\A[ \t>]+", lambda match: " " * len(match[0]), line)


def shown_line(sentence: str) -> str:
    """A sentence of an article on one line, as summaries show it."""
    if "\n" in sentence or "\r" in sentence:
        sentence = re.sub(_BREAK, " ", _GLUED.sub("", sentence))
    return " ".join(sentence.split())


def _breaks_within(lines: Sequence[str]) -> set[int]:
    """The indices of the lines before the breaks within wrapped paragraphs."""
    blocks = _find_blocks(lines)
    opens = [each for block in blocks for each in block if each.case != "end"]
    if not opens:
        return set()
    widths = sorted(each.width for each in opens)
    column = widths[len(widths) * 9 // 10]
    joined, others = set[int](), list[list[_Break]]()
    for block in blocks:
        # Verse: lines end where a reader pauses.
        if sum(each.pauses for each in block) >= max(2, 0.6 * len(block)):
            continue
        width = max(each.width for each in block)
        # Lines of PDF files are equally wide, but differ in characters.
        full = [each for each in block if each.reach > 0.87 * width]
        # The first line may be a heading, the last one a name.
        rest = block[block[0] not in full : len(block) - (block[-1] not in full)]
        cases = [each.case for each in rest if each.case != "end"]
        if (
            cases.count("upper") <= 3 * cases.count("lower") > 0
            and width >= max(_MIN_COLUMN + 10 * (len(cases) < 2), 0.6 * column)
            and sum(each.case != "end" for each in full) >= 0.75 * len(cases)
        ):
            joined.update(each.place for each in full)
        else:
            others.append(block)
    cases = [each.case for each in opens]
    has_case = 3 * cases.count("lower") > cases.count("other")
    if has_case and not joined:
        return joined
    column = column if has_case else widths[-1]
    for block in others:
        within = {each for each in block if each.reach > column >= each.width}
        if all(each in within or each.case == "end" for each in block):
            joined.update(each.place for each in within)
    count = sum(each.place in joined and each.case == "other" for each in opens)
    return joined if has_case or count >= max(3, 0.75 * len(opens)) else set()


def _find_blocks(lines: Sequence[str]) -> list[list[_Break]]:
    """The breaks between the lines of each block; a block ends with a sentence."""
    is_lower = "".join(lines).islower()
    texts = [line.strip(" \t\u3000>\r\n") for line in lines]
    widths = [len(line.expandtabs().rstrip()) for line in lines]
    is_list = sum(map(bool, map(_NUMBER.match, texts))) > 1
    blocks: list[list[_Break]] = [[]]
    for place, (text, following) in enumerate(itertools.pairwise(texts)):
        width = max(widths[place : place + 2])
        if (
            not following
            or text[-1:] in ":："
            or width > _MAX_COLUMN
            or lines[place][-1] not in "\r\n"
            or lines[place][:6].count(">") != lines[place + 1][:6].count(">")
            or (is_list and _NUMBER.match(following))
            or _OWN_LINE.match(following)
            or any(cell in text or cell in following for cell in _CELLS)
            or re.fullmatch(_LINK, text)
        ):
            blocks.append([])
            continue
        first = following.lstrip("\"'“‘«„([「『- ")[:1]
        case = "lower" if first.islower() and not is_lower else "upper"
        word = following.split()[0]
        is_link = re.match(_LINK, word)
        if is_link or first.lower() == first.upper():
            case = "other"
        word = word if is_link else word[:_LONGEST_WORD]
        reach = widths[place] + 1 + len(word) * (not re.match(_UNSPACED, word))
        case = "end" if _END.search(text[-4:]) else case
        blocks[-1].append(
            _Break(place, width, reach, case, text.endswith((",", ";", "–", "—")))
        )
    return [block for block in blocks if block]
