"""What a score stands for, learned from outcomes."""

import numpy as np

from precis.model.training.importance import fit_rising


def test_outcomes_rise_between_the_means_of_scores_with_one_outcome():
    scores = np.array([4.0, 1.0, 2.0, 3.0, 8.0])
    outcomes = np.array([0.5, 0.25, 0.5, 0.0, 1.0])
    # By hand: 1 to 3 are pooled, as a later outcome falls.
    assert fit_rising(scores, outcomes).tolist() == [[2, 4, 8], [0.25, 0.5, 1.0]]
    assert fit_rising(scores[:1], outcomes[:1]).tolist() == [[4.0], [0.5]]


def test_a_biased_score_is_put_right():
    generator = np.random.default_rng(3)
    scores = generator.random(20_000)
    outcomes = scores**2 + generator.normal(0.0, 0.3, 20_000)
    found = np.interp([0.25, 0.5, 0.75], *fit_rising(scores, outcomes))
    assert np.abs(found - np.array([0.0625, 0.25, 0.5625])).max() < 0.03
