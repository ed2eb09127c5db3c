"""Summaries by their expected ROUGE: which sentences, and how many, are likely to share
most with the reference.

If an n-gram of a document stands in its reference with the probability p, a candidate
is expected to share the sum of p over its different n-grams, and

    expected F1 = 2 x shared / (n-grams of the candidate + n-grams of the reference)

for words and for pairs. As in summaries by concepts (Gillick and Favre 2009) an n-gram
counts once, so that a repetition costs length and brings nothing. F1 falls where a
sentence is longer than what it brings, which decides how many sentences there are.

A candidate takes at most one option of each place: the sentence as it stands, or a way
to write it. The search adds, removes or exchanges one option at a time, as long as that
raises the value.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.ngrams import Gram, find_ngrams, find_pairs
from precis.model.extractive.threads import single_thread
from precis.model.rouge import tokenize
from precis.model.text.boilerplate import is_page_sentence
from precis.model.text.length_limit import NO_LENGTH_LIMIT, LengthLimit, Size, line_size
from precis.model.text.sentence_confidence import sentence_confidence
from precis.model.text.words import words

# ROUGE-2 differs less between candidates than ROUGE-1 does.
_PAIR_WEIGHT = 3.0
_MIN_GAIN = 1e-9  # a smaller gain is a rounding error
# The sentences with the best scores that a summary is made of.
_OPTIONS = 12
# A sentence of fewer words is a heading or a remnant, in any language.
_MIN_WORDS = 3
# A sentence of English that is less likely to tell something is not taken.
_MIN_CONFIDENCE = 0.7


class ExpectedReference(NamedTuple):
    """What is expected of the reference of a document.

    Attributes:
      words: the probability of each word of the document to stand in it.
      pairs: the same of each pair of words.
      length: its words.
    """

    words: Mapping[Gram, float]
    pairs: Mapping[Gram, float]
    length: float


class Option(NamedTuple):
    """A sentence that a summary may have.

    Attributes:
      place: the place in the document that it speaks of; a summary has at most one
          option of each.
      words: as ROUGE reads them.
      size: as a limit counts it.
      cost: what speaks against it, in F1; a summary costs the mean of its options.
    """

    place: int
    words: Sequence[str]
    size: Size = Size(0, 0)
    cost: float = 0.0


def expected_rouge2(summary: str, reference: ExpectedReference) -> float:
    """The expected ROUGE-2 F1 of a summary, from 0 to 1.

    A pair of words that the document does not have counts as one that the reference
    does not have.

    Args:
      summary: one sentence a line.
      reference: what is expected of it.
    """
    pairs = find_pairs([tokenize(summary)])
    shared = sum(reference.pairs.get(pair, 0.0) for pair in pairs.grams)
    length = float(pairs.counts.sum()) + max(reference.length - 1.0, 0.0)
    return 2.0 * shared / max(length, 1.0)


def choose_options(
    options: Sequence[Option],
    reference: ExpectedReference,
    *,
    most: int,
    limit: LengthLimit = NO_LENGTH_LIMIT,
    length_cost: float = 0.0,
) -> list[int]:
    """The options whose summary has the highest expected ROUGE-1 and ROUGE-2 F1.

    Args:
      options: of a document.
      reference: what is expected of its reference.
      most: options that a summary has at most, at least 1.
      limit: the length of a summary, at most.
      length_cost: what a summary as long as its reference costs, in F1.

    Returns:
      Their positions, ascending; none only where no option is short enough.
    """
    values_of = _value_function(options, reference, length_cost)
    places = [option.place for option in options]
    chosen: list[int] = []
    best = -np.inf
    with single_thread():
        while True:
            changes = [
                change
                for change in _changes(chosen, places, most)
                if not limit or limit.holds(options[each].size for each in change)
            ]
            if not changes:
                return sorted(chosen)
            scores = values_of(changes)
            number = int(scores.argmax())
            if scores[number] <= best + _MIN_GAIN:
                return sorted(chosen)
            best, chosen = float(scores[number]), changes[number]


def _changes(
    chosen: Sequence[int], places: Sequence[int], most: int
) -> Iterable[list[int]]:
    """Every summary that differs by one option that is added, removed or exchanged."""
    taken = {places[option] for option in chosen}
    for option in range(len(places)):
        if option in chosen:
            continue
        if places[option] not in taken and len(chosen) < most:
            yield [*chosen, option]
        for old in chosen:
            others = [each for each in chosen if each != old]
            if all(places[each] != places[option] for each in others):
                yield [*others, option]
    if len(chosen) > 1:
        for old in chosen:
            yield [each for each in chosen if each != old]


def _value_function(
    options: Sequence[Option], reference: ExpectedReference, length_cost: float
) -> Callable[[Sequence[Sequence[int]]], np.ndarray]:
    """What gives the value of each of many sets of options, float64."""
    words = [list(option.words) for option in options]
    pairs = [list(itertools.pairwise(option.words)) for option in options]
    lengths = [np.array(list(map(len, grams)), np.float64) for grams in (words, pairs)]
    kinds = [
        (1.0, _importance(words, reference.words), lengths[0], reference.length),
        (
            _PAIR_WEIGHT,
            _importance(pairs, reference.pairs),
            lengths[1],
            max(reference.length - 1.0, 0.0),
        ),
    ]
    costs = np.array([option.cost for option in options], np.float64)
    length_costs = length_cost * lengths[0] / max(reference.length, 1.0)

    def values(summaries: Sequence[Sequence[int]]) -> np.ndarray:
        chosen = np.zeros((len(summaries), len(options)))
        for row, of_summary in enumerate(summaries):
            chosen[row, of_summary] = 1.0
        counts = np.maximum(chosen.sum(axis=1), 1.0)
        total = -(chosen @ costs / counts) - chosen @ length_costs
        for weight, (members, importance), of_options, of_reference in kinds:
            shared = (chosen @ members > 0) @ importance
            length = chosen @ of_options + of_reference
            total += weight * 2.0 * shared / np.maximum(length, 1.0)
        return total

    return values


def _importance(
    options: Sequence[Sequence[Gram]], importance: Mapping[Gram, float]
) -> tuple[np.ndarray, np.ndarray]:
    """The n-grams of O options, G different ones: float32 [O, G], 1 where an option has
    an n-gram, and the importance of each, float64 [G].
    """
    ngrams = find_ngrams(options)
    members = np.zeros((len(options), len(ngrams.grams)), np.float32)
    members[ngrams.sentences, ngrams.members] = 1.0
    return members, np.array([importance.get(gram, 0.0) for gram in ngrams.grams])


def select_expected(
    sentences: Sequence[str],
    scores: np.ndarray,
    expected: ExpectedReference,
    *,
    selection: SelectionConfig,
    is_english: bool = True,
) -> list[int]:
    """The indices of the selected ones of the `best_sentences`, the one with the best
    score first.

    Args:
      sentences: of the document, at least one.
      scores: float64 [N], of a selector, from 0 to 1.
      expected: of the reference, by the same selector.
      selection: the number of sentences and their length.
      is_english: as for `best_sentences`.
    """
    options = [
        Option(place, tokenize(sentences[place]), line_size(sentences[place]))
        for place in best_sentences(
            sentences,
            scores,
            count=_OPTIONS,
            limit=selection.limit,
            is_english=is_english,
        )
    ]
    chosen = choose_options(
        options, expected, most=selection.most, limit=selection.limit
    )
    return [options[number].place for number in chosen]


def best_sentences(
    sentences: Sequence[str],
    scores: np.ndarray,
    *,
    count: int,
    limit: LengthLimit = NO_LENGTH_LIMIT,
    is_english: bool = True,
) -> list[int]:
    """The indices of the sentences that a summary may be made of, the best first.

    Those of one or two words are left out, and in English questions, sentences about
    the web page and those that tell nothing, unless the document has no others.

    Args:
      sentences: of the document.
      scores: float64 [N].
      count: how many, at most.
      limit: the length of a sentence, at most.
      is_english: the language of the document.
    """
    is_taken = _is_informative if is_english else _has_words
    best_first: list[int] = np.argsort(-scores, kind="stable").tolist()
    if limit:
        best_first = [
            place for place in best_first if limit.holds([line_size(sentences[place])])
        ]
    taken = (place for place in best_first if is_taken(sentences[place]))
    return list(itertools.islice(taken, count)) or best_first[:count]


def _is_informative(sentence: str) -> bool:
    """Whether a sentence of English tells something of a story by itself."""
    is_question = sentence.rstrip("\"'”’ \n").endswith("?")
    return (
        not is_question
        and sentence_confidence(sentence) >= _MIN_CONFIDENCE
        and not is_page_sentence(sentence)
    )


def _has_words(sentence: str) -> bool:
    """Whether a sentence of any language is no heading or remnant."""
    return len(words(sentence)) >= _MIN_WORDS
