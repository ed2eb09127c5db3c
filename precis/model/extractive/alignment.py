"""Which sentence of an article says what a line of its reference says.

Pairs of the two are what a writer of single sentences is trained on (Chen and Bansal
2018, section 3.1; Lebanoff et al. 2019). A line is aligned with the sentence that has
most of its words and of its pairs of words. Many lines join several sentences or add
what no sentence says, so the share of the line's words that the sentence has, without
stop words, tells how far a pair can be trusted.

    line       Troops seized the bridge at dawn .
    sentence   At dawn on Monday , government troops seized the only bridge .
    support    troops seized bridge dawn: 4 of 4
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from precis.model.rouge import tokenize
from precis.model.text.stop_words import STOP_WORDS

# ROUGE stems words, and so are these.
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

    Of equally good sentences the earlier is taken.

    Args:
      sentences: of the article, at least one.
      reference: one sentence a line.
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
