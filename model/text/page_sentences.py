"""Sentences about the web page and not about the story, as in "Scroll down for video".

News sites print such sentences between paragraphs and below the story. The patterns fit
cased text, and lower-cased and tokenised text. They are narrow, because a sentence of
the story must not match: each names the first words, the last words or the whole of a
sentence. Some sentences about the page are missed.
"""

import re

_SITES = r"(?:twitter|facebook|instagram|google ?\+|youtube|pinterest|snapchat)"
_BEGINNINGS = "|".join(
    [
        r"(?:video ?:? )?scroll down (?:for|to (?:see|watch|read|view|listen))\b",
        r"click here\b",
        rf"(?:you can )?follow (?:@ ?\w+|[\w.' -]{{1,40}}?) on {_SITES}\b",
        rf"(?:like|join|friend|find) (?:us|[\w.']+(?: [\w.']+)?) on {_SITES}\b",
        r"read more(?:\W*$| ?:| (?:about|at|from|here|in|of|on)\b)",
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
    ]
)
_ENDINGS = "|".join(
    [
        r"\bcontributed to this (?:article|report|story)(?: from [\w ,]{1,40})?\W*$",
        r"[,!-] ?click here\W*$",
    ]
)
_PAGE_SENTENCE = re.compile(
    rf"\W*?(?:(?<!\w)(?:{_BEGINNINGS})|.*(?:{_ENDINGS}))", re.DOTALL
)
# A sentence that matches contains one of these strings. They are searched for first,
# because that is much faster.
_HINTS = (
    "scroll down",
    "click here",
    "facebook",
    "twitter",
    "instagram",
    "google",
    "youtube",
    "pinterest",
    "snapchat",
    "read more",
    "»",
    "to a friend",
    "all rights",
    "copyright",
    "©",
    "share your",
    "subscribe",
    "sign up",
    "continues below",
    "advertisement",
    "sponsored",
    "accepting comments",
    "for confidential",
    "ireport",
    "tell us",
    "contributed to this",
)


def is_page_sentence(sentence: str) -> bool:
    """Whether a sentence is an invitation, a credit or a notice of the web page."""
    text = " ".join(sentence.lower().split())
    for hint in _HINTS:  # faster than `any`
        if hint in text:
            return _PAGE_SENTENCE.match(text) is not None
    return False
