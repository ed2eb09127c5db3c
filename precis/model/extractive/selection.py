"""Selection: from one score per sentence to the sentences of the summary."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.expected import ExpectedReference, select_expected
from precis.model.extractive.headlines import find_headline
from precis.model.text.boilerplate import is_page_sentence
from precis.model.text.length_limit import Size, line_size
from precis.model.text.sentences import Sentence
from precis.model.text.words import words

# Scores are rounded to so many parts of the largest.
_UNITS = 10**9
# So many sentences of a document are the best.
_BEST = 3


class Extract(NamedTuple):
    """A sentence of an extractive summary.

    Attributes:
      rank: 1 for the first choice.
      score: of the sentence.
      sentence: as the article has it.
      line: what a headline makes of it; empty where it stands as it is.
      is_doubtful: a headline of a sentence that is not among the best three.
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
    is_english: bool = True,
    expected: ExpectedReference | None = None,
    known_words: Mapping[str, str] = {},
) -> list[Extract]:
    """The extractive summary of a document, in document order; in English a headline is
    that of `find_headline`, and there is none where only other sentences fit.

    Args:
      sentences: all sentences of the document.
      scores: float64 [N], of one of `methods.METHODS` or of a network; higher is
          better.
      selection: how many sentences are selected.
      is_baseline: select by score alone; otherwise sentences that repeat others are
          left out, and those about the web page unless there are no others.
      is_english: whether sentences about the web page are recognised.
      expected: of the reference of the document; the sentences are then chosen
          together, by the expected ROUGE of the summary. None takes the best ones.
      known_words: the words of sentences, with a space between them, by their text.

    Raises:
      ValueError: the scores are not one number per sentence.
      FloatingPointError: a score is not finite.
    """
    texts = [sentence.text for sentence in sentences]
    rules: dict[str, Any] = {"selection": selection, "is_english": is_english}
    selected = select(
        texts, scores, is_baseline=is_baseline, known_words=known_words, **rules
    )
    line = ""
    if selection.is_headline and is_english:
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
    is_english: bool = True,
    known_words: Mapping[str, str] = {},
) -> list[int]:
    """The indices of the selected sentences, the first choice first.

    Of equal scores the earlier sentence is better. Scores are equal if they differ by
    less than a billionth of the largest. The selection depends on nothing but the
    document.

    With trigram blocking (Paulus et al. 2018), no selected sentence shares three words
    in a row with a better one. As in Liu and Lapata (2019), a blocked sentence is not
    reconsidered, even if fewer sentences than asked for are left.

    Args:
      sentences, scores, selection, is_baseline, is_english, known_words: as for
        `extract`.

    Raises:
      ValueError: the scores are not one number per sentence.
      FloatingPointError: a score is not finite.
    """
    if np.shape(scores) != (len(sentences),):
        raise ValueError(
            f"{len(sentences)} sentences need one score each, "
            f"not scores of shape {np.shape(scores)}"
        )
    # Lists, because arrays of some ten sentences take longer.
    values: list[float] = np.asarray(scores, np.float64).tolist()
    for index, value in enumerate(values):
        if not math.isfinite(value):
            raise FloatingPointError(
                f"the score of sentence {index} is not a finite number; "
                "no order can be made of it"
            )
    largest = max(map(abs, values), default=0.0) or 1.0
    keys = [-round(value / largest * _UNITS) for value in values]
    skip_boilerplate = is_english and not is_baseline
    is_all_boilerplate: bool | None = None  # not known before it is needed
    selected: list[int] = []
    used_trigrams: set[tuple[str, ...]] = set()
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
                    break  # It takes no scraps from the rest of the document.
                continue
        if not is_baseline:
            text = sentences[index]
            sentence = known_words[text].split() if text in known_words else words(text)
            trigrams = set(zip(sentence, sentence[1:], sentence[2:], strict=False))
            if not used_trigrams.isdisjoint(trigrams):
                continue
            used_trigrams |= trigrams
        selected.append(index)
        if is_limited:
            sizes.append(size)
    return selected
