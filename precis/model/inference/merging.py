"""One summary from the summaries of the passages of a document.

    passages     A. B.     B. C.     D. E.
    repeated               B.
    merged       A. B. C. D.

To merge them is to summarize several documents about one subject. The method follows
Gillick and Favre (2009): the concepts of a summary are its pairs of consecutive words,
a concept is worth as much as there are passages whose summary has it, and sentences
are added whose new concepts are worth most for their length.
"""

import itertools
import math
from collections import Counter
from collections.abc import Sequence, Set
from typing import NamedTuple

from precis.model.inference.summarizer import Summary, join_summaries
from precis.model.text.language import ENGLISH, is_english
from precis.model.text.sentences import split_sentences
from precis.model.text.stop_words import STOP_WORDS
from precis.model.text.words import words

# A sentence repeats others if they have a larger share of its concepts.
_MAX_REPEATED_SHARE = 0.5


class _Candidate(NamedTuple):
    """A sentence of a passage's summary.

    Attributes:
      passage: the number of the passage.
      text: the sentence.
      words: its length in words.
      concepts: its pairs of words.
    """

    passage: int
    text: str
    words: int
    concepts: frozenset[tuple[str, ...]]


def merge_summaries(
    passages: Sequence[Sequence[Summary]],
    *,
    length: float = 0.0,
    language: str = ENGLISH,
) -> list[Summary]:
    """Merges the best summary of each passage.

    The summary of the first passage is kept whole, because it says what a reader of
    the beginning learns. Sentences of the other passages are added until they are as
    long as `length - 1` summaries. Repetitions are left out. The sentences come in the
    order of the document.

    Args:
      passages: the summaries of each passage, best first, in document order.
      length: about the length of the result, in mean lengths of a passage's summary;
        0 is the square root of the number of passages.
      language: of the document. Except in English, pairs of stop words are
        concepts too.

    Returns:
      One summary, or none if no passage has one. Its score and its mean
      log-probability are the means over the passages it has sentences of; its margin
      is the smallest of theirs.
    """
    written = [ranked[0] for ranked in passages if ranked]
    if not written:
        return []
    candidates = _candidates(written, language)
    chosen = _choose(candidates, length or math.sqrt(len(passages)))
    parts = [written[each] for each in sorted({each.passage for each in chosen})]
    text = "\n".join(candidate.text for candidate in chosen)
    return [join_summaries(text, parts or written)]


def _candidates(summaries: Sequence[Summary], language: str) -> list[_Candidate]:
    """The sentences of all summaries, in order."""
    stops = STOP_WORDS if is_english(language) else frozenset[str]()
    return [
        _Candidate(
            passage, each.text, len(sentence_words), _concepts(sentence_words, stops)
        )
        for passage, summary in enumerate(summaries)
        for each in split_sentences(summary.text, language=language)
        if (sentence_words := words(each.text))
    ]


def _concepts(sentence: Sequence[str], stops: Set[str]) -> frozenset[tuple[str, ...]]:
    """The pairs of consecutive words that are not both stop words.

    A sentence without such a pair is a concept itself.
    """
    pairs = itertools.pairwise(sentence)
    concepts = frozenset(pair for pair in pairs if not stops >= set(pair))
    return concepts or frozenset([tuple(sentence)])


def _choose(candidates: Sequence[_Candidate], length: float) -> list[_Candidate]:
    """The chosen sentences, in order.

    Args:
      candidates: the sentences.
      length: about the length of the result, in mean lengths of a passage's summary.
    """
    if not candidates:
        return []
    of_passages = {(each.passage, one) for each in candidates for one in each.concepts}
    values = Counter(concept for _, concept in of_passages)
    passages = len({each.passage for each in candidates})
    words_left = (length - 1) * sum(each.words for each in candidates) / passages
    chosen: list[int] = []
    covered: set[tuple[str, ...]] = set()

    def repeats(place: int) -> bool:
        """Whether a sentence says mostly what is covered."""
        concepts = candidates[place].concepts
        return len(concepts & covered) > _MAX_REPEATED_SHARE * len(concepts)

    def value(place: int) -> float:
        """What the concepts that are not yet covered are worth, for each word."""
        new = candidates[place].concepts - covered
        return sum(values[each] for each in new) / candidates[place].words

    rest = list(range(len(candidates)))
    while rest:
        if candidates[rest[0]].passage == candidates[0].passage:
            place = rest.pop(0)  # all of the first passage
            if repeats(place):
                continue
        else:
            rest = [each for each in rest if not repeats(each)]
            if not rest or words_left <= 0:
                break
            place = max(rest, key=value)  # the first of equal values
            words_left -= candidates[place].words
        chosen.append(place)
        covered |= candidates[place].concepts
    return [candidates[place] for place in sorted(chosen)]
