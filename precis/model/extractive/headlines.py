"""The headline of an English document: the best sentence that is informative by itself
and fits the line, or can be shortened to fit.

    sentence   On Monday, the mayor, 61, sold the old mill after a vote, police said.
    headline   The mayor sold the old mill, police said.

The parts that `text.clause_cuts` finds are left out, and so are a dateline, an opening
before the main clause and words after that clause. The words that `qualifiers` counts
are kept, such as who says it, a condition or a contrast. A line is a main clause that
needs no sentence before it: not a question, thanks or a caption, not said by `I` or
within a quotation that began earlier, not about `he` or `this`.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from precis.model.text.boilerplate import is_page_sentence, story_start
from precis.model.text.clause_cuts import cut_sentence, is_half, qualifiers
from precis.model.text.length_limit import LengthLimit, count_words, is_closed
from precis.model.text.normalization import one_line
from precis.model.text.sentence_confidence import has_verb, sentence_confidence

_MIN_CONFIDENCE = 0.7
_MIN_WORDS = 5
_MOST_CHARACTERS = 500  # of a sentence; a longer one is a list or a table
# Words that begin another clause after the main clause.
_JOINS = "after|amid|as|because|before|following"
# Who says it, after the main clause.
_SOURCE = re.compile(
    r"\s*,\s+(?:according to [^,]+|(?:said|says) (?!(?:he|she|it|they|that)\b)[^,]+"
    r"(?:,[^,]+){0,2}|[^,]{2,60}\s(?:told\b[^,]{2,40}|(?:said|says|reported|announced|"
    r"alleged?|claim|claimed|heard|warned)"
    r"(?:\s(?:[a-z]+day|in|on|at|to|during|late|early)\b[^,]{0,60})?))(?=\s*\.$)",
    re.IGNORECASE,
)
# After a week of rain, the mayor left.
_OPENING = re.compile(
    r"[^,]+,\s+(?:\d{4}\s*,\s+)?"
    r"(?!\w+ing\b|\S+(?:\s\S+){0,2}\s?,|(?:and|or|but|which|who)\b)"
)
# The main clause may end before this; before `, a` only if the sentence is not a list.
_TAIL = re.compile(
    rf"\s*,\s+(?=(?:who|whom|whose|which|where|when|since|{_JOINS})\s|"
    r"\w+ing\s(?!(?:and|or)\s)|an?\s(?:(?!\b(?:and|or)\b)[^,])*$)|"
    rf"\s(?:--|–|—|{_JOINS})\s",
    re.IGNORECASE,
)
# Ends of a clause that need the next word: `seen as`, `such as`.
_NEEDS_MORE = re.compile(
    r"\b(?:be|been|being|is|are|was|were|get|got)(?:\s[\w’'-]+)?$|(?:ed|ing)$|"
    r"\b(?:given|role|same|so|such|taken|well)$",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    rf"\s(?:{_JOINS}|since|that|what|when|where|whether|which|while|who|whose)\s|"
    r"(?<=\b(?:said|says))\s",
    re.IGNORECASE,
)
_ASIDE = re.compile(r",\s+(?:who|whose|which|where|\w+ing|\w+ed)\b[^,]*(?:,|$)")
# A clause cannot end so: `on the grounds that`.
_OPEN_END = re.compile(
    r"\b(?:\w+ly|an?|the|and|or|of|to|that|with|for|by|from|is|was|are|were|not|told|"
    r"saying|adding|even|just)$|,\s*\d{1,3}$"
)
_TIME = re.compile(r"\b(?:minute|hour|day|week|month|year|just|shortly|soon)s?$")
# Words before a main clause, which follows a comma.
_OPENINGS = frozenset(
    "according after also although amid apart as at because before besides by despite "
    "during earlier even following for from hence however if in instead just last "
    "like maybe meanwhile neither now on once originally perhaps rather "
    "since sometimes still then though thus to too under unless until when where "
    "while with".split()
)
# First words that refer to another sentence, ask, or address somebody.
_REFERRING = frozenset(
    "and another both but click congratulations consider do don't except find forget "
    "get give he her here his how i imagine introducing it its let look my or other "
    "others our please read remember see she so such sure thank thanks that their "
    "there these they think this those try turns watch we welcome what whatever which "
    "who why yet you your".split()
)
# Beginnings that assume something known: which mayor left? What was held in May?
_VAGUE = re.compile(
    r"the(?:\s(?!(?:of|for|in|from|that|to)\b)[a-z'’-]+){3}|[a-z]+ed\b[^,]*,|"
    r"[^,]*\b(?:later|earlier|ago),|some,?\s[a-z]|\w+ of (?:them|these|those)\b"
)
_UNFIT = re.compile(
    r"\b(?:i|me|my|we|our|you|your|i['’]m|we['’]re)\b|,['\"’”]* (?:he|she|they|it)\b|"
    r"[:;?](?!\d)|[.!] ['’]$|^\w+(?:ed|ing)\s(?:at|by|for|from|in|on|to|with)\s|"
    r"^\w+ing\s(?:an?|the|his|her|its|their|\w+['’]s)\s|"
    r"^\w+\s?,\s(?:after|as|because|if|unless|until|when|while)\b|\ssaying\s?\.$",
    re.IGNORECASE,
)


class Headline(NamedTuple):
    """The headline of a document.

    Attributes:
      place: the index of its sentence in the document.
      line: the sentence on one line, whole or shortened.
    """

    place: int
    line: str


def find_headline(
    sentences: Sequence[str],
    scores: np.ndarray,
    *,
    limit: LengthLimit,
    is_text: bool = True,
) -> Headline | None:
    """Finds the headline of a document; None if no sentence gives a line.

    A line about somebody who was named earlier is taken only if there is no other.

    Args:
      sentences: all sentences of the document.
      scores: float64 [N], higher is better.
      limit: the length limit of the line.
      is_text: whether the sentences are a text, where quotations span sentences.
    """
    quoted = _are_quoted(sentences) if is_text else [False] * len(sentences)
    vague = None
    best_first: list[int] = np.argsort(-scores, kind="stable").tolist()
    for place in best_first:
        line = "" if quoted[place] else _shorten(one_line(sentences[place]), limit)
        if line and not _VAGUE.match(line[0].lower() + line[1:]):
            return Headline(place, line)
        if line and vague is None:
            vague = Headline(place, line)
    return vague


def _are_quoted(sentences: Sequence[str]) -> list[bool]:
    """Whether each sentence begins within a quotation that an earlier one opened."""
    quoted, is_open = [], False
    for sentence in sentences:
        # Each paragraph of a quotation begins with a mark.
        is_open = is_open and sentence[0] not in '"“'
        quoted.append(is_open)
        is_open ^= bool(sum(map(sentence.count, '"“”')) % 2)
    return quoted


def _shorten(sentence: str, limit: LengthLimit) -> str:
    """The sentence, or the longest line that it can be shortened to; empty if none."""
    sentence = sentence[story_start(sentence) :]
    if (
        not sentence
        or "?" in sentence
        or is_page_sentence(sentence)
        or not is_closed(sentence)
    ):
        return ""
    if limit.fits(sentence) and _can_stand(sentence):
        return sentence
    if len(sentence) > _MOST_CHARACTERS:
        return ""
    kept = qualifiers(sentence)
    lines = (
        line
        for line in dict.fromkeys(_shorter(sentence))
        if limit.fits(line) and qualifiers(line) == kept and _can_stand(line)
    )
    return max(lines, key=count_words, default="")


def _shorter(sentence: str) -> Iterator[str]:
    """Yields shorter forms of a sentence, good or bad."""
    found = _SOURCE.search(sentence)
    body = sentence[: found.start()] if found else sentence.rstrip(" .\"'”’")
    end = " ." if sentence.endswith(" .") else "."
    source = sentence[len(body) :] if found else end
    texts = [body, *(each[:-1].rstrip() for each in cut_sentence(body + "."))]
    texts += [
        text[opening.end() :]
        for text in texts
        if (opening := _OPENING.match(text)) and _begins_with(text, _OPENINGS)
    ]
    for text in texts:
        start = text[:1].upper() if sentence[0].isupper() else text[:1]
        for head in _heads(start + text[1:]):
            yield head + source


def _heads(text: str) -> Iterator[str]:
    """Yields the text, and the text before each of its tails."""
    yield text
    for tail in _TAIL.finditer(text):
        head = text[: tail.start()]
        mark, rest = tail[0].strip().lower(), text[tail.end() :]
        if count_words(head) >= _MIN_WORDS and _may_end(head, mark, rest):
            yield head


def _may_end(head: str, mark: str, tail: str) -> bool:
    """Whether a clause may end with `head`, before a mark or word and the tail."""
    clause = _CLAUSE.split(head)[-1]
    if (clause != head and not has_verb(clause)) or _OPEN_END.search(head):
        return False
    if mark in ("--", "–", "—"):
        return mark not in head + tail
    if mark in ("after", "before") and _TIME.search(head):
        return False
    if mark in ("as", "before"):
        return has_verb(tail) and not _NEEDS_MORE.search(head)
    return mark != "," or "," not in head + tail  # else a list, or the verb goes on


def _begins_with(text: str, words: frozenset[str]) -> bool:
    """Whether a text begins with one of the words, or an adverb and a comma."""
    first = text.split(maxsplit=1)[0].lower().replace("’", "'")
    is_known = not words.isdisjoint((first.rstrip(","), first.split("'")[0]))
    return is_known or first.endswith("ly,")


def _can_stand(line: str) -> bool:
    """Whether a line is a main clause that needs no other sentence."""
    clause = _ASIDE.sub(" ", _SOURCE.sub("", line).rstrip(" ."))
    main = re.sub(r"['’]s\b|\b[A-Z]\w+", "", _CLAUSE.split(clause)[0])
    return (
        count_words(line) >= _MIN_WORDS
        and not _begins_with(line, _OPENINGS | _REFERRING)
        and line[0] not in "'\"“‘`(["
        and not (line[0].islower() and any(map(str.isupper, line)))
        and _UNFIT.search(line) is None
        and not is_half(line)
        and is_closed(line)
        and has_verb(main)
        and sentence_confidence(line) >= _MIN_CONFIDENCE
    )
