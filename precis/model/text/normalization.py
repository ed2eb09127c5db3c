"""The normal form of a text, for networks and content hashes."""

import re
import unicodedata

# The characters that `normalise` removes: controls that are not white space (Cc), all
# format characters (Cf) and lone surrogates (Cs), which cannot be encoded. The list is
# from Unicode 16, not from `unicodedata`, so that all versions of Python agree.
INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f"
    "\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]"
)


def normalise(text: str) -> str:
    """The normal form of a text; normalising twice changes nothing.

    The normal form is Unicode NFC, with one space for each run of white space, no empty
    lines, no white space at the ends of lines and no invisible characters. Lines are
    split as by `str.splitlines`. Zero-width joiners and non-joiners are removed too, so
    that equal words are equal strings; a joined emoji becomes its parts. Two characters
    are reserved for the tokenizer: `▁` becomes an underscore and `␤` a space.
    """
    return "\n".join(line for line in map(_normalise_line, text.splitlines()) if line)


def _normalise_line(line: str) -> str:
    # The only white space in a printable line is the plain space.
    is_printable = line.isprintable()
    if not is_printable:
        line = INVISIBLE.sub("", line)
    if not line.isascii():
        line = unicodedata.normalize("NFC", line)
        line = line.replace("▁", "_").replace("␤", " ")
    if not is_printable or "  " in line or line[:1] == " " or line[-1:] == " ":
        line = " ".join(line.split())
    return line


def one_line(text: str) -> str:
    """The normal form of a text, on one line."""
    return normalise(text).replace("\n", " ")
