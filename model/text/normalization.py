"""The normal form of a text: what networks read and content hashes are made of."""

import re
import unicodedata

# What `normalise` removes: controls that are not white space (Cc), all format
# characters (Cf) and lone surrogates (Cs), which no encoding can write. Spelled out
# rather than asked of `unicodedata`, so that every Python normalises alike (Unicode
# 16).
INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u2064\u2066-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]"
)


def normalise(text: str) -> str:
    """The text as networks and hashes see it; normalising twice changes nothing.

    Unicode NFC; one space for each run of white space; no empty lines and none with
    white space at its ends; no invisible characters. Line breaks are those of
    `str.splitlines`. Zero-width joiners and non-joiners go too: a joined emoji becomes
    its parts, which is the price of equal words being equal strings. The two characters
    that the tokenizer reserves become the plain
    ones they look like: `▁` an underscore, `␤` a space.
    """
    return "\n".join(line for line in map(_normalise_line, text.splitlines()) if line)


def _normalise_line(line: str) -> str:
    printable = (
        line.isprintable()
    )  # then it holds nothing invisible and no white space but the plain space
    if not printable:
        line = INVISIBLE.sub("", line)
    if not line.isascii():
        line = unicodedata.normalize("NFC", line).replace("▁", "_").replace("␤", " ")
    if not printable or "  " in line or line[:1] == " " or line[-1:] == " ":
        line = " ".join(line.split())
    return line


def one_line(text: str) -> str:
    """The text normalised and on one line."""
    return normalise(text).replace("\n", " ")
