"""The words, numbers and names of a text, in the form in which they are compared.

The same functions read a source and its summaries, so that a quotation has the tokens
of its source:

    He paid Rs8,000 at 6:40am.    he  paid  rs  8,000  at  6:40am
    Römer’s (2024-05-03)          romer's  3  may  2024
    Anglo-American, the U.S.      anglo  american  the  u.s
"""

import re
import unicodedata
from collections.abc import Iterator

from precis.model.quality.dates import MONTH_NAMES

# Letters with the apostrophes of `O'Brien` and the points of `U.S`; or digits with the
# letters after them: `6:40am`, `1,200.50`, `4.5m`, `3rd`. A currency before the digits
# is a separate token.
_TOKEN = re.compile(
    r"[^\W\d_]+(?:'[^\W\d_]+)*(?:(?<=\b[^\W\d_])\.[^\W\d_]\b)*"
    r"|(?:(?<!:)\d{1,2}:[0-5]\d(?![\d:])|\d+(?:[.,]\d+)*)[^\W\d_]*"
)
_ISO_DATE = re.compile(
    r"(?<!\d)(?<!\d-)(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(?!-?\d)"
)
_MONTH_AND_DAY = re.compile(r"-[01]\d-[0-3]\d")
# Where a quotation may begin and end, by its character there: a mark, letter or digit.
_BEGINS = [re.compile(p) for p in ("", r"(?<!\w)", r"(?<!\w)(?<!\d[.,])")]
_ENDS = [re.compile(p) for p in ("", r"(?!\w)", r"(?!\w)(?![.,]\d)")]
_ACCENTS = re.compile("[\u0300-\u036f]+")
_NOT_PLAIN = re.compile(
    "[\u00c0-\u024f\u1e00-\u1eff\u2018\u2019\u02bc\u2032\uff07\xb4\u2010\u2011]"
)
# Letters that Unicode does not decompose, for their stroke or missing dot, and the
# typographic forms of apostrophe and hyphen.
_PLAIN = {
    **dict(zip("ØøŁłĐđĦħŦŧı", "OoLlDdHhTti", strict=True)),
    **dict.fromkeys("\u2018\u2019\u02bc\u2032\uff07\xb4", "'"),
    **dict.fromkeys("\u2010\u2011", "-"),
}


def readable(text: str) -> str:
    """A normalised text on one line, with ISO dates in words. Unsupported names are
    shown as in this text.
    """
    text = text.replace("\n", " ")
    if not text.isascii():
        # NFC leaves an accent where no letter with it exists.
        text = _ACCENTS.sub("", text)
    # A fast check: most texts have no date.
    return _ISO_DATE.sub(_date_in_words, text) if _MONTH_AND_DAY.search(text) else text


def plain(line: str) -> str:
    """A readable line without accents, with plain apostrophes and hyphens; its length
    stays the same.
    """
    line = line.replace("`", "'")
    return line if line.isascii() else _NOT_PLAIN.sub(_without_accents, line)


def tokens(line: str) -> Iterator[re.Match[str]]:
    """The tokens of a plain line, with their case."""
    return _TOKEN.finditer(line)


def token_words(line: str) -> list[str]:
    """The tokens of a plain line, without case."""
    words: list[str] = []
    for word in line.split(" "):
        if word.isalpha():  # as most are: this halves the time for a long text
            words.append(word.casefold())
        else:
            # After the cut, because without case some letters become longer.
            words += map(str.casefold, _TOKEN.findall(word))
    return words


def _without_accents(match: re.Match[str]) -> str:
    """The base letter of a letter, if it is a single character."""
    character = match[0]
    if character in _PLAIN:
        return _PLAIN[character]
    base = _ACCENTS.sub("", unicodedata.normalize("NFD", character))
    return _PLAIN.get(base, base) if len(base) == 1 else character


def is_quoted(line: str, text: str) -> bool:
    """Whether a text holds a line, from the start of a word to the end of a word.

    Both are plain, and the line is not empty.
    """
    # Within a number there is no word border: `8` is not quoted from `8,000`.
    begins = _BEGINS[line[0].isalnum() + line[0].isdigit()]
    ends = _ENDS[line[-1].isalnum() + line[-1].isdigit()]
    start = text.find(line)
    while start >= 0:
        if begins.match(text, start) and ends.match(text, start + len(line)):
            return True
        start = text.find(line, start + 1)
    return False


def _date_in_words(match: re.Match[str]) -> str:
    """2024-05-03 -> 3 may 2024."""
    year, month, day = match.groups()
    return f"{int(day)} {MONTH_NAMES[int(month) - 1]} {year}"
