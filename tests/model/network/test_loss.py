"""The loss, its gradient and the accuracy against their formulas written out for each
token, in float64.
"""

import numpy as np
import pytest
import tensorflow as tf

from precis.model.network.pointer import PointerOutput, Prediction
from precis.model.training.loss import smoothed_cross_entropy

VOCABULARY, PAD, MASKED = 7, 0, -1e9
TARGETS = np.array([[3, 1, 4, 2], [2, 2, PAD, PAD], [PAD, PAD, PAD, PAD]], "int32")
# The tokens 3 and 2 stand at several positions. In the first document, 4 stands at no
# position and 1 at one.
ROWS = [3, 1, 3, 5, 3], [6, 2, 2, PAD, PAD], [4, 5, PAD, PAD, PAD]
SOURCE = np.array(ROWS, "int32")


def softmax(scores):
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def make_parts(*, pointer: bool) -> dict[str, np.ndarray]:
    """Logits [B, T, V], and with a pointer the logits of p_gen, gate [B, T, 1], and of
    the copy distribution, scores [B, T, S].
    """
    # No part of the mixture alone is as often right.
    chance = np.random.default_rng(108)
    parts = {"logits": chance.normal(scale=2.0, size=(*TARGETS.shape, VOCABULARY))}
    if pointer:
        scores = chance.normal(size=(*TARGETS.shape, SOURCE.shape[1]))
        parts |= {
            "gate": chance.normal(size=(*TARGETS.shape, 1)),
            "scores": np.where(SOURCE[:, None] == PAD, MASKED, scores),
        }
    return parts


def by_hand(parts, *, smoothing: float) -> tuple[float, int, int]:
    """Cross entropy with the smoothed target distribution q, -sum over V of q log p, of
    the whole mixture, one token at a time.
    """
    probabilities = softmax(parts["logits"])
    if "gate" in parts:
        generate, copy = 1.0 / (1.0 + np.exp(-parts["gate"])), softmax(parts["scores"])
        probabilities = generate * probabilities
        for place in np.ndindex(*TARGETS.shape, SOURCE.shape[1]):
            document, step, position = place
            probabilities[document, step, SOURCE[document, position]] += (
                1.0 - generate[document, step, 0]
            ) * copy[place]
    loss, correct, tokens = 0.0, 0, 0
    for row, ids in zip(np.log(np.maximum(probabilities, 1e-30)), TARGETS, strict=True):
        for logs, right in zip(row, ids, strict=True):
            if right != PAD:
                loss -= sum(
                    log * (smoothing / VOCABULARY + (1 - smoothing) * (token == right))
                    for token, log in enumerate(logs)
                )
                correct += int(np.argmax(logs) == right)
                tokens += 1
    return loss, correct, tokens


def sums_and_gradients(parts, *, smoothing: float):
    tensors = {name: tf.constant(values, tf.float32) for name, values in parts.items()}
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        pointer_output = None
        if "gate" in tensors:
            p_gen = tf.sigmoid(tensors["gate"])
            copies = tf.nn.softmax(tensors["scores"])
            pointer_output = PointerOutput(p_gen, copies, tf.constant(SOURCE))
        prediction = Prediction(tensors["logits"], pointer_output)
        settings = {"pad_id": PAD, "smoothing": smoothing}
        sums = smoothed_cross_entropy(prediction, TARGETS, **settings)
    gradients = tape.gradient(sums.loss, tensors)
    gradients = {name: np.asarray(each) for name, each in gradients.items()}
    return list(map(float, sums)), gradients


def differences(parts, name: str, *, smoothing: float) -> np.ndarray:
    """The gradient of the loss by hand, by central differences."""
    width, gradient = 1e-5, np.zeros_like(parts[name])
    for place in np.ndindex(*gradient.shape):
        moved = []
        for sign in (1, -1):
            values = parts[name].copy()
            values[place] += sign * width
            moved.append(by_hand({**parts, name: values}, smoothing=smoothing)[0])
        gradient[place] = (moved[0] - moved[1]) / (2 * width)
    return gradient


@pytest.mark.parametrize("pointer", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_sums_and_gradients_by_hand(smoothing, pointer):
    parts = make_parts(pointer=pointer)
    # So that some tokens are right.
    parts["logits"][0, 0, 3] = 6.0
    parts["logits"][1, 1, 2] = 6.0
    loss, correct, tokens = by_hand(parts, smoothing=smoothing)
    assert tokens == 6 and 2 <= correct < 6
    sums, gradients = sums_and_gradients(parts, smoothing=smoothing)
    assert sums == pytest.approx([loss, correct, tokens], rel=1e-5)
    assert gradients.keys() == parts.keys()
    for name, gradient in gradients.items():
        expected = differences(parts, name, smoothing=smoothing)
        np.testing.assert_allclose(gradient, expected, atol=2e-6, err_msg=name)
        assert (np.abs(expected[0]) > 1e-5).mean() >= 0.5 and not gradient[2].any()


@pytest.mark.parametrize("gate", [-200.0, 200.0])
def test_tokens_without_probability_have_a_finite_loss(gate):
    """p_gen is 0 or 1 in float32, and so is the probability of most tokens."""
    parts = make_parts(pointer=True)
    parts["gate"][:] = gate
    parts["logits"] *= 200.0
    sums, gradients = sums_and_gradients(parts, smoothing=0.1)
    for each in (sums, *gradients.values()):
        assert np.isfinite(each).all()


def test_a_copied_token_without_probability_costs_the_floor():
    parts = make_parts(pointer=True)
    parts["gate"][:] = 200.0
    parts["logits"][:] = 0.0
    parts["logits"][..., 6] = 300.0  # no other token is generated
    sums, gradients = sums_and_gradients(parts, smoothing=0.0)
    assert sums[0] == pytest.approx(6 * -np.log(1e-30), rel=1e-6)
    assert not any(gradient.any() for gradient in gradients.values())
