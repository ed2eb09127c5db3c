"""Selection by expected ROUGE: how many sentences to take, and which ones.

Each n-gram of the document is in the reference with a probability p. The number of
n-grams that a summary shares with the reference is then expected to be the sum of p
over its distinct n-grams, for words and for pairs of words:

    expected F1 = 2 x shared / (n-grams of the summary + n-grams of the reference)

An n-gram counts once, as in Gillick and Favre (2009), so a repetition only adds length.
A sentence that adds more length than shared n-grams lowers F1; this decides how many
sentences a summary has.

An option is one wording of a sentence of the document; a summary has at most one option
for each sentence. The search adds, removes or replaces one option at a time while that
raises the value.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.references import ExpectedReference
from precis.model.extractive.threads import single_thread
from precis.model.rouge import tokenize
from precis.model.text.boilerplate import is_page_sentence
from precis.model.text.language import ENGLISH, is_english
from precis.model.text.length_limit import NO_LENGTH_LIMIT, LengthLimit, Size, line_size
from precis.model.text.sentence_confidence import sentence_confidence
from precis.model.text.words import number_of_words

# ROUGE-2 differs less between summaries than ROUGE-1 does.
_PAIR_WEIGHT = 3.0
_MIN_GAIN = 1e-9  # a smaller gain is a rounding error
# The search is over this many sentences, the ones with the highest scores.
_OPTIONS = 12
# A sentence with fewer words is a heading or a fragment, in any language.
_MIN_WORDS = 3
# Least `sentence_confidence` of an English sentence of a summary.
_MIN_CONFIDENCE = 0.7


class Option(NamedTuple):
    """A sentence, or another wording of it, that a summary may have.

    Attributes:
      place: the index of the sentence; a summary has at most one option per place.
      words: int64 [W], the words as ROUGE tokenizes them, by their numbers.
      size: the size that a length limit counts.
      cost: a penalty in F1; the penalty of a summary is the mean over its options.
    """

    place: int
    words: np.ndarray
    size: Size = Size(0, 0)
    cost: float = 0.0


def expected_rouge2(
    summary: str, reference: ExpectedReference, language: str | None = ENGLISH
) -> float:
    """The expected ROUGE-2 F1 of a summary, from 0 to 1.

    Pairs of words that are not in the document count as not in the reference.

    Args:
      summary: one sentence per line.
      reference: the predicted reference.
      language: the language of the document.
    """
    pairs = list(itertools.pairwise(tokenize(summary, language)))
    shared = sum(reference.of_pairs(list(dict.fromkeys(pairs))))
    length = len(pairs) + max(reference.length - 1.0, 0.0)
    return 2.0 * shared / max(length, 1.0)


def choose_options(
    options: Sequence[Option],
    reference: ExpectedReference,
    *,
    most: int,
    limit: LengthLimit = NO_LENGTH_LIMIT,
    length_cost: float = 0.0,
) -> list[int]:
    """Chooses the options whose summary has the highest expected ROUGE-1 and ROUGE-2.

    Args:
      options: the options of one document.
      reference: the predicted reference of the document.
      most: the maximum number of options in a summary, at least 1.
      limit: the length limit of the summary.
      length_cost: the penalty, in F1, of a summary as long as its reference.

    Returns:
      The indices of the chosen options, ascending; empty if no option fits the limit.
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
    """Yields every summary that adds, removes or replaces one option."""
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
    """Returns a function from S sets of options to their values, float64 [S]."""
    words = [option.words for option in options]
    lengths = np.array(list(map(len, words)), np.float64)
    of_words, of_pairs = reference.members(words)
    of_reference = max(reference.length - 1.0, 0.0)
    kinds = [
        (1.0, of_words, lengths, reference.length),
        (_PAIR_WEIGHT, of_pairs, np.maximum(lengths - 1.0, 0.0), of_reference),
    ]
    costs = np.array([option.cost for option in options], np.float64)
    length_costs = length_cost * lengths / max(reference.length, 1.0)

    def values(summaries: Sequence[Sequence[int]]) -> np.ndarray:
        chosen = np.zeros((len(summaries), len(options)))
        rows = np.repeat(np.arange(len(summaries)), list(map(len, summaries)))
        chosen[rows, list(itertools.chain.from_iterable(summaries))] = 1.0
        counts = np.maximum(chosen.sum(axis=1), 1.0)
        total = -(chosen @ costs / counts) - chosen @ length_costs
        for weight, (members, importance), of_options, of_reference in kinds:
            shared = (chosen @ members > 0) @ importance
            length = chosen @ of_options + of_reference
            total += weight * 2.0 * shared / np.maximum(length, 1.0)
        return total

    return values


def select_expected(
    sentences: Sequence[str],
    scores: np.ndarray,
    expected: ExpectedReference,
    *,
    selection: SelectionConfig,
    language: str | None = ENGLISH,
) -> list[int]:
    """Selects the `best_sentences` that together have the highest expected ROUGE, and
    returns their indices, the best score first.

    Args:
      sentences: the sentences of the document, at least one.
      scores: float64 [N], the scores of a selector, from 0 to 1.
      expected: the reference that the same selector predicts.
      selection: the maximum number of sentences and the length limit.
      language: the language of the document.
    """
    options = [
        Option(place, expected.sentences[place], line_size(sentences[place]))
        for place in best_sentences(
            sentences,
            scores,
            count=_OPTIONS,
            limit=selection.limit,
            language=language,
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
    language: str | None = ENGLISH,
) -> list[int]:
    """Returns the indices of the sentences to make a summary from, best first.

    In English, questions, sentences about the web page and sentences that tell nothing
    are left out; in other languages, sentences of one or two words. If none is left,
    all sentences are taken.

    Args:
      sentences: the sentences of the document.
      scores: float64 [N].
      count: the maximum number of sentences.
      limit: the length limit of each sentence.
      language: the language of the document.
    """
    is_taken = _is_informative if is_english(language) else _has_words
    best_first: list[int] = np.argsort(-scores, kind="stable").tolist()
    if limit:
        best_first = [
            place for place in best_first if limit.holds([line_size(sentences[place])])
        ]
    taken = (place for place in best_first if is_taken(sentences[place]))
    return list(itertools.islice(taken, count)) or best_first[:count]


def _is_informative(sentence: str) -> bool:
    """Whether an English sentence tells part of a story without its neighbours."""
    is_question = sentence.rstrip("\"'”’ \n").endswith("?")
    return (
        not is_question
        and sentence_confidence(sentence) >= _MIN_CONFIDENCE
        and not is_page_sentence(sentence)
    )


def _has_words(sentence: str) -> bool:
    """Whether a sentence is long enough not to be a heading or a fragment."""
    return number_of_words(sentence) >= _MIN_WORDS
