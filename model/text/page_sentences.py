"""Sentences that speak of the page and not of the story: "Scroll down for video",
"Follow us on Twitter", "All rights reserved."

A short list of what news sites set between paragraphs and below the story, cased or
lower-cased and tokenised. It is meant to miss some rather than to take one sentence of
a story: a pattern names the first words, the last words, or the whole sentence.
"""

import re

_SITES = r"(?:twitter|facebook|instagram|google ?\+|youtube|pinterest|snapchat)"
_FIRST = "|".join(
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
        r"share your (?:comments|experiences?|memories|photos|stories|story|thoughts|videos?|views)\b",
        r"subscribe (?:now|today|to)\b",
        r"sign up (?:here|now|to (?:our|the)|for (?:our|the)) ?(?:[\w' -]{1,40}newsletters?\b|\W*$)",
        r"(?:story|article) continues below\b",
        r"(?:advertisement|sponsored links?)\W*$",
        r"(?:sorry )?we are (?:not currently|no longer) accepting comments\b",
        r"for confidential (?:support|help)\b",
        r"ireport(?:\.com)? ?:",
        r"tell us (?:what you think|in the (?:comments|sound off))\b",
    ]
)
_LAST = "|".join(
    [
        r"\bcontributed to this (?:article|report|story)(?: from [\w ,]{1,40})?\W*$",
        r"[,!-] ?click here\W*$",
    ]
)
_BOILERPLATE = re.compile(rf"\W*?(?:(?<!\w)(?:{_FIRST})|.*(?:{_LAST}))", re.DOTALL)
# Every pattern needs one of these; they are looked for first, as that is much the
# faster.
_HINTS = (
    *(
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
    ),
    *(
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
    ),
    *(
        "accepting comments",
        "for confidential",
        "ireport",
        "tell us",
        "contributed to this",
    ),
)


def is_boilerplate(sentence: str) -> bool:
    """Whether a sentence is an invitation, a credit or a copyright notice of the page
    it stood on.
    """
    text = " ".join(sentence.lower().split())
    for hint in _HINTS:  # faster than any()
        if hint in text:
            return _BOILERPLATE.match(text) is not None
    return False
