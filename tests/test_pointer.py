"""The pointer-generator mixture against loops over documents, steps and source
positions. `test_coverage` has what was read before.
"""

import numpy as np
import pytest
from keras import ops

from precis.model.network.layers import score_bias
from precis.model.network.pointer import PointerGenerator, mix
from precis.model.network.prediction import Prediction, log_probs
from tests import plain_layers as plain
from tests.plain_network import scramble, weights_of
from tests.small_network import values

B, T, S, V, D = 2, 3, 5, 7, 4
SOURCE = np.array(
    [[3, 6, 3, 0, 0], [5, 5, 5, 2, 6]]
)  # 3 stands twice in the first, 5 three times in the second; 0 is padding
READABLE = SOURCE != 0
BIAS = score_bias(READABLE[:, None])


def distribution(*shape, seed):
    shares = np.random.default_rng(seed).random(shape).astype("float32")
    return shares / shares.sum(-1, keepdims=True)


@pytest.fixture
def given():
    """What the pointer reads: logits, states, inputs, source, memory."""
    return {
        "logits": values(B, T, V, seed=1),
        "states": values(B, T, D, seed=2),
        "inputs": values(B, T, D, seed=3),
        "source": SOURCE.astype("int32"),
        "memory": values(B, S, D, seed=4),
    }


def make_layer(**settings):
    layer = PointerGenerator(width=D, name="pointer", **settings)
    layer.build()
    scramble(layer, seed=9, scale=0.8)
    return layer


@pytest.fixture
def layer():
    return make_layer()


def read(layer, given):
    return layer(
        given["states"], given["inputs"], given["source"], given["memory"], BIAS
    )


def probabilities(layer, given):
    return np.exp(
        np.asarray(
            log_probs(
                Prediction(
                    ops.convert_to_tensor(given["logits"]), read(layer, given), None
                )
            )
        )
    )


def test_mix_by_loops():
    generate, vocabulary, copy = (
        distribution(B, T, 2, seed=1)[..., :1],
        distribution(B, T, V, seed=2),
        distribution(B, T, S, seed=3),
    )
    found = np.exp(
        np.asarray(
            mix(*map(ops.convert_to_tensor, (generate, vocabulary, copy)), SOURCE)
        )
    )
    np.testing.assert_allclose(
        found, plain.mixture(generate[..., 0], vocabulary, copy, SOURCE), atol=1e-6
    )
    np.testing.assert_allclose(found.sum(-1), 1, atol=1e-6)


def test_mix_by_hand():
    """p_gen 1/4; the source is 1 2 1: token 1 gets (3/4)(1/2 + 1/8) from it, token 2
    the rest, token 0 nothing.
    """
    vocabulary, copy = (
        np.array([[[0.5, 0.25, 0.25]]], "float32"),
        np.array([[[0.5, 0.375, 0.125]]], "float32"),
    )
    mixed = mix(
        *map(
            ops.convert_to_tensor, (np.array([[[0.25]]], "float32"), vocabulary, copy)
        ),
        np.array([[1, 2, 1]]),
    )
    np.testing.assert_allclose(
        np.exp(np.asarray(mixed)),
        [[[0.125, 0.0625 + 0.46875, 0.0625 + 0.28125]]],
        atol=1e-6,
    )


def test_what_is_impossible_stays_finite():
    vocabulary, copy = (
        np.array([[[1.0, 0.0]]], "float32"),
        np.array([[[1.0]]], "float32"),
    )
    mixed = mix(
        *map(ops.convert_to_tensor, (np.array([[[0.5]]], "float32"), vocabulary, copy)),
        np.array([[0]]),
    )
    assert np.asarray(mixed)[0, 0].tolist() == pytest.approx(
        [0.0, np.log(1e-30)], rel=1e-5, abs=1e-6
    )


def test_without_a_pointer_the_generator_s_logits_are_the_network_s(given):
    np.testing.assert_array_equal(
        log_probs(Prediction(given["logits"], None, None)), given["logits"]
    )


@pytest.mark.parametrize("has_coverage", [False, True])
def test_what_is_read_by_loops(given, has_coverage):
    layer = make_layer(has_coverage=has_coverage)
    weights, reading = weights_of(layer), read(layer, given)
    assert ("coverage_weight" in weights) == has_coverage
    np.testing.assert_array_equal(reading.source, SOURCE)
    for b in range(B):
        generate, copy = plain.pointer(
            given["states"][b],
            given["inputs"][b],
            given["memory"][b],
            READABLE[b],
            weights,
        )
        np.testing.assert_allclose(
            np.asarray(reading.generate)[b, :, 0], generate, atol=1e-6
        )
        np.testing.assert_allclose(np.asarray(reading.copy)[b], copy, atol=1e-6)
        vocabulary = np.array(
            [plain.softmax(row) for row in given["logits"][b].astype("float64")]
        )
        expected = plain.mixture(
            generate[None], vocabulary[None], copy[None], SOURCE[b : b + 1]
        )[0]
        np.testing.assert_allclose(probabilities(layer, given)[b], expected, atol=1e-5)
    np.testing.assert_allclose(probabilities(layer, given).sum(-1), 1, atol=1e-6)


def test_a_memory_of_another_width(given):
    layer = make_layer(memory_width=6)
    memory = values(B, S, 6, seed=5)
    reading, weights = read(layer, {**given, "memory": memory}), weights_of(layer)
    assert weights["key/kernel"].shape == (6, 4) and weights["gate/kernel"].shape == (
        14,
        1,
    )
    for b in range(B):
        generate, copy = plain.pointer(
            given["states"][b], given["inputs"][b], memory[b], READABLE[b], weights
        )
        np.testing.assert_allclose(
            np.asarray(reading.generate)[b, :, 0], generate, atol=1e-6
        )
        np.testing.assert_allclose(np.asarray(reading.copy)[b], copy, atol=1e-6)


def force_gate(layer, bias):
    layer.gate.set_weights(
        [np.zeros((3 * D, 1), "float32"), np.array([bias], "float32")]
    )


def test_a_gate_of_one_leaves_the_generator(layer, given):
    force_gate(layer, 200.0)
    expected = [
        [plain.softmax(row) for row in document]
        for document in given["logits"].astype("float64")
    ]
    np.testing.assert_allclose(probabilities(layer, given), expected, atol=1e-6)


def test_a_gate_of_zero_leaves_the_copies(layer, given):
    force_gate(layer, -200.0)
    found, copy = probabilities(layer, given), np.asarray(read(layer, given).copy)
    for b, t, piece in np.ndindex(B, T, V):
        held = READABLE[b] & (SOURCE[b] == piece)
        assert found[b, t, piece] == pytest.approx(copy[b, t, held].sum(), abs=1e-6)
    # Padding (0) is never copied, nor is a token that the source does not hold.
    assert found[0, :, [0, 1, 2, 4, 5]].max() < 1e-20


@pytest.mark.parametrize("part", ["memory", "states", "inputs"])
def test_the_gate_reads_all_of_its_three_inputs(layer, given, part):
    """Each third of the gate's kernel alone moves p_gen: query, key and logits are
    constant, so only the gate can change anything.
    """
    kernel = np.zeros((3, D, 1), "float32")
    kernel[["memory", "states", "inputs"].index(part)] = 1.0
    layer.gate.set_weights([kernel.reshape(3 * D, 1), np.zeros(1, "float32")])
    layer.query.set_weights([np.zeros((D, D), "float32"), np.zeros(D, "float32")])
    base = probabilities(layer, given)
    for name in ("memory", "states", "inputs"):
        moved = probabilities(layer, {**given, name: given[name] + 1.0})
        assert (np.abs(moved - base).max() > 1e-3) == (name == part)


@pytest.mark.parametrize("bias", [0.3, -200.0])
def test_a_step_says_what_whole_targets_say(layer, given, bias):
    """Also where p_gen is as good as zero: what is not in the source is then
    impossible, and stays finite.
    """
    layer.gate.bias.assign([bias])
    past = layer.start(
        ops.convert_to_tensor(given["source"]),
        ops.convert_to_tensor(given["memory"]),
        BIAS,
    )
    logits, coverage = layer.step(
        *(
            ops.convert_to_tensor(given[name])
            for name in ("logits", "states", "inputs")
        ),
        past,
        (),
    )
    assert coverage == () and np.isfinite(np.asarray(logits)).all()
    np.testing.assert_allclose(
        np.asarray(ops.softmax(logits)), probabilities(layer, given), atol=1e-5
    )
