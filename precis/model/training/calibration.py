"""What a score stands for, learned from cases whose outcome is known."""

import numpy as np


def fit_rising(scores: np.ndarray, outcomes: np.ndarray) -> np.ndarray:
    """The mean outcome by score, by centered isotonic regression (Oron and Flournoy
    2017): scores with one fitted outcome are one point, at their mean, so that between
    points the outcome rises.

    Args:
      scores, outcomes: float64 [N]; N is at least 1.

    Returns:
      float64 [2, K]: scores in rising order, and the outcome at each. `np.interp` gives
      those between them.
    """
    from sklearn.isotonic import IsotonicRegression

    fitted = IsotonicRegression().fit_transform(scores, outcomes)
    levels, members = np.unique(fitted, return_inverse=True)
    centers = np.bincount(members, scores) / np.bincount(members)
    return np.stack([centers, levels.astype(np.float64)])
