"""Selection: chooses the sentences of a summary by their scores."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.expected import select_expected
from precis.model.extractive.references import ExpectedReference
from precis.model.text.boilerplate import is_page_sentence
from precis.model.text.language import ENGLISH, is_english
from precis.model.text.length_limit import Size, line_size
from precis.model.text.sentences import Sentence
from precis.model.text.words import ngram_size, words

_UNITS = 10**9  # scores are rounded to the largest score divided by this
_BLOCKED_WORDS = 3  # in a row, that no two sentences share
_BEST = 3  # a headline from a sentence with a lower rank is doubtful


class Extract(NamedTuple):
    """A sentence of an extractive summary.

    Attributes:
      rank: the rank of the sentence in the selection, from 1.
      score: the score of the sentence.
      sentence: the sentence in the article.
      line: the sentence shortened to a headline; empty if it is not shortened.
      is_doubtful: whether it is a headline, and not from one of the best 3 sentences.
    """

    rank: int
    score: float
    sentence: Sentence
    line: str = ""
    is_doubtful: bool = False


def extract(
    sentences: Sequence[Sentence],
    scores: np.ndarray,
    *,
    selection: SelectionConfig,
    is_baseline: bool = False,
    language: str | None = ENGLISH,
    expected: ExpectedReference | None = None,
    known_words: Mapping[str, str] = {},
) -> list[Extract]:
    """Returns the extractive summary of a document, in document order.

    An English headline is the result of `find_headline`, and empty if it finds none.

    Args:
      sentences: all sentences of the document.
      scores: float64 [N], the scores of a method or a network; higher is better.
      selection: the number of sentences, the length limit and the form.
      is_baseline: whether only the score counts. Otherwise sentences that repeat others
          are left out, and sentences about the web page if there are others.
      language: the language of the document.
      expected: the predicted reference; sentences are then chosen together, by the
          expected ROUGE of the summary. None takes the highest scores.
      known_words: the words of a sentence, joined by spaces, by its text.

    Raises:
      ValueError: there is not one score per sentence.
      FloatingPointError: a score is not finite.
    """
    texts = [sentence.text for sentence in sentences]
    rules: dict[str, Any] = {"selection": selection, "language": language}
    selected = select(
        texts, scores, is_baseline=is_baseline, known_words=known_words, **rules
    )
    line = ""
    if selection.is_headline and is_english(language):
        from precis.model.extractive.headlines import find_headline

        found = find_headline(texts, scores, limit=selection.limit)
        selected = [] if found is None else [found.place]
        if found and found.line != " ".join(texts[found.place].split()):
            line = found.line
    elif expected is not None:
        together = select_expected(texts, scores, expected, **rules)
        selected = together or selected
    ranks = {index: rank for rank, index in enumerate(selected, start=1)}
    return [
        Extract(
            ranks[index],
            float(scores[index]),
            sentences[index],
            line,
            selection.is_headline and (scores > scores[index]).sum() >= _BEST,
        )
        for index in sorted(ranks)
    ]


def select(
    sentences: Sequence[str],
    scores: np.ndarray,
    *,
    selection: SelectionConfig,
    is_baseline: bool = False,
    language: str | None = ENGLISH,
    known_words: Mapping[str, str] = {},
) -> list[int]:
    """Returns the indices of the selected sentences, best first.

    If scores are equal, the earlier sentence comes first. Scores are equal if they
    differ by less than a billionth of the largest.

    With trigram blocking (Paulus et al. 2018), no selected sentence shares three words
    in a row with a better one. As in Liu and Lapata (2019), a blocked sentence stays
    out even if fewer sentences than asked for are left.

    Args:
      sentences: the texts of all sentences of the document.
      scores, selection, is_baseline, language, known_words: as for `extract`.

    Raises:
      ValueError: there is not one score per sentence.
      FloatingPointError: a score is not finite.
    """
    if np.shape(scores) != (len(sentences),):
        raise ValueError(
            f"{len(sentences)} sentences need one score each, "
            f"not scores of shape {np.shape(scores)}"
        )
    # For a few sentences lists are faster than arrays.
    values: list[float] = np.asarray(scores, np.float64).tolist()
    for index, value in enumerate(values):
        if not math.isfinite(value):
            raise FloatingPointError(
                f"the score of sentence {index} is not a finite number, so the "
                "sentences cannot be ranked"
            )
    largest = max(map(abs, values), default=0.0) or 1.0
    keys = [-round(value / largest * _UNITS) for value in values]
    skip_boilerplate = is_english(language) and not is_baseline
    is_all_boilerplate: bool | None = None  # computed when it is needed
    blocked = _BLOCKED_WORDS
    if not is_english(language):
        known = known_words.values() or (" ".join(words(each)) for each in sentences)
        blocked = ngram_size(blocked, " ".join(known))
    selected: list[int] = []
    used_ngrams: set[tuple[str, ...]] = set()
    count, limit, sizes = selection.count, selection.limit, list[Size]()
    is_limited = any(limit)
    for index in sorted(range(len(keys)), key=keys.__getitem__):
        if len(selected) == count:
            break
        if skip_boilerplate and is_page_sentence(sentences[index]):
            if is_all_boilerplate is None:
                is_all_boilerplate = all(map(is_page_sentence, sentences))
            if not is_all_boilerplate:
                continue
        if is_limited:
            size = line_size(sentences[index])
            if not limit.holds([*sizes, size]):
                if is_baseline and selected:
                    break  # a baseline does not look for shorter sentences
                continue
        if not is_baseline:
            text = sentences[index]
            sentence = known_words[text].split() if text in known_words else words(text)
            ngrams = set(zip(*(sentence[n:] for n in range(blocked)), strict=False))
            if not used_ngrams.isdisjoint(ngrams):
                continue
            used_ngrams |= ngrams
        selected.append(index)
        if is_limited:
            sizes.append(size)
    return selected
