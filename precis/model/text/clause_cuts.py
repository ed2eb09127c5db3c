"""Shortens English sentences: rules find parts that can be left out.

    sentence   But the mayor, 61, left the old town, which is in Ohio.
    parts      But | , 61, | , which is in Ohio
    cuts       The mayor left the old town.
               The mayor, 61, left the old town.   and so on

A part lies between two marks, or between a mark and an end of the sentence, so that the
rest is a sentence. At the beginning, parts are conjunctions, weekdays and weeks; at the
end, relative clauses and weekdays. In the middle they are words of captions in brackets
and, if a verb follows, ages, relative clauses and appositions. A part is kept if it
says who claims something, denies or limits something, or has a verb that often is the
news.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from precis.model.text.attribution import attributing_words
from precis.model.text.length_limit import is_closed
from precis.model.text.sentence_confidence import has_verb

_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_WORD = r"[\w'’.$-]+"
_WEEKDAY = re.compile(_DAY, re.IGNORECASE)
_PLAIN = r"[^,;:\"“”()\[\]–—]"  # not a mark that could begin or end another part
# The verb that must follow a part between a subject and its verb.
_VERB = (
    r"(?=\s+(?:is|are|was|were|has|had|have|will|would|can|could|may|might|should|must|"
    r"did|does|do|said|says|told|became|died|won|made|took|came|went|got|began|"
    r"left(?!\s*-)|led|fled|ran|fell|gave|saw|lost|met|held|spent|face|remain|also|"
    r"[a-z]{3,}ed)\b)"
)
# A part with one of these words is kept: the word denies, limits or contradicts
# something, or often is the news of a sentence.
_KEPT = re.compile(
    r"\b(?:not?|never|nor|none|nobody|nothing|neither|cannot|without|hardly|barely|"
    r"rarely|only|except|unless|if|until|whether|but|although|though|while|whereas|"
    r"albeit|assuming|despite|in spite|unlike|instead of|rather than|other than|"
    r"provid(?:ed|ing)|(?:as|so) long as|in case|on condition|"
    r"kill\w*|died|dead|deadly|deaths?|shot|injur\w+|wound\w*|accounts?|"
    r"alleged|suspected|arrest\w*|charged|convicted|sentenced|resign\w*|"
    r"jail\w*|murder\w*|fired)\b|n ?['’]t\b",
    re.IGNORECASE,
)
_OPENING_BUT = re.compile(r"\W*but\b", re.IGNORECASE)

_BEGINNINGS = (
    # But the mayor left. However, the mayor left.
    r"(?:but|and)\s+(?!,|for\b|if\b|when\b|another\b|to\b|far\b|long\b|many\b|"
    r"much\b|often\b|too\b|then\b|now\b|yet\b|not\b|even\b|said\b|"
    r"(?:is|are|was|were|do|does|did|has|have)\b)",
    r"(?:however|meanwhile|in addition|moreover|furthermore|nevertheless|of course)"
    r"\s*,\s+",
    # On Monday, the mayor left. Last week, the mayor left.
    rf"(?:(?:on\s+|late\s+|early\s+)?{_DAY}(?:\s+(?:morning|afternoon|evening|night))?|"
    r"(?:last|earlier\s+this)\s+(?:week|month))\s*,\s+"
    rf"(?!\w+ing\b|every\b|(?:a|an|the)\s{_PLAIN}+,|{_WORD}(?:\s+{_WORD}){{0,2}}\s*,)",
)
_MIDDLES = (
    r"\s*\(\s*(?:(?:also|second|third|far|top|bottom)\s+)?(?:pictured|left|right|above|"
    r"below|cent(?:re|er)|front|back|top|bottom|inset|cnn)(?:\s+\w+)?\s*\)"
    rf"(?:(?=\s*[.;]|\s+(?:and|or|of|to|in|on|at|for|with|from|by|as|after|during|"
    rf"ahead|says|believes|who)\s)|{_VERB})",
    rf"\s+(?:--|–|—)\s+(?!and\b|or\b)[^\"“”–—-]{{3,90}}?\s+(?:--|–|—){_VERB}",
    rf"\s*,\s*\d{{1,3}}\s*,{_VERB}",
    rf"\s*,\s+(?:who|whose|which|where)\b{_PLAIN}{{5,90}},{_VERB}",
    r"\s*,\s+(?:a|an|the|one of|now|also|however|meanwhile|too)\b"
    rf"{_PLAIN}{{0,90}},{_VERB}",
)
_ENDS = (
    # The mayor left the town, where he was born.
    rf"\s*,\s+(?:who|whom|whose|which|where)\s{_PLAIN}+$",
    # The mayor left on Monday.
    rf"(?<!m)(?<!m\.)(?<!ed)(?<!ing)(?<!sheffield)\s+(?:on\s+|last\s+|this\s+)?{_DAY}$",
)
_BEGINNING = re.compile("|".join(_BEGINNINGS), re.IGNORECASE)
_MIDDLE = re.compile("|".join(_MIDDLES), re.IGNORECASE)
_END = re.compile("|".join(_ENDS), re.IGNORECASE)

# A text that begins so needs another clause.
_OPENING = re.compile(
    r"(?:(?:but|and|so|yet|just|even|only|perhaps)\s+,?\s*|"
    r"[^,]{1,40},\s+(?=when\b|while\b|as\b|if\b|after\b))?"
    r"(?:after|although|as|because|before|if|once|since|though|unless|until|what|when|"
    r"whenever|where|while|who|whoever|why|how|in|on|at|by|with|for|from|despite|"
    r"during)\b[^,]*$",
    re.IGNORECASE,
)
# If a sentence begins so, its first comma ends this phrase.
_INTRODUCES = re.compile(
    r"(?:according|in|on|at|by|with|for|from|to|of|as|after|before|when|while|if|since|"
    r"despite|during|under|over|like|among|amid|\w+ing|\w+ly)\b",
    re.IGNORECASE,
)
# `It was the mayor, who left` and `That is the view of many, who left` need the end.
_CLEFT = re.compile(
    r"\b(?:it|that|this|these|those)(?: ?['’]s| is| was| are| were)\b", re.IGNORECASE
)
# `Not only` needs its `but`, `both` its `and`.
_HALF = re.compile(
    r"\bnot (?:only|just|merely|simply)\b(?!.*\bbut\b)|\bboth\b(?!.*\band\b)",
    re.IGNORECASE,
)
# A word or mark that cannot end a sentence.
_OPEN_END = re.compile(
    r"(?:,|\b(?:a|an|the|and|or|to|on|until|till|next|by|from|between|black|good|"
    r"easter|super|boxing|every|each|for|before|after|since|through|of|in|than|as|this|"
    r"last|"
    r"late|early|earlier|later|about|around|with|at|is|are|was|were|be|been|due|set|"
    r"even|just|over|starts?|begins?|opens?|ends?|\w+ly))\s*\.$",
    re.IGNORECASE,
)
_MIN_WORDS = 6
_MOST_PARTS = 6  # parts of a sentence that are tried
_MOST_TOGETHER = 3  # parts left out at once


def cut_sentence(sentence: str) -> list[str]:
    """Returns the distinct shorter sentences, without one or several parts.

    Args:
      sentence: an English sentence in the normal form of `one_line`.
    """
    parts = sorted(set(_parts(sentence)))[:_MOST_PARTS]
    cuts: dict[str, None] = {}
    for count in range(1, _MOST_TOGETHER + 1):
        for chosen in itertools.combinations(parts, count):
            if all(left[1] <= right[0] for left, right in itertools.pairwise(chosen)):
                text = _without(sentence, chosen)
                if _is_sentence(text, sentence):
                    cuts[text] = None
    return list(cuts)


def _parts(sentence: str) -> Iterator[tuple[int, int]]:
    """Yields where each part begins and ends."""
    start = 0
    while found := _BEGINNING.match(sentence, start):
        yield found.span()
        start = found.end()
    for found in _MIDDLE.finditer(sentence, start):
        # After an earlier comma, this part may be an item of a list.
        before = sentence[start : found.start()]
        is_first = "," not in before and _INTRODUCES.match(before) is None
        is_one_of_many = "(" in found[0] and sentence.count("(") > 1
        if (is_first or "," not in found[0]) and not (
            is_one_of_many or qualifiers(found[0])
        ):
            yield found.span()
    if sentence.endswith("."):
        text = sentence[:-1].rstrip()
        for found in _END.finditer(text, start):
            before = text[: found.start()]
            # If there are two weekdays, both are kept: the sentence may compare them.
            needs = _CLEFT if "," in found[0] else _WEEKDAY
            if needs.search(before) is None and not qualifiers(found[0]):
                yield found.start(), len(text)


def qualifiers(text: str) -> Counter[str]:
    """Counts the words of a text that must be kept, except a `But` at its beginning.
    Words that say who claims something are counted as `said`.
    """
    start = match.end() if (match := _OPENING_BUT.match(text)) else 0
    found = map(str.lower, _KEPT.findall(text, start))
    return Counter([*found, *("said" for _ in attributing_words(text))])


def is_half(text: str) -> bool:
    """Whether a text has one half of a pair such as `not only` and `but`, or begins
    with a speaker whose claim began before it: `Police warned, the mayor left`.
    """
    speaker, comma, _ = text.partition(",")
    first, *others = speaker.split() or [""]
    is_speaker = comma and len(others) < 5 and not attributing_words(first)
    return _HALF.search(text) is not None or bool(
        is_speaker and attributing_words(speaker)
    )


def _without(sentence: str, parts: Sequence[tuple[int, int]]) -> str:
    """The sentence without these parts, which are in order and do not overlap."""
    bounds = [0, *itertools.chain.from_iterable(parts), len(sentence)]
    kept = zip(bounds[::2], bounds[1::2], strict=True)
    text = "".join(sentence[start:end] for start, end in kept).strip()
    return text[0].upper() + text[1:] if sentence[0].isupper() else text


def _is_sentence(text: str, sentence: str) -> bool:
    """Whether the rest of a sentence is a sentence: long enough, with a verb and closed
    quotations, no clause that needs another clause, and no new open end.
    """
    return (
        len(text.split()) >= _MIN_WORDS
        and is_closed(text)
        and has_verb(text)
        and not text.startswith("'")  # of a quotation
        and _OPENING.match(text) is None
        and not is_half(text)
        and (_OPEN_END.search(text) is None or text[-6:] == sentence[-6:])
    )
