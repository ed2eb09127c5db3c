"""Boilerplate: text of a news site that is not part of the story.

Agency, dateline, byline and times of publication come before the story:

    article      "(CNN) -- Rain fell.  It was cold.\\r\\nNobody came."
    boilerplate   ^^^^^^^^^
    body         "Rain fell. It was cold. Nobody came."

Sentences about the web page, such as "Scroll down for video", come between its
paragraphs and after it. The patterns match cased text, and lower-cased, tokenised text.
They are narrow, so that no sentence of the story matches: each describes the first
words, the last words or the whole of a sentence. Some sentences about the page are
missed.
"""

import re

# Boilerplate of CNN and the Daily Mail: cased as in TFDS, and lower-cased and tokenised
# as by See et al. (2017).
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
# Kinds of boilerplate in the order in which they are tried, at the first character of
# the text. After a match, all are tried again at its end.
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
_BOILERPLATE = re.compile(rf"\s*(?:{'|'.join(BOILERPLATE.values())})\s*")
MAX_BOILERPLATE_CHARACTERS = 1_000


def story_start(article: str) -> int:
    """The first character of the story after the boilerplate.

    Each piece of boilerplate ends with a bracket or with white space.
    """
    head = article[:MAX_BOILERPLATE_CHARACTERS]
    start = 0
    while match := _BOILERPLATE.match(head, start):
        start = match.end()
    return start


_SITES = r"(?:twitter|facebook|instagram|google ?\+|youtube|pinterest|snapchat)"
_BEGINNINGS = "|".join(
    [
        r"(?:video ?:? )?scroll down (?:for|to (?:see|watch|read|view|listen))\b",
        r"click here\b",
        rf"(?:you can )?follow (?:@ ?\w+|[\w.' -]{{1,40}}?) on {_SITES}\b",
        rf"(?:like|join|friend|find) (?:us|[\w.']+(?: [\w.']+)?) on {_SITES}\b",
        r"read more(?:\W*$| ?:| (?:about|at|from|here|in|of|on)\b)",
        r"read the original\b",
        r"on this page you (?:can|will|['’]ll) find\b",
        r"(?:explore|find out|hear|learn|read|see|take|view|watch)\b.*»\W*$",
        r"e ?- ?mail to a friend\b",
        r"all rights reserved",
        r"copyright (?:©|\( ?c ?\)|\d{4})",
        r"(?:tm & )?© ?\d{4}\b",
        (
            r"share your (?:comments|experiences?|memories|photos|stories|story"
            r"|thoughts|videos?|views)\b"
        ),
        r"subscribe (?:now|today|to)\b",
        (
            r"sign up (?:here|now|to (?:our|the)|for (?:our|the)) ?"
            r"(?:[\w' -]{1,40}newsletters?\b|\W*$)"
        ),
        r"(?:story|article) continues below\b",
        r"(?:advertisement|sponsored links?)\W*$",
        r"(?:sorry )?we are (?:not currently|no longer) accepting comments\b",
        r"for confidential (?:support|help)\b",
        r"ireport(?:\.com)? ?:",
        r"tell us (?:what you think|in the (?:comments|sound off))\b",
        r"editors? ?['’]s? note\b",
        (
            r"the (?:views|opinions) expressed in this "
            r"(?:article|column|commentary|piece|story)\b"
        ),
        r"this (?:\w+ )?(?:image|photo|picture) shows\b",
    ]
)
_ENDINGS = "|".join(
    [
        r"\bcontributed to this (?:article|report|story)(?: from [\w ,]{1,40})?\W*$",
        r"[,!-] ?click here\W*$",
        r", pictured (?:above|here)\b[^,]*$",
    ]
)
_PAGE_SENTENCE = re.compile(
    rf"\W*?(?:(?<!\w)(?:{_BEGINNINGS})|.*(?:{_ENDINGS}))", re.DOTALL
)
# A sentence that matches contains one of these strings. To search for them first is
# much faster.
_HINTS = (
    "scroll down|click here|facebook|twitter|instagram|google|youtube|pinterest"
    "|snapchat|read more|»|to a friend|all rights|copyright|©|share your|subscribe"
    "|sign up|continues below|advertisement|sponsored|accepting comments"
    "|for confidential|ireport|tell us|contributed to this| note|expressed in this"
    "|pictured| shows |the original|on this page"
).split("|")


def is_page_sentence(sentence: str) -> bool:
    """Whether a sentence is about the web page: an invitation, credit, caption..."""
    text = " ".join(sentence.lower().split())
    for hint in _HINTS:  # faster than `any`
        if hint in text:
            return _PAGE_SENTENCE.match(text) is not None
    return False
