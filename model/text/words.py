"""The words of a text."""

import re
import unicodedata

WORD = re.compile(
    r"[^\W_]+(?:['-][^\W_]+|(?<=\d)[.,]\d[^\W_]*|(?<=\b[^\W\d_])\.[^\W\d_]\b)*"
)


def words(text: str) -> list[str]:
    """The words of a text in lower case and NFC, without punctuation.

    A word consists of letters and digits. An apostrophe or hyphen between two of them
    belongs to the word (`don't`, `well-known`), and so do a point or comma between
    digits (`4.5m`, `1,200`) and a point between single letters (`u.s`). A typographic
    apostrophe counts as a plain apostrophe.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text).replace("’", "'")
    return WORD.findall(text.lower())
