"""Merges the summaries of a document's passages into one summary.

    passages     A. B.     B. C.     D. E.
    repeated               B.
    merged       A. B. C. D.

This is like summarizing several documents about one subject. The method follows Gillick
and Favre (2009). The concepts of a summary are its pairs of consecutive words. The
value of a concept is the number of passages whose summary has it. Sentences are added
in the order of the value of their new concepts per word.
"""

import itertools
import math
from collections import Counter
from collections.abc import Sequence, Set
from typing import NamedTuple

from precis.model.inference.summarizer import Summary, join_summaries
from precis.model.text.language import ENGLISH
from precis.model.text.sentences import split_sentences
from precis.model.text.stop_words import stop_words
from precis.model.text.words import words

# A sentence is a repetition if a larger share of its concepts is covered already.
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

    The summary of the first passage is kept whole, as it covers the beginning of the
    document. Sentences of the other passages are added until they are as long as
    `length - 1` summaries. Repetitions are left out. The sentences keep the order of
    the document.

    Args:
      passages: the summaries of each passage, best first, in document order.
      length: the approximate length of the result, in mean lengths of a passage's
        summary; 0 means the square root of the number of passages.
      language: the language of the document; it decides which words are stop words.

    Returns:
      One summary, or none if no passage has one. Its score and mean log-probability
      are means, and its margin is the minimum, over the passages that it has
      sentences of.
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
    stops = stop_words(language)
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

    If a sentence has no such pair, the whole sentence is its concept.
    """
    pairs = itertools.pairwise(sentence)
    concepts = frozenset(
        pair for pair in pairs if not stops >= {*map(str.casefold, pair)}
    )
    return concepts or frozenset([tuple(sentence)])


def _choose(candidates: Sequence[_Candidate], length: float) -> list[_Candidate]:
    """The chosen sentences, in order.

    Args:
      candidates: the sentences.
      length: as in `merge_summaries`, but not 0.
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
        """Whether most of a sentence's concepts are covered."""
        concepts = candidates[place].concepts
        return len(concepts & covered) > _MAX_REPEATED_SHARE * len(concepts)

    def value(place: int) -> float:
        """The value of a sentence's new concepts, per word."""
        new = candidates[place].concepts - covered
        return sum(values[each] for each in new) / candidates[place].words

    rest = list(range(len(candidates)))
    while rest:
        if candidates[rest[0]].passage == candidates[0].passage:
            place = rest.pop(0)  # the first passage is kept whole
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
