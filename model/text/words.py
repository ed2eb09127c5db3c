"""The words of a text."""

import re
import unicodedata

# Of letters and digits. An apostrophe or hyphen joins two of them, a point or comma
# digits, a point single letters.
_PATTERN = (
    r"{alnum}+(?:['.,-](?:"
    r"(?<=['-]){alnum}+|(?<=\d.)\d{alnum}*|(?<=\b{letter}\.){letter}\b))*"
)
WORD = re.compile(_PATTERN.format(alnum=r"[^\W_]", letter=r"[^\W\d_]"))
# The same, which finds the words of most texts in half the time.
_ASCII_WORD = re.compile(_PATTERN.format(alnum="[a-z0-9]", letter="[a-z]"), re.ASCII)
# They stand between words in texts that otherwise are ASCII.
_TYPOGRAPHIC_MARKS = "“”‘–—…•£€"


def words(text: str) -> list[str]:
    """The words of a text in lower case and NFC, without punctuation.

    A word consists of letters and digits. An apostrophe or hyphen between two of them
    belongs to the word (`don't`, `well-known`), and so do a point or comma between
    digits (`4.5m`, `1,200`) and a point between single letters (`u.s`). A typographic
    apostrophe counts as a plain apostrophe.
    """
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    text = unicodedata.normalize("NFC", text).lower().replace("’", "'")
    for mark in _TYPOGRAPHIC_MARKS:
        text = text.replace(mark, " ")
    pattern = _ASCII_WORD if text.isascii() else WORD
    return pattern.findall(text)
