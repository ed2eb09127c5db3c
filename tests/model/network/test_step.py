"""The step of every network computes for each hypothesis the logits of the
teacher-forced call, however a search reorders, selects and grows the cache.

`test_beam_network` takes these steps in the graph of a whole search.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops
from support.small_network import EACH, KINDS, make_network, network_of
from support.walks import (
    SOURCE,
    STEPS,
    random_walk,
    take_steps,
    teacher_forced,
    walk_steps,
)

from precis.model.network import layers
from precis.model.network.pointer import different_tokens


@pytest.mark.parametrize("variant", EACH)
def test_steps_equal_teacher_forcing_however_a_search_moves_the_cache(variant):
    """Hypotheses are reordered after each step, room is made after two and five, and
    after three steps the last document and the first are kept.
    """
    network, walk = network_of(variant), random_walk(3)
    actual = walk_steps(network, SOURCE, walk, selections={3: [2, 0]})
    expected = teacher_forced(network, SOURCE, walk)
    np.testing.assert_allclose(actual[:, :, :3], expected[:, :, :3], atol=1e-5)
    kept = ([2, 0], slice(None), slice(3, None))
    np.testing.assert_allclose(actual[kept], expected[kept], atol=1e-5)
    assert np.isnan(actual[1, :, 3:]).all()
    assert np.abs(expected[:, 0] - expected[:, 1]).max() > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["pointer", "decoder_only"])
def test_a_step_that_xla_compiles_is_the_same(variant):
    """Its writes into keys and values too, which are other operations there."""
    network, walk = make_network(variant), random_walk(3)
    expected = walk_steps(network, SOURCE, walk)
    network.step = tf.function(network.step, autograph=False, jit_compile=True)
    actual = walk_steps(network, SOURCE, walk)
    np.testing.assert_allclose(actual, expected, atol=1e-5)


@pytest.mark.parametrize("variant", ["t5", "decoder_only_relative"])
def test_documents_may_be_selected_after_slots_were_dropped(variant):
    """Of 24 slots after eight steps 12 are kept, different ones for each document. The
    positions of the slots are selected with the documents.
    """
    network = make_network(variant, max_target_tokens=12)
    walk = random_walk(3, seed=13, steps=12)
    expected = teacher_forced(network, SOURCE, walk)
    for step in take_steps(network, SOURCE, walk, (8, 12), selections={10: [2, 0]}):
        logits, right = step.logits, expected[step.documents, :, step.index]
        np.testing.assert_allclose(ops.log_softmax(logits), right, atol=1e-5)
        if step.index == 8:
            positions = np.asarray(step.cache.per_document["kv_cache"].positions)
            assert positions.shape == (3, 12 + 12)
            assert (positions[0] != positions[2]).any()
            assert (positions[1] != positions[2]).any()
    assert step.index == 11 and step.documents == [2, 0]


@pytest.mark.parametrize("variant", KINDS)
def test_a_step_copies_alone_where_p_gen_is_almost_zero(variant):
    """Tokens outside the source are then impossible, and their logits stay finite."""
    network, walk = make_network(variant), random_walk(3)
    network.pointer.gate.bias.assign([-200.0])
    actual = np.stack([each.logits for each in take_steps(network, SOURCE, walk)], 2)
    assert np.isfinite(actual).all()
    expected = np.exp(teacher_forced(network, SOURCE, walk))
    np.testing.assert_allclose(ops.softmax(actual), expected, atol=1e-5)
    assert (expected[0, 0, 0] > 1e-3).sum() == 3  # the first source has three tokens


def test_the_different_tokens_of_a_source_stand_in_their_order():
    def different(source):
        return np.asarray(different_tokens(np.array(source, "int32"))).tolist()

    assert different([[3, 6, 3, 0, 0], [5, 5, 5, 2, 6]]) == [[3, 6, 0], [5, 2, 6]]
    # The first has one of its tokens again, as it has fewer.
    assert different([[4, 4, 4, 4], [7, 8, 7, 9]]) == [[4, 4, 4], [7, 8, 9]]
    assert different(np.zeros((2, 0))) == [[], []]


# What a step computes in float32: the softmax of each attention and the two of the
# pointer, and the states that enter each residual.
@pytest.mark.parametrize(
    ("variant", "softmaxes", "residuals"),
    [("untied_pointer", 2 * 2 + 2, 3 * 2), ("bart", 2 * 3, 3 * 3), ("gru", 1 + 2, 0)],
)
def test_steps_in_bfloat16(variant, softmaxes, residuals, monkeypatch):
    network, walk = network_of(variant, "mixed_bfloat16"), random_walk(3, steps=4)
    seen_dtypes, streams = [], []
    softmax, residual = ops.softmax, layers.Residual.__call__

    def watched_softmax(scores, *args, **kwargs):
        seen_dtypes.append(keras.backend.standardize_dtype(scores.dtype))
        return softmax(scores, *args, **kwargs)

    def watched_residual(self, states, *args, **kwargs):
        streams.append(keras.backend.standardize_dtype(states.dtype))
        return residual(self, states, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(ops, "softmax", watched_softmax)
        patch.setattr(layers.Residual, "__call__", watched_residual)
        cache = network.start(network.encode(SOURCE), 3, STEPS)
        seen_dtypes.clear()
        streams.clear()
        first, index = walk.tokens[:, :, 0], ops.convert_to_tensor(0, "int32")
        _, cache = network.step(ops.convert_to_tensor(first), cache, index)
    assert seen_dtypes == ["float32"] * softmaxes
    assert streams == ["float32"] * residuals
    leaves = keras.tree.flatten(cache.per_document)
    dtypes = {keras.backend.standardize_dtype(leaf.dtype) for leaf in leaves}
    # Keys and values are kept in half the room.
    assert "bfloat16" in dtypes and "float16" not in dtypes

    actual = walk_steps(network, SOURCE, walk)
    exact = teacher_forced(network_of(variant), SOURCE, walk)
    # Measured: up to 0.034 where logits reach 8.
    assert 0 < np.abs(actual - exact).max() < 0.1
