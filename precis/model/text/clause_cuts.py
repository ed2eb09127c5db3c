"""Sentences without the parts that they can do without, by rules for English.

    sentence   But the mayor, 61, left the old town in May, police said.
    parts      But | , 61, | , police said
    cuts       The mayor left the old town in May.
               The mayor, 61, left the old town in May.   and so on

A part stands between two marks or a mark and an end of the sentence, so that what is
left is a sentence: conjunctions and times before the main clause; brackets, ages,
relative clauses and appositions within it, where a verb goes on behind them; clauses,
appositions and reporting verbs behind it.
"""

import itertools
import re
from collections.abc import Iterator, Sequence

from precis.model.text.limit import is_closed

_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_WORD = r"[\w'’.$-]+"
_PLAIN = r"[^,;:\"“”()\[\]–—]"  # no mark that could begin or end another part
# What goes on behind a part that stood between a subject and its verb.
_VERB = (
    r"(?=\s+(?:is|are|was|were|has|had|have|will|would|can|could|may|might|did|does|do|"
    r"said|says|told|became|died|won|made|took|came|went|got|began|left|led|fled|ran|"
    r"fell|gave|saw|lost|met|held|spent|face|remain|also|"
    r"[a-z]{3,}ed)\b)"
)
_PRONOUN = r"(?:he|she|it|they|we|i|you|his|her|its|their|that|this)"
_REPORTED = r"(?:said|says|reported|added|announced|confirmed)"

# Where it was not said, or is no clause of its own.
_UNSAID = (
    r"(?:no|not|never|nobody|none|neither|cannot|\w*n['’]t|falsely|wrongly|to|i|one|"
    r"would|could|can|may|might|should|if|when|while|as|although|because|who|which|that)"
)

_BEGINNINGS = (
    # But the mayor left. However, the mayor left.
    r"(?:but|and|so|yet)\s+(?!,|for\b|if\b|when\b|another\b|to\b|far\b|long\b|many\b|"
    r"much\b|often\b|too\b|(?:is|are|was|were|do|does|did|has|have)\b)",
    r"(?:however|meanwhile|still|also|now|then|instead|in addition|moreover|"
    r"furthermore|nevertheless|of course|indeed|in fact|ultimately|finally|eventually)"
    r"\s*,\s+",
    # On Monday, the mayor left. Last week, the mayor left.
    rf"(?:(?:on|in|during|at|by|since)\s+|(?:last|earlier|late|this)\s+(?:{_DAY}|week|"
    rf"month|year|morning|afternoon|evening|summer|spring|fall|winter)\s*)"
    rf"(?:{_WORD}\s+){{0,4}}(?:{_WORD}\s*)?,\s+(?!\w+ing\b|every\b|"
    rf"(?:a|an|the)\s{_PLAIN}+,|{_WORD}(?:\s+{_WORD}){{0,2}}\s*,)",
    # Police said Monday that the mayor left.
    rf"(?:(?!{_UNSAID}\b){_WORD}\s+){{1,6}}?(?:said|says|say)\s+"
    rf"(?:(?:on\s+)?{_DAY}\s+)?that\s+(?!{_PRONOUN}\b)",
)
_MIDDLES = (
    r"\s*[(\[][^()\[\]]{1,80}[)\]](?=[\s,.;:])",
    r"\s+(?:--|–|—)\s+[^\"“”–—]{3,120}?\s+(?:--|–|—)(?=\s+\w)",
    rf"\s*,\s*\d{{1,3}}\s*,{_VERB}",
    rf"\s*,\s+(?:who|whose|which|where)\b{_PLAIN}{{5,120}},{_VERB}",
    r"\s*,\s+(?:a|an|the|one of|now|then|also|however|meanwhile|too)\b"
    rf"{_PLAIN}{{0,90}},{_VERB}",
)
# No verb goes on behind a next comma: the part would be one within the sentence.
_NO_VERB = rf"(?!{_PLAIN}*,(?:{_VERB}|\s+to\s|\s+[a-z]+s\b(?!\s+(?:said|say|told)\b)))"
_ENDS = (
    # The mayor left, although nobody had asked him.
    r"\s*,\s+(?:who|whom|whose|which|where|while|although|though|whereas|with|including|"
    rf"according to(?={_PLAIN}+$)|after|before|despite|because|since|following|amid)\b"
    rf"{_NO_VERB}",
    # The mayor left, but the town did not care.
    r"\s*,\s+but\s+(?=(?:he|she|it|they|we|i|you|there|the|a|an|his|her|its|their|this|"
    r"that)\b)",
    r"\s*,\s+and\s+(?:he|she|it|they|we|i|there|\w+\s+(?:is|are|was|were|has|had|have|"
    r"will|would))\b",
    r"\s*,\s+(?!according\b|during\b|morning\b|evening\b|king\b|beijing\b)[a-z]{2,}ing\b"
    rf"(?!\s*,|\s+(?:and|or)\b){_NO_VERB}",
    # The mayor left on Monday.
    rf"(?<!m)(?<!m\.)\s+(?:on\s+|last\s+|this\s+)?{_DAY}$",
    # It is the home of the mayor, a teacher.
    r"\s*,\s+(?:a|an|the|one of)\b(?!\s+(?:more|less)\b|[^,]*(?:,|\band\b|\bor\b))",
    # The mayor left, police told a newspaper. The mayor left, said the police.
    rf"\s*,\s+(?!who\b|which\b){_PLAIN}{{2,60}}\s(?:told\b{_PLAIN}{{2,60}}|{_REPORTED}"
    rf"(?:\s+(?:in|on|at|to|of|by|during|after|late|early|{_DAY})\b{_PLAIN}{{0,60}})?)$",
    rf"\s*,\s+(?:said|says)\s+(?!in\b|on\b|{_DAY}|{_PRONOUN}\b)(?!{_PLAIN}*\bthat\b)"
    rf"{_PLAIN}{{2,80}}$",
)
_BEGINNING = re.compile("|".join(_BEGINNINGS), re.IGNORECASE)
_MIDDLE = re.compile("|".join(_MIDDLES), re.IGNORECASE)
_END = re.compile("|".join(_ENDS), re.IGNORECASE)

# What begins so needs another clause.
_OPENING = re.compile(
    r"(?:(?:but|and|so|yet)\s+,?\s*|[^,]{1,40},\s+(?=when\b|while\b|as\b|if\b|after\b))?"
    r"(?:after|although|as|because|before|if|once|since|though|unless|until|what|when|"
    r"whenever|where|while|who|whoever|why|how|in|on|at|by|with|for|from|despite|"
    r"during)\b[^,]*$",
    re.IGNORECASE,
)
# `Not only` needs its `but`, `both` its `and`.
HALF = re.compile(
    r"\bnot (?:only|just|merely|simply)\b(?!.*\bbut\b)|\bboth\b(?!.*\band\b)",
    re.IGNORECASE,
)
# A word or mark at which no sentence ends.
_OPEN_END = re.compile(
    r"(?:,|\b(?:a|an|the|and|or|to|on|until|till|next|by|from|between|black|good|easter|"
    r"or early|or late|every|each))\s*\.$",
    re.IGNORECASE,
)
_MIN_WORDS = 6
_MOST_PARTS = 6  # of a sentence, that are left out
_MOST_TOGETHER = 3


def cut_sentence(sentence: str) -> list[str]:
    """The sentence without one or several of its parts, each text once.

    Args:
      sentence: of English, in the normal form of `one_line`.
    """
    parts = sorted(set(_parts(sentence)))[:_MOST_PARTS]
    cuts: dict[str, None] = {}
    for count in range(1, _MOST_TOGETHER + 1):
        for chosen in itertools.combinations(parts, count):
            if all(left[1] <= right[0] for left, right in itertools.pairwise(chosen)):
                text = _without(sentence, chosen)
                if _is_sentence(text):
                    cuts[text] = None
    return list(cuts)


def _parts(sentence: str) -> Iterator[tuple[int, int]]:
    """Where each part begins and ends."""
    start = 0
    while found := _BEGINNING.match(sentence, start):
        yield found.span()
        start = found.end()
    for found in _MIDDLE.finditer(sentence, start):
        # A comma before it may belong to it or to a list.
        if "," not in sentence[start : found.start()] or "," not in found[0]:
            yield found.span()
    if sentence.endswith("."):
        text = sentence[:-1].rstrip()
        for found in _END.finditer(text, start):
            yield found.start(), len(text)


def _without(sentence: str, parts: Sequence[tuple[int, int]]) -> str:
    """A sentence without parts that do not overlap, in their order."""
    bounds = [0, *itertools.chain.from_iterable(parts), len(sentence)]
    kept = zip(bounds[::2], bounds[1::2], strict=True)
    text = "".join(sentence[start:end] for start, end in kept).strip()
    return text[0].upper() + text[1:] if sentence[0].isupper() else text


def _is_sentence(text: str) -> bool:
    """Whether a text has words enough, both marks of each quotation, and no clause that
    needs another one.
    """
    return (
        len(text.split()) >= _MIN_WORDS
        and is_closed(text)
        and not text.startswith("'")  # of a quotation
        and _OPENING.match(text) is None
        and HALF.search(text) is None
        and _OPEN_END.search(text) is None
    )
