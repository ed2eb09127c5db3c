"""ROUGE as rouge-score computes it, for many summaries at once, with bootstrap intervals."""

import functools
import importlib.metadata
import types
from collections.abc import Sequence
from typing import Literal

import numpy as np
from nltk.stem.porter import PorterStemmer
from rouge_score import rouge_scorer, tokenize

MEASURES = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeLsum": "ROUGE-Lsum"}
VARIANT = f"rouge-score {importlib.metadata.version('rouge-score')}, Porter stemmer, F1, rougeLsum split at line breaks"

_INDICES_AT_ONCE = 4_000_000  # 16 MB of indices and 32 MB of values


class _Tokenizer:
    """The tokenizer of rouge-score with a memory for stems: most of its time goes into stemming the same words again."""

    def __init__(self) -> None:
        self._stemmer = types.SimpleNamespace(stem=functools.lru_cache(maxsize=1 << 16)(PorterStemmer().stem))

    def tokenize(self, text: str) -> list[str]:
        return tokenize.tokenize(text, self._stemmer)


@functools.cache
def _scorer() -> rouge_scorer.RougeScorer:
    return rouge_scorer.RougeScorer(list(MEASURES), tokenizer=_Tokenizer())


def scores(
    references: Sequence[str],
    summaries: Sequence[str],
    *,
    part: Literal["fmeasure", "precision", "recall"] = "fmeasure",
) -> dict[str, np.ndarray]:
    """ROUGE-1, ROUGE-2 and ROUGE-Lsum (Lin 2004) of each summary against its reference.

    Args:
      references, summaries: texts, one sentence a line.
      part: which figure of each score.

    Returns:
      One float64 array [N] in 0..1 for each of `rouge1`, `rouge2` and `rougeLsum`.

    Raises:
      ValueError: as many references as summaries are needed.
    """
    if len(references) != len(summaries):
        raise ValueError(f"{len(references)} references for {len(summaries)} summaries")
    matrix = np.zeros((len(references), len(MEASURES)))
    for row, (reference, summary) in enumerate(zip(references, summaries, strict=True)):
        found = _scorer().score(reference, summary)
        matrix[row] = [getattr(found[measure], part) for measure in MEASURES]
    return {measure: matrix[:, column] for column, measure in enumerate(MEASURES)}


def bootstrap_interval(values: np.ndarray, *, confidence: float = 0.95, resamples: int = 1000, seed: int = 0) -> tuple[float, float]:
    """The percentile bootstrap interval of the mean (Efron 1979).

    Memory is bounded by a constant and the number of values, whatever the number of resamples.

    Args:
      values: float array [N], at least one.
      confidence: share of the resampled means that lie within the interval.
      resamples: how many samples of N values are drawn with replacement.
      seed: equal seeds give equal intervals.

    Returns:
      Its lower and its upper end.

    Raises:
      ValueError: no values.
    """
    count = len(values)
    if count == 0:
        raise ValueError("no values to resample")
    generator = np.random.default_rng(seed)
    at_once = max(1, _INDICES_AT_ONCE // count)
    means = np.empty(resamples)
    for first in range(0, resamples, at_once):
        block = min(at_once, resamples - first)
        picked = generator.integers(0, count, size=(block, count), dtype=np.int32)
        means[first : first + block] = values[picked].mean(axis=1)
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
