"""Whether a line lost its attribution: rules for English, in any case.

    sentence   The man, 35, shot a guard and fled, police said on Monday.
    clauses    The man | 35 | shot a guard and fled | police said on Monday
    claim      The man, 35, shot a guard and fled
    lost       The man shot a guard.
    kept       The man shot a guard, according to police.

A line has lost its attribution if it states words that its sentence has only within a
claim, and has no attributing word. Its sentence is the sentence of the article that
shares most words with the line.
"""

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from precis.model.text.porter import stem
from precis.model.text.sentence_confidence import has_verb
from precis.model.text.stop_words import STOP_WORDS
from precis.model.text.words import words

# Verbs that nearly always tell what somebody says or thinks.
_SAYING = frozenset(
    "said say says saying told tells telling alleges alleging believed believe "
    "believes believing thought think thinks thinking insisted insist insists "
    "insisting argued argue argues arguing contended contend contends testified "
    "tweeted claiming warning suggesting adding reporting denying stating".split()
)
# Verbs that do so as a separate clause, or before `that` or a pronoun: `claimed he`.
_TELLING = frozenset(
    "added adds announced announces reported report reports warned warn warns stated "
    "denied deny denies admitted admit admits "
    "confirmed confirms revealed reveals wrote writes suggested suggest suggests "
    "acknowledged explained explains noted estimated estimate predicted predict "
    "predicts feared heard hears expect expects concluded complained found "
    "ruled".split()
)
# Verbs that do so before a name and a verb too: `claims Oslo owes it`.
_SUSPECTING = frozenset(
    "alleged allege claimed claim claims fear fears suspect suspects".split()
)
_ADMITTING = frozenset("admitted admit admits acknowledged".split())
# Verbs that do so before a person and `of`: `accused Smith of theft`.
_ACCUSING = frozenset("accused accuse accuses suspected suspect suspects".split())
# Participles that do so before `to`, `of` or `with`.
_PASSIVE = frozenset(
    "believed thought alleged claimed reported feared expected accused suspected "
    "rumored rumoured charged".split()
)
_ADVERBS = frozenset("allegedly reportedly purportedly supposedly apparently".split())
_ADJECTIVES = frozenset("alleged suspected purported reported rumored rumoured".split())
_VERBS = _SAYING | _TELLING | _SUSPECTING
_ATTRIBUTING = _VERBS | _PASSIVE | _ADVERBS | _ADJECTIVES
_ATTRIBUTING |= set(
    "according accuse accuses feels calls finds whether likely citing tell".split()
)
_ATTRIBUTING -= {"found", "ruled", "charged"}  # `was found`, `ruled out`
_BE = frozenset("is are was were be been".split())
_DETERMINERS = frozenset(["", *"a an the his her its their this that these".split()])
_NO_CLAIMS = frozenset("about goodbye farewell hello nothing of sorry".split())
_RELATIVES = frozenset("who whom which that when where what how why".split())
_NO_SUBJECTS = _RELATIVES | {"to"}
_SUBORDINATE = _RELATIVES.union("while and but because after before if as".split())
_SPEAKERS = frozenset("he she it they we i".split())
_PRONOUNS = _SPEAKERS.union("that there his her their".split())
_DAYS = frozenset("monday tuesday wednesday thursday friday saturday sunday".split())
# Words that may follow a verb after its claim: `said on Monday`.
_ASIDES = _DAYS.union("in on at to of by during after via late early as".split())
_MOST_ASIDE = 8  # words
_MOST_NAME = 6
_NO_NAMES = frozenset("and lead lives".split())  # `claimed two lives and left`
_SPEAKER = re.compile(r"[^:\"“]{2,40}:\s")
_BREAK = re.compile(r",(?!\d)|[;:?!\"“”()]|\s[-–—]+\s|``|''|(?:^|\s)['‘]|['’](?:\s|$)")
# A sentence supports a line if it has these shares: of the line's words, without stop
# words, and of the most words that any sentence has.
_LEAST_SHARED = 0.7
_NEAR_MOST = 0.9


class _Claim(NamedTuple):
    """A claim that a sentence attributes to somebody.

    Attributes:
      verb: the attributing word.
      words: the stems of the claim's words, without stop words.
      others: the stems of the words around the claim.
    """

    verb: str
    words: set[str]
    others: set[str]


def loses_attribution(lines: Sequence[str], sentences: Mapping[str, str]) -> bool:
    """Whether a line states as a fact what the article attributes to somebody.

    The line before it may hold the attribution, if both are from the same sentence. If
    several sentences support a line, all of them must attribute what it states.

    Args:
      lines: the lines of a summary.
      sentences: the words of each sentence of the article, joined by spaces, by its
        text.
    """
    contents = {
        text: frozenset(map(_stem, each.split())) for text, each in sentences.items()
    }
    told: set[str] = set()
    for line in lines:
        if line in contents:
            told = {line}
            continue
        content = _content(words(line))
        sources = _supporting(content, contents)
        if attributes(line):
            told = sources
        elif sources and told.isdisjoint(sources):
            if all(_states_claim(content, source) for source in sources):
                return True
    return False


def attributes(line: str) -> bool:
    """Whether a line says that somebody says or thinks something, or begins with a
    speaker and a colon.
    """
    return _SPEAKER.match(line) is not None or bool(attributing_words(line))


def attributing_words(line: str) -> list[str]:
    """The words of a line that say that somebody says or thinks something, without
    adjectives as in `the reported theft`.
    """
    return [
        token
        for before, token in itertools.pairwise(["", *words(line)])
        if token in _ATTRIBUTING
        and not (token in _ADJECTIVES and before in _DETERMINERS)
    ]


def _supporting(content: set[str], contents: Mapping[str, frozenset[str]]) -> set[str]:
    """The sentences that have most of the words of a line."""
    shared = {text: len(content & each) for text, each in contents.items()}
    most = max(shared.values(), default=0)
    if len(content) < 2 or most < _LEAST_SHARED * len(content):
        return set()
    return {text for text, count in shared.items() if count >= _NEAR_MOST * most}


def _states_claim(content: set[str], sentence: str) -> bool:
    """Whether a line without attribution states a claim of a sentence.

    Args:
      content: the stems of the line's words, without stop words.
      sentence: the text of the sentence.
    """
    for claim in _claims(sentence):
        stated = len(content & (claim.words - claim.others))
        shared = len(content & (claim.words | claim.others))
        if _stem(claim.verb) not in content and (
            stated >= 2 or 0 < shared <= 2 * stated
        ):
            return True
    return False


def _claims(sentence: str) -> Iterator[_Claim]:
    """The claims of a sentence."""
    clauses = [each for each in map(words, _BREAK.split(sentence)) if each]
    for number, clause in enumerate(clauses):
        following = itertools.takewhile(_goes_on, clauses[number + 1 :])
        before, behind = _content(*clauses[:number]), _content(*following)
        for place, word in enumerate(clause):
            head, rest = clause[:place], clause[place + 1 :]
            around = before | behind | _content(head)
            if _is_hedge(word, head, rest):  # of the next word, or else the previous
                near = [each for each in rest if each not in STOP_WORDS] or head[-1:]
                yield _Claim(word, _content(near[:1]), set())
            elif _is_charge(word, head, rest):
                end = _charge_end(head, rest)
                others = around | _content(rest[end:])
                yield _Claim(word, _content(rest[:end]), others)
            elif word == "according":
                yield _Claim(word, around, _content(rest))
            elif word not in _VERBS or not _NO_SUBJECTS.isdisjoint(head[-1:]):
                continue
            elif number and _is_alone(clause, place, len(clauses)):
                yield _Claim(word, before | behind, _content(clause))
            elif not _RELATIVES.isdisjoint(head[-2:]):  # `, who police say is ill,`
                yield _Claim(word, _content(rest), around)
            elif _opens_claim(word, head, rest):
                others = before | _content(head)
                yield _Claim(word, _content(rest) | behind, others)


def _content(*clauses: Iterable[str]) -> set[str]:
    """The stems of words, without stop words."""
    return {
        _stem(each) for clause in clauses for each in clause if each not in STOP_WORDS
    }


@functools.lru_cache(1 << 16)
def _stem(word: str) -> str:
    """The word, or the stem of `killed` and `killing`."""
    is_form = word.endswith(("ed", "ing")) and word.isascii() and word.isalnum()
    return stem(word) if is_form else word


def _goes_on(clause: list[str]) -> bool:
    return clause[0] not in ("and", "but")


def _is_hedge(word: str, head: list[str], rest: list[str]) -> bool:
    """Whether a word says that the next word is only alleged."""
    is_noun_behind = not _PRONOUNS.union(("to", "of")).isdisjoint(rest[:1])
    return word in _ADVERBS or (
        word in _ADJECTIVES
        and not is_noun_behind
        and (word not in _VERBS or not _DETERMINERS.isdisjoint(head[-1:]))
    )


def _is_charge(word: str, head: list[str], rest: list[str]) -> bool:
    """Whether a word is the verb of `is said to`, `is accused of` or `accused Smith
    of`.
    """
    if word == "said":
        return rest[:1] == ["to"] and not _BE.isdisjoint(head[-1:])
    is_passive = word in _PASSIVE and rest[:1] in (["to"], ["of"], ["with"])
    return is_passive or (word in _ACCUSING and "of" in rest[1:_MOST_NAME])


def _charge_end(head: list[str], rest: list[str]) -> int:
    """Where `to be the oldest in Oslo` ends: at `and`, or at the next verb."""
    may_go_on = _BE.isdisjoint(head[-2:])  # `The man believed to be the oldest died`
    start = next(n for n, each in enumerate(rest) if each in ("to", "of", "with"))
    for place, each in enumerate(rest):
        if each == "and" or (may_go_on and place > start + 3 and has_verb(each)):
            return place
    return len(rest)


def _is_alone(clause: list[str], place: int, count: int) -> bool:
    """Whether a clause with a verb of saying only attributes the other clauses."""
    rest = clause[place + 1 :]
    if clause[0] in _SUBORDINATE or clause[place].endswith("ing"):
        return False
    if not place:  # `, said the police`, but not `The mayor, 61, said the town is old`
        return count == 2 or len(rest) < 4
    is_aside = not rest or rest[0] in _ASIDES or clause[place] in ("told", "tells")
    return is_aside and len(rest) <= _MOST_ASIDE and "that" not in rest


def _opens_claim(word: str, head: list[str], rest: list[str]) -> bool:
    """Whether the words after a verb are what somebody says."""
    if word in ("told", "tells"):
        return "to" not in rest[:4]  # but an order
    if not _NO_CLAIMS.isdisjoint(rest[:1]):
        return False
    if word in _ADMITTING and not _SPEAKERS.isdisjoint(rest[:2]):
        return False  # of what the speaker did
    behind_day = rest[1:] if rest and rest[0] in _DAYS else rest
    if word in _SAYING or not _PRONOUNS.isdisjoint(behind_day[:1]):
        return True
    if rest and rest[0] in _ASIDES:  # `wrote on Monday that`
        that = rest.index("that") if "that" in rest[:_MOST_NAME] else len(rest)
        return that + 1 < len(rest) and not has_verb(rest[that + 1])
    name = itertools.takewhile(lambda each: each not in _NO_NAMES, rest[:_MOST_NAME])
    first, *others = [re.split("['-]", each)[0] for each in name] or [""]
    return (
        word in _SUSPECTING
        and not (has_verb(first) or first.endswith("ing"))
        and has_verb(" ".join(others))
        and _DETERMINERS.isdisjoint(head[-1:])
    )
