"""Text: normalising it, telling news boilerplate from the story, cutting it into
sentences and words.

Two views of one article. Extractive summaries quote it, so sentences are offsets into
the article as it was read. Networks read `body`, which is normalised. The content hash
is that of the normalised article.

    article     "(CNN) -- Rain fell.  It was cold.\\r\\nNobody came."
    boilerplate  ^^^^^^^^^
    sentences             [9, 19)     [21, 33)     [35, 47)
    body        "Rain fell. It was cold. Nobody came."
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from sentencex import get_sentence_boundaries


class Span(NamedTuple):
    """A half-open range of characters."""

    start: int
    end: int


class Sentence(NamedTuple):
    """A sentence and where it stands: `article[start:end] == text`."""

    start: int
    end: int
    text: str


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


def content_sha256(article: str) -> str:
    """The sha256 of the normalised article in hexadecimal: equal for two articles that
    differ in white space only.
    """
    return hashlib.sha256(normalise(article).encode()).hexdigest()


# Boilerplate: what CNN and the Daily Mail set before the story, cased as TFDS serves it
# and lower-cased as See et al. (2017) tokenised it. Tried in this order, over and over,
# from the first character on; the first that fits nothing ends the search.
_AGENCY = r"\( ?~? ?(?:CNN|Reuters|AP|CNN Student News) ?\)"
_PUBLISHER = (
    r"\( ?(?:CNN ?Money(?:\.com)?|CNNGo|Wired|Mashable(?:\.com)?|Rolling ?Stone(?:\.com)?|The Hollywood Reporter|Billboard|Variety|"
    r"EW\.com|Entertainment Weekly|People\.com|Oprah\.com|The Frisky|Financial Times|Mental Floss|Health\.com|InStyle(?:\.com)?|CNET|"
    r"Budget Travel|Travel \+ Leisure|AOL Autos|RealSimple\.com|Ars ?Technica|Parenting\.com) ?\)"
)
_DASH = r"(?:--|[-–—])"
_CASED_PLACE = r"[A-Z][\w.'’-]*(?: (?:(?:al|at|da|de|del|el|in|la|near|of|on|the)\b ?)*[A-Z][\w.'’-]*){0,4}"
# A tokenised dateline has no capitals to know it by: without a dash it is a few words
# none of which belongs in a sentence.
_NO_PLACE = (
    r"(?:a|according|after|an|and|are|as|asked|at|but|by|for|from|gave|had|has|have|he|her|him|his|i|is|it|its|on|our|said|says|she|that|"
    r"their|they|this|to|told|was|watch|we|were|when|who|with|you|network|channel|broadcaster)\b"
)
_TOKENISED_PLACE = rf"(?!{_NO_PLACE})[^\W\d_][\w.'’-]*(?: (?!{_NO_PLACE})(?:- )?[^\W\d_][\w.'’-]*){{0,4}}"
_TIME = r"\d{1,2}[:.]\d\d [A-Z]{2,4} ?, \d{1,2} [A-Z]+ \d{4}"
BOILERPLATE = {
    # "(CNN) -- ", "(CNN)", "( ~ cnn ) -- ", "(The Hollywood Reporter)"
    "credit": rf"(?i:{_AGENCY}|{_PUBLISHER})(?:\s?{_DASH}(?=\s))?",
    # "( any short name ) -- ": the dash tells a credit from a remark
    "credit with a dash": r"\([^\W\d_ ]?[ \w.+&'’-]{1,38}\) --(?=\s)",
    # "LONDON, England (CNN) -- ", "New Delhi (CNN)"
    "dateline": rf"{_CASED_PLACE}(?:, {_CASED_PLACE}){{0,2}} {{0,2}}(?i:{_AGENCY})(?:\s?{_DASH}(?=\s))?",
    # "miami , florida ( cnn ) -- ", "new delhi ( cnn ) "
    "tokenised dateline": rf"{_TOKENISED_PLACE}(?: , {_TOKENISED_PLACE}){{0,2}} \( (?:cnn|reuters|ap) \)(?: --(?=\s))?",
    # "By . Jane Roe . ", "by . jane roe for mailonline . and richard doe . ", at most
    # ten words the first
    "byline": r"[Bb][Yy] \. [^\W\d_][^\s.]*(?:\s[^\s.]+){0,9} \.(?:\sand [^\W\d_][^\s.]*(?:\s[^\s.]+){0,5} \.)*(?=\s)",
    # "PUBLISHED: . 09:12 EST, 3 May 2014 . | . "
    "times": rf"(?i:(?:published|created|(?:last )?updated) ?: ?(?:\. ?)?{_TIME} ?\.(?: ?\| ?\.)?)(?=\s)",
    # "Follow @@janeroe . "
    "handle": r"[Ff]ollow @@? ?\w+ \.(?=\s)",
}
_BOILERPLATE = tuple(
    re.compile(rf"\s*{pattern}\s*") for pattern in BOILERPLATE.values()
)
MAX_BOILERPLATE_CHARACTERS = 1_000


def boilerplate(article: str) -> list[Span]:
    """The stretches before the story that are no part of it: agency, dateline, byline,
    times. They lie end to end.
    """
    head = article[:MAX_BOILERPLATE_CHARACTERS]
    spans: list[Span] = []
    position = 0
    while match := next(
        filter(None, (pattern.match(head, position) for pattern in _BOILERPLATE)), None
    ):
        spans.append(Span(position, match.end()))
        position = match.end()
    return spans


def one_line(text: str) -> str:
    """The text normalised and on one line."""
    return normalise(text).replace("\n", " ")


def _story_start(article: str, strip_boilerplate: bool) -> int:
    spans = boilerplate(article) if strip_boilerplate else []
    return spans[-1].end if spans else 0


def body(article: str, *, strip_boilerplate: bool = True) -> str:
    """What a network reads: the story without its boilerplate, normalised, on one line."""
    return one_line(article[_story_start(article, strip_boilerplate) :])


_MAX_PIECE_CHARACTERS = 100_000
_WORD_CHARACTER = re.compile(r"[^\W_]")


def sentences(article: str, *, strip_boilerplate: bool = True) -> list[Sentence]:
    """The sentences of the story, in order, as offsets into the article as it was read.

    A line break always ends a sentence; within a line sentencex cuts, and the rules of
    `_cuts` place quotation marks. What has no
    letter or digit is no sentence: it belongs to the sentence before it on its line, or
        else to the one after; a line
    of such characters has none. A line beyond 100,000 characters is first cut at white
    space, so that work stays in proportion to the text.
    """
    start = _story_start(article, strip_boilerplate)
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


WORD = re.compile(
    r"[^\W_]+(?:['-][^\W_]+|(?<=\d)[.,]\d[^\W_]*|(?<=\b[^\W\d_])\.[^\W\d_]\b)*"
)


def words(text: str) -> list[str]:
    """The words of a text in lower case and NFC, without punctuation.

    A word is letters and digits. Part of it are an apostrophe or a hyphen between two
    of them (`don't`, `well-known`), a point or comma between digits (`4.5m`, `1,200`)
    and a point between single letters (`u.s`). A typographic apostrophe counts as a
    plain one.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text).replace("’", "'")
    return WORD.findall(text.lower())
