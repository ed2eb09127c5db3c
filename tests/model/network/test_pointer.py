"""The pointer-generator mixture against loops over documents, steps and source
positions.
"""

import numpy as np
import pytest
from keras import ops
from support.plain_network import scramble
from support.small_network import values

from precis.model.network.layers import Memory
from precis.model.network.pointer import (
    PointerGenerator,
    Prediction,
    different_tokens,
    log_probs,
)

B, T, S, V, D = 2, 3, 5, 7, 4
# 3 stands twice in the first source, 5 three times in the second; 0 is padding.
SOURCE = np.array([[3, 6, 3, 0, 0], [5, 5, 5, 2, 6]])
READABLE = SOURCE != 0


@pytest.fixture
def given():
    """The inputs of the pointer and the logits of the generator."""
    return {
        "logits": values(B, T, V, seed=1),
        "states": values(B, T, D, seed=2),
        "inputs": values(B, T, D, seed=3),
        "source": SOURCE.astype("int32"),
        "memory": values(B, S, D, seed=4),
    }


@pytest.fixture
def layer():
    layer = PointerGenerator(width=D, name="pointer")
    layer.build()
    scramble(layer, seed=9, scale=0.8)
    return layer


def memory_of(given):
    return Memory(
        ops.convert_to_tensor(given["memory"]),
        ops.convert_to_tensor(given["source"]),
        READABLE[:, None, None],
    )


def probabilities(layer, given):
    """The mixture as probabilities [B, T, V]."""
    logits = ops.convert_to_tensor(given["logits"])
    output = layer(given["states"], given["inputs"], memory_of(given))
    return np.exp(np.asarray(log_probs(Prediction(logits, output))))


@pytest.mark.parametrize("bias", [0.3, -200.0])
def test_a_step_equals_a_whole_target(layer, given, bias):
    """Also where p_gen is almost zero: tokens outside the source are then impossible,
    and their logits stay finite.
    """
    layer.gate.bias.assign([bias])
    past = layer.start(memory_of(given))
    tensors = [
        ops.convert_to_tensor(given[name]) for name in ("logits", "states", "inputs")
    ]
    logits = layer.step(*tensors, past)
    assert np.isfinite(np.asarray(logits)).all()
    np.testing.assert_allclose(
        np.asarray(ops.softmax(logits)), probabilities(layer, given), atol=1e-5
    )


def test_the_different_tokens_of_a_source_stand_in_their_order():
    def different(source):
        return ops.convert_to_numpy(different_tokens(source.astype("int32"))).tolist()

    assert different(SOURCE) == [[3, 6, 0], [5, 2, 6]]
    # The first has one of its tokens again, as it has fewer.
    repeated = np.array([[4, 4, 4, 4], [7, 8, 7, 9]])
    assert different(repeated) == [[4, 4, 4], [7, 8, 9]]
    assert different(np.zeros((2, 0))) == [[], []]
