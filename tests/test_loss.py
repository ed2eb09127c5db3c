"""The loss and the accuracy against their formulas written out for each token."""

import math

import numpy as np
import pytest

from model.training.loss import smoothed_cross_entropy

VOCABULARY, PAD = 5, 0
LOGITS = np.random.default_rng(3).normal(scale=2.0, size=(3, 4, VOCABULARY)).astype("float32")
TARGETS = np.array([[3, 1, 4, 2], [2, 2, PAD, PAD], [PAD, PAD, PAD, PAD]], "int32")


def by_hand(logits, targets, smoothing) -> tuple[float, int, int]:
    """Cross entropy with the smoothed target distribution q, one token at a time: -sum over V of q log p."""
    loss, correct, tokens = 0.0, 0, 0
    for row, ids in zip(logits.tolist(), targets.tolist(), strict=True):
        for scores, right in zip(row, ids, strict=True):
            if right == PAD:
                continue
            total = sum(math.exp(score) for score in scores)
            for token, score in enumerate(scores):
                q = smoothing / VOCABULARY + (1 - smoothing if token == right else 0)
                loss -= q * math.log(math.exp(score) / total)
            correct += scores.index(max(scores)) == right
            tokens += 1
    return loss, correct, tokens


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_sums_by_hand(smoothing):
    logits = LOGITS.copy()
    logits[0, 0, 3] = logits[1, 1, 2] = 9.0  # so that some tokens are right
    loss, correct, tokens = by_hand(logits, TARGETS, smoothing)
    assert tokens == 6 and 2 <= correct < 6
    sums = smoothed_cross_entropy(logits, TARGETS, pad_id=PAD, smoothing=smoothing)
    assert float(sums.loss) == pytest.approx(loss, rel=1e-5)
    assert (float(sums.correct), float(sums.tokens)) == (correct, tokens)


def test_padding_contributes_nothing():
    changed = np.where((TARGETS == PAD)[..., None], LOGITS[::-1, ::-1] * 50, LOGITS)
    changed[2, :, PAD] = 500.0  # padding that is "right" with certainty
    assert not np.array_equal(changed, LOGITS)
    before, after = (smoothed_cross_entropy(logits, TARGETS, pad_id=PAD, smoothing=0.1) for logits in (LOGITS, changed))
    assert [float(value) for value in before] == [float(value) for value in after]
    shorter = smoothed_cross_entropy(LOGITS[:2], TARGETS[:2], pad_id=PAD, smoothing=0.1)
    assert [float(value) for value in shorter] == pytest.approx([float(value) for value in before], rel=1e-6)


def test_the_padding_id_is_the_given_one():
    assert float(smoothed_cross_entropy(LOGITS, TARGETS, pad_id=2, smoothing=0.1).tokens) == 9.0
