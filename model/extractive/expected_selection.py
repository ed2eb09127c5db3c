"""Selection by expected ROUGE: the sentences of a summary are chosen together, and
their number with them.
"""

from collections.abc import Sequence

import numpy as np

from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.expected import (
    ExpectedReference,
    Option,
    choose_options,
)
from precis.model.extractive.importance import ImportanceModel
from precis.model.extractive.threads import single_thread
from precis.model.rouge import tokenize
from precis.model.text.page_sentences import is_page_sentence
from precis.model.text.words import words

# The sentences with the best scores that a summary is made of.
_OPTIONS = 12
# A sentence of fewer words is a heading or a remnant.
_MIN_WORDS = 3


def expect_reference(
    sentences: Sequence[str], scores: np.ndarray, importance: ImportanceModel
) -> ExpectedReference | None:
    """What an extractor expects of the reference of a document.

    Args:
      sentences: of the document.
      scores: float64 [N], of the extractor, from 0 to 1.
      importance: of the same extractor.

    Returns:
      None where ROUGE reads no words in most of the sentences, as in other alphabets
      than the Latin one.
    """
    tokens = [tokenize(sentence) for sentence in sentences]
    if 2 * sum(map(bool, tokens)) < max(len(tokens), 1):
        return None
    with single_thread():
        return importance.expect(tokens, scores)


def select_expected(
    sentences: Sequence[str],
    scores: np.ndarray,
    expected: ExpectedReference,
    *,
    selection: SelectionConfig,
) -> list[int]:
    """The indices of the selected sentences, the one with the best score first.

    Sentences about the web page and those of one or two words are left out, unless the
    document has no others.

    Args:
      sentences: of the document, at least one.
      scores: float64 [N], of an extractor, from 0 to 1.
      expected: of the reference, by the same extractor.
      selection: the number of sentences and of words, at most.
    """
    options = [
        Option(place, tokenize(sentences[place]), len(words(sentences[place])))
        for place in best_sentences(
            sentences, scores, count=_OPTIONS, max_words=selection.max_words
        )
    ]
    chosen = choose_options(
        options, expected, most=selection.most, max_words=selection.max_words
    )
    return [options[number].place for number in chosen]


def best_sentences(
    sentences: Sequence[str], scores: np.ndarray, *, count: int, max_words: int = 0
) -> list[int]:
    """The indices of the sentences that a summary may be made of, the best first.

    Sentences about the web page and those of one or two words are left out, unless the
    document has no others.

    Args:
      sentences: of the document.
      scores: float64 [N].
      count: how many, at most.
      max_words: the words of a sentence, at most; 0 sets no limit.
    """
    best_first: list[int] = np.argsort(-scores, kind="stable").tolist()
    if max_words:
        best_first = [
            place for place in best_first if len(words(sentences[place])) <= max_words
        ]
    taken = [
        place
        for place in best_first
        if len(words(sentences[place])) >= _MIN_WORDS
        and not is_page_sentence(sentences[place])
    ]
    return (taken or best_first)[:count]
