"""ROUGE as rouge-score computes it, many times as fast where many summaries share a
reference and their sentences.

rouge-score compares two texts at a time: it tokenizes both for every measure, stems the
same words again and fills a table cell by cell for every pair of sentences. Here a text
is tokenized once, a line that several summaries share is compared once, and the longest
common subsequence is found on the bits of whole numbers. The figures are equal to the
last bit; `tests/test_rouge.py` compares them.
"""

import functools
import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from precis.model.text.porter import stem

MEASURES = {
    "rouge1": "ROUGE-1",
    "rouge2": "ROUGE-2",
    "rougeL": "unsplit ROUGE-L",
    "rougeLsum": "ROUGE-Lsum",
}
VARIANT = (
    "ROUGE of rouge-score 0.1.2, Porter stemmer, F1, ROUGE-Lsum split at line breaks"
)

_WORD = re.compile("[a-z0-9]+")


class Score(NamedTuple):
    """One measure of one summary, each from 0 to 1."""

    precision: float
    recall: float
    fmeasure: float


class _Line(NamedTuple):
    """A line of a summary: its tokens, and the places that its longest common
    subsequences take in the lines of the reference.
    """

    tokens: list[str]
    matched: list[int]


class Reference:
    """A reference, prepared once to score any number of summaries against it."""

    def __init__(self, text: str) -> None:
        lines = [tokenize(line) for line in text.split("\n")]
        self._tokens = list(itertools.chain.from_iterable(lines))
        self._unigrams, self._bigrams = (
            Counter(self._tokens),
            Counter(itertools.pairwise(self._tokens)),
        )
        self._places = _places(self._tokens)
        starts = itertools.accumulate(map(len, lines), initial=0)
        self._lines = [
            (start, len(line), _places(line))
            for start, line in zip(starts, lines, strict=False)
            if line
        ]
        self._known: dict[str, _Line] = {}

    def score(self, summary: str) -> dict[str, Score]:
        """Every measure of `MEASURES` (Lin 2004) for one summary.

        ROUGE-1 and ROUGE-2 count shared words and pairs of words. The unsplit ROUGE-L
        is the longest common subsequence of the whole texts, whatever their line
        breaks. ROUGE-Lsum takes for each line of the reference the union of those with
        every line of the summary; it is what papers on news report as ROUGE-L.
        """
        lines = [
            self._known.get(text) or self._line(text) for text in summary.split("\n")
        ]
        tokens = list(itertools.chain.from_iterable(line.tokens for line in lines))
        unigrams = Counter(tokens)
        union = set().union(*(line.matched for line in lines))
        hits = {
            "rouge1": _shared(self._unigrams, unigrams),
            "rouge2": _shared(self._bigrams, Counter(itertools.pairwise(tokens))),
            "rougeL": _common_length(self._places, len(self._tokens), tokens),
            # A word of the summary is credited once, however many lines of the
            # reference hold it, as ROUGE 1.5.5 does.
            "rougeLsum": _shared(
                Counter(self._tokens[place] for place in union), unigrams
            ),
        }
        return {
            measure: _score(
                count, len(tokens), len(self._tokens), pairs=measure == "rouge2"
            )
            for measure, count in hits.items()
        }

    def _line(self, text: str) -> _Line:
        tokens = tokenize(text)
        matched = [
            start + place
            for start, length, places in self._lines
            for place in _common_places(places, length, tokens)
        ]
        self._known[text] = line = _Line(tokens, matched)
        return line


def scores(
    references: Sequence[str],
    summaries: Sequence[str],
    *,
    measures: Sequence[str] = ("rouge1", "rouge2", "rougeLsum"),
    part: Literal["fmeasure", "precision", "recall"] = "fmeasure",
) -> dict[str, np.ndarray]:
    """ROUGE (Lin 2004) of each summary against its reference.

    Args:
      references, summaries: texts, one sentence a line.
      measures: some of `MEASURES`.
      part: which figure of each score.

    Returns:
      One float64 array [N] in 0..1 for each measure.

    Raises:
      ValueError: as many references as summaries are needed.
    """
    if len(references) != len(summaries):
        raise ValueError(f"{len(references)} references for {len(summaries)} summaries")
    found = [
        Reference(reference).score(summary)
        for reference, summary in zip(references, summaries, strict=True)
    ]
    return {
        measure: np.array([getattr(row[measure], part) for row in found], np.float64)
        for measure in measures
    }


def tokenize(text: str) -> list[str]:
    """The words that ROUGE compares: runs of a to z and 0 to 9 in lower case; those of
    more than three characters as their stems.
    """
    return list(map(_token, _WORD.findall(text.lower())))


@functools.lru_cache(maxsize=1 << 17)
def _token(word: str) -> str:
    return stem(word) if len(word) > 3 else word


def _score(
    hits: int, summary_tokens: int, reference_tokens: int, *, pairs: bool
) -> Score:
    precision = hits / max(summary_tokens - pairs, 1)
    recall = hits / max(reference_tokens - pairs, 1)
    return Score(
        precision,
        recall,
        2 * precision * recall / (precision + recall) if hits else 0.0,
    )


def _shared(reference: Mapping[Any, int], summary: Mapping[Any, int]) -> int:
    """How many n-grams two texts share, each as often as in the text that has fewer of
    it.
    """
    return sum(
        min(count, summary[ngram])
        for ngram, count in reference.items()
        if ngram in summary
    )


def _places(tokens: Sequence[str]) -> dict[str, int]:
    """For each token the places where it stands, as bits.

    a b a c   ->   a 0b0101, b 0b0010, c 0b1000
    """
    places: dict[str, int] = {}
    for place, token in enumerate(tokens):
        places[token] = places.get(token, 0) | 1 << place
    return places


def _common_length(
    places: Mapping[str, int], length: int, tokens: Sequence[str]
) -> int:
    """The length of the longest common subsequence of a text, given by its places, with
    another.

    Bit-parallel (Crochemore et al. 2001, in the form of Hyyrö 2004): one column of the
    table of lengths is one whole number, whose bit i is 0 where the length grows from
    row i to row i + 1.
    """
    full = column = (1 << length) - 1
    for match in filter(None, map(places.get, tokens)):
        both = column & match
        column = ((column + both) | (column - both)) & full
    return length - column.bit_count()


def _common_places(
    places: Mapping[str, int], length: int, tokens: Sequence[str]
) -> list[int]:
    """The places that one longest common subsequence takes in a text; of several that
    are as long, the one that rouge-score takes.

    rouge-score walks back from the last cell of the table: at cell (i, j) it takes a
    match, or else steps to j - 1 where that column has the larger length, or else to i
    - 1. Column j - 1 has it exactly where column j grows from row i - 1 to row i, which
      is a 0 in its bits, so that all steps within one column are one look for the
      highest bit that is a match or a 0.
    """
    if places.keys().isdisjoint(tokens):
        return []
    full = column = (1 << length) - 1
    columns: list[tuple[int, int]] = []  # (matches, bits) of each token
    for token in tokens:
        if match := places.get(token, 0):
            both = column & match
            column = ((column + both) | (column - both)) & full
        elif columns and not columns[-1][0]:
            # A second column without a match would change nothing on the way back.
            continue
        columns.append((match, column))
    found = []
    row = length
    for match, column in reversed(columns):
        row = ((match | (full ^ column)) & ((1 << row) - 1)).bit_length()
        if not row:
            break
        if match >> (row - 1) & 1:
            row -= 1
            found.append(row)
    return found
