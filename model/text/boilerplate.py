"""Boilerplate before a news story: agency, dateline, byline, times of publication.

article     "(CNN) -- Rain fell.  It was cold.\\r\\nNobody came."
boilerplate  ^^^^^^^^^
body        "Rain fell. It was cold. Nobody came."
"""

import re
from typing import NamedTuple


class Span(NamedTuple):
    """A half-open range of characters."""

    start: int
    end: int


# The boilerplate that CNN and the Daily Mail print before the story, cased as in TFDS
# and lower-cased as See et al. (2017) tokenised it.
_AGENCY = r"\( ?~? ?(?:CNN|Reuters|AP|CNN Student News) ?\)"
_PUBLISHER = (
    r"\( ?(?:CNN ?Money(?:\.com)?|CNNGo|Wired|Mashable(?:\.com)?"
    r"|Rolling ?Stone(?:\.com)?|The Hollywood Reporter|Billboard|Variety"
    r"|EW\.com|Entertainment Weekly|People\.com|Oprah\.com|The Frisky"
    r"|Financial Times|Mental Floss|Health\.com|InStyle(?:\.com)?|CNET"
    r"|Budget Travel|Travel \+ Leisure|AOL Autos|RealSimple\.com"
    r"|Ars ?Technica|Parenting\.com) ?\)"
)
_DASH = r"(?:--|[-–—])"
_CASED_PLACE = (
    r"[A-Z][\w.'’-]*"
    r"(?: (?:(?:al|at|da|de|del|el|in|la|near|of|on|the)\b ?)*[A-Z][\w.'’-]*){0,4}"
)
# A tokenised dateline has no capitals. Without a dash it is recognised as a few words,
# none of which belongs in a sentence.
_NO_PLACE = (
    r"(?:a|according|after|an|and|are|as|asked|at|but|by|for|from|gave|had|has|have|he"
    r"|her|him|his|i|is|it|its|on|our|said|says|she|that|their|they|this|to|told|was"
    r"|watch|we|were|when|who|with|you|network|channel|broadcaster)\b"
)
_TOKENISED_PLACE = (
    rf"(?!{_NO_PLACE})[^\W\d_][\w.'’-]*"
    rf"(?: (?!{_NO_PLACE})(?:- )?[^\W\d_][\w.'’-]*){{0,4}}"
)
_TIME = r"\d{1,2}[:.]\d\d [A-Z]{2,4} ?, \d{1,2} [A-Z]+ \d{4}"
# Kinds of boilerplate in the order in which they are tried, from the first character of
# the text on. After a match all are tried again.
BOILERPLATE = {
    # "(CNN) -- ", "(CNN)", "( ~ cnn ) -- ", "(The Hollywood Reporter)"
    "credit": rf"(?i:{_AGENCY}|{_PUBLISHER})(?:\s?{_DASH}(?=\s))?",
    # "( any short name ) -- ": the dash distinguishes a credit from a remark
    "credit with a dash": r"\([^\W\d_ ]?[ \w.+&'’-]{1,38}\) --(?=\s)",
    # "LONDON, England (CNN) -- ", "New Delhi (CNN)"
    "dateline": (
        rf"{_CASED_PLACE}(?:, {_CASED_PLACE}){{0,2}} {{0,2}}"
        rf"(?i:{_AGENCY})(?:\s?{_DASH}(?=\s))?"
    ),
    # "miami , florida ( cnn ) -- ", "new delhi ( cnn ) "
    "tokenised dateline": (
        rf"{_TOKENISED_PLACE}(?: , {_TOKENISED_PLACE}){{0,2}}"
        r" \( (?:cnn|reuters|ap) \)(?: --(?=\s))?"
    ),
    # "By . Jane Roe . ", "by . jane roe for mailonline . and richard doe . ": at most
    # ten words before the first stop
    "byline": (
        r"[Bb][Yy] \. [^\W\d_][^\s.]*(?:\s[^\s.]+){0,9} \."
        r"(?:\sand [^\W\d_][^\s.]*(?:\s[^\s.]+){0,5} \.)*(?=\s)"
    ),
    # "PUBLISHED: . 09:12 EST, 3 May 2014 . | . "
    "times": (
        r"(?i:(?:published|created|(?:last )?updated) ?: ?(?:\. ?)?"
        rf"{_TIME} ?\.(?: ?\| ?\.)?)(?=\s)"
    ),
    # "Follow @@janeroe . "
    "handle": r"[Ff]ollow @@? ?\w+ \.(?=\s)",
}
_BOILERPLATE = tuple(
    re.compile(rf"\s*{pattern}\s*") for pattern in BOILERPLATE.values()
)
MAX_BOILERPLATE_CHARACTERS = 1_000


def boilerplate_spans(article: str) -> list[Span]:
    """The pieces of boilerplate before the story, without gaps between them.

    Each ends with a bracket or with white space.
    """
    head = article[:MAX_BOILERPLATE_CHARACTERS]
    spans: list[Span] = []
    position = 0
    while match := _match_boilerplate(head, position):
        spans.append(Span(position, match.end()))
        position = match.end()
    return spans


def _match_boilerplate(text: str, position: int) -> re.Match[str] | None:
    for pattern in _BOILERPLATE:
        match = pattern.match(text, position)
        if match:
            return match
    return None


def story_start(article: str) -> int:
    """The first character of the story after the boilerplate."""
    spans = boilerplate_spans(article)
    return spans[-1].end if spans else 0
