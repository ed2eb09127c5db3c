"""Alignment: finds the sentence of an article that supports a line of its reference.

A writer of single sentences is trained on such pairs (Chen and Bansal 2018, section
3.1; Lebanoff et al. 2019). A line is aligned with the sentence that has most of its
words and pairs of words. Many lines join several sentences or add facts. So each pair
has the share of the line's words, without stop words, that the sentence has.

    line       Troops seized the bridge at dawn .
    sentence   At dawn on Monday , government troops seized the only bridge .
    share      troops seized bridge dawn: 4 of 4
"""

import functools
import itertools
from collections.abc import Sequence
from typing import NamedTuple

from precis.model.rouge import tokenize
from precis.model.text.language import ENGLISH
from precis.model.text.stop_words import stop_words


@functools.cache
def _stop_tokens(language: str) -> frozenset[str]:
    """The stop words as ROUGE tokenizes them: in English it compares stems. Where it
    compares characters, only stop words of a single character are left out.
    """
    tokenized = [tokenize(word, language) for word in stop_words(language)]
    if language != ENGLISH:
        tokenized = [tokens for tokens in tokenized if len(tokens) == 1]
    return frozenset(itertools.chain.from_iterable(tokenized))


class AlignedLine(NamedTuple):
    """A line of a reference and the sentence that supports it best.

    Attributes:
      line: the line.
      place: the index of the sentence in the article.
      share: the share of the line's words that the sentence has, from 0 to 1, without
          stop words.
    """

    line: str
    place: int
    share: float


def align_lines(
    sentences: Sequence[str], reference: str, language: str | None = ENGLISH
) -> list[AlignedLine]:
    """Aligns each line of a reference that has a word, in order.

    If sentences are equally good, the first is taken.

    Args:
      sentences: the sentences of the article, at least one.
      reference: one sentence per line.
      language: the language of the article.
    """
    stops = _stop_tokens(language or ENGLISH)
    in_sentences = [
        (frozenset(tokens), frozenset(itertools.pairwise(tokens)))
        for tokens in (tokenize(sentence, language) for sentence in sentences)
    ]
    aligned = []
    for line in reference.split("\n"):
        tokens = tokenize(line, language)
        if not tokens:
            continue
        line_words = frozenset(tokens)
        line_pairs = frozenset(itertools.pairwise(tokens))
        shares = [
            len(line_words & words) / len(line_words)
            + len(line_pairs & pairs) / max(len(line_pairs), 1)
            for words, pairs in in_sentences
        ]
        place = max(range(len(shares)), key=lambda number: (shares[number], -number))
        content = line_words - stops or line_words
        share = len(content & in_sentences[place][0]) / len(content)
        aligned.append(AlignedLine(line, place, share))
    return aligned
