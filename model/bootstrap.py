"""Bootstrap intervals of means, of many columns over the same resampled rows."""

import numpy as np

_DRAWS_AT_ONCE = 4_000_000  # 32 MB of drawn rows, as much of weights


def bootstrap_intervals(
    values: np.ndarray,
    *,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """The percentile bootstrap intervals of the means of columns (Efron 1979).

    Every column sees the same resampled rows. So the interval of a column of
    differences between two systems is that of the paired bootstrap (Koehn 2004). Memory
    is bounded by a constant and the size of the values, whatever the number of
    resamples.

    Args:
      values: float array [N, C] of N rows, at least one, and C columns.
      confidence: share of the resampled means that lie within the interval.
      resamples: how many samples of N rows are drawn with replacement.
      seed: equal seeds give equal intervals.

    Returns:
      Their lower and their upper ends, float64 [C] each.

    Raises:
      ValueError: no rows.
    """
    count = len(values)
    if count == 0:
        raise ValueError("no values to resample")
    generator = np.random.default_rng(seed)
    at_once = max(1, _DRAWS_AT_ONCE // count)
    means = np.empty((resamples, values.shape[1]))
    for first in range(0, resamples, at_once):
        block = min(at_once, resamples - first)
        drawn = generator.integers(0, count, size=(block, count))
        # A mean over drawn rows is a product with how often each was drawn: one matrix
        # product for all columns.
        often = np.bincount(
            (drawn + np.arange(block)[:, None] * count).ravel(), minlength=block * count
        ).reshape(block, count)
        means[first : first + block] = often @ values / count
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    return low, high
