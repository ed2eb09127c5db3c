"""Alignment: finds the sentence of an article that supports a line of its reference.

A writer of single sentences is trained on such pairs (Chen and Bansal 2018, section
3.1; Lebanoff et al. 2019). A line is aligned with the sentence that has most of its
words and pairs of words. Many lines join several sentences or add facts. So each pair
has the share of the line's words, without stop words, that the sentence has.

    line       Troops seized the bridge at dawn .
    sentence   At dawn on Monday , government troops seized the only bridge .
    share      troops seized bridge dawn: 4 of 4
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from precis.model.rouge import tokenize
from precis.model.text.stop_words import STOP_WORDS

# Stemmed, because ROUGE compares stems.
_STEMMED_STOP_WORDS = frozenset(stem for word in STOP_WORDS for stem in tokenize(word))


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


def align_lines(sentences: Sequence[str], reference: str) -> list[AlignedLine]:
    """Aligns each line of a reference that has a word, in order.

    If sentences are equally good, the first is taken.

    Args:
      sentences: the sentences of the article, at least one.
      reference: one sentence per line.
    """
    in_sentences = [
        (frozenset(tokens), frozenset(itertools.pairwise(tokens)))
        for tokens in map(tokenize, sentences)
    ]
    aligned = []
    for line in reference.split("\n"):
        tokens = tokenize(line)
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
        content = line_words - _STEMMED_STOP_WORDS or line_words
        share = len(content & in_sentences[place][0]) / len(content)
        aligned.append(AlignedLine(line, place, share))
    return aligned
