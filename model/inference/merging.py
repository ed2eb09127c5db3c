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
from collections.abc import Sequence
from typing import NamedTuple

from precis.model.inference.summarizer import Summary
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
    passages: Sequence[Sequence[Summary]], *, length: float = 0.0
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

    Returns:
      One summary, or none if no passage has one. Its score and its mean
      log-probability are the means over the passages it has sentences of; its margin
      is the smallest of theirs.
    """
    written = [ranked[0] for ranked in passages if ranked]
    if not written:
        return []
    candidates = _candidates(written)
    chosen = _choose(candidates, length or math.sqrt(len(passages)))
    used = sorted({candidates[place].passage for place in chosen})
    parts = [written[passage] for passage in used] or written
    margins = [part.margin for part in parts if part.margin is not None]
    return [
        Summary(
            "\n".join(candidates[place].text for place in chosen),
            sum(part.score for part in parts) / len(parts),
            sum(part.mean_log_prob for part in parts) / len(parts),
            min(margins, default=None),
        )
    ]


def _candidates(summaries: Sequence[Summary]) -> list[_Candidate]:
    """The sentences of all summaries, in order."""
    return [
        _Candidate(
            passage,
            sentence.text,
            len(sentence_words),
            _concepts(sentence_words),
        )
        for passage, summary in enumerate(summaries)
        for sentence in split_sentences(summary.text)
        if (sentence_words := words(sentence.text))
    ]


def _concepts(sentence: Sequence[str]) -> frozenset[tuple[str, ...]]:
    """The pairs of consecutive words that are not both stop words.

    A sentence without such a pair is a concept itself.
    """
    pairs = itertools.pairwise(sentence)
    concepts = frozenset(pair for pair in pairs if not STOP_WORDS.issuperset(pair))
    return concepts or frozenset([tuple(sentence)])


def _choose(candidates: Sequence[_Candidate], length: float) -> list[int]:
    """The places of the chosen sentences, in order.

    Args:
      candidates: the sentences.
      length: about the length of the result, in mean lengths of a passage's summary.
    """
    if not candidates:
        return []
    by_passage: dict[int, set[tuple[str, ...]]] = {}
    for candidate in candidates:
        by_passage.setdefault(candidate.passage, set()).update(candidate.concepts)
    values = Counter(itertools.chain.from_iterable(by_passage.values()))
    total_words = sum(candidate.words for candidate in candidates)
    words_left = (length - 1) * total_words / len(by_passage)

    chosen: list[int] = []
    covered: set[tuple[str, ...]] = set()
    first = [each for each in candidates if each.passage == candidates[0].passage]
    rest = list(range(len(first), len(candidates)))
    for place, candidate in enumerate(first):
        if not _repeats(candidate, covered):
            chosen.append(place)
            covered |= candidate.concepts
    while words_left > 0:
        rest = [each for each in rest if not _repeats(candidates[each], covered)]
        if not rest:
            break
        # Of equal values `max` takes the first.
        place = max(rest, key=lambda each: _value(candidates[each], values, covered))
        chosen.append(place)
        covered |= candidates[place].concepts
        words_left -= candidates[place].words
    return sorted(chosen)


def _value(
    candidate: _Candidate,
    values: Counter[tuple[str, ...]],
    covered: set[tuple[str, ...]],
) -> float:
    """What the concepts that are not yet covered are worth, for each word."""
    return sum(values[each] for each in candidate.concepts - covered) / candidate.words


def _repeats(candidate: _Candidate, covered: set[tuple[str, ...]]) -> bool:
    """Whether the sentence says mostly what is covered."""
    repeated = len(candidate.concepts & covered)
    return repeated > _MAX_REPEATED_SHARE * len(candidate.concepts)
