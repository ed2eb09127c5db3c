"""The block, with cross-attention and without, against plain numpy."""

import keras
import numpy as np
import pytest
from support import plain_layers as plain
from support.plain_network import scramble, weights_of
from support.small_network import small_config, values

from precis.model.network.blocks import Block
from precis.model.network.layers import look_ahead_mask, score_bias

# Two sources of length 3 and 5, bool [B, S].
SOURCE_MASK = np.array([[True, True, True, False, False], [True] * 5])
SOURCE_BIAS = score_bias(SOURCE_MASK[:, None, None])
# Every setting that a block depends on, other than its default.
BLOCK_SETTINGS = [
    {},
    {"activation": "gelu", "norm_epsilon": 0.3, "heads": 4},
    {
        "norm_first": True,
        "activation": "silu",
        "biases": False,
        "rms_norm": True,
        "gated_feed_forward": True,
        "head_width": 3,
    },
    {"norm_first": True, "feed_forward": 20, "scaled_scores": False},
]


def built(block, *, seed):
    block.build((None, None, 8))
    scramble(block, seed=seed)
    return block


@pytest.mark.parametrize("settings", BLOCK_SETTINGS)
def test_the_encoder_block_by_hand(settings):
    config = small_config(dropout=0.3, **settings)
    block = built(Block(config=config, name="block"), seed=4)
    states = values(2, 5, 8)
    pair_bias = values(1, config.heads, 5, 5, seed=6)
    updated, weights, cross_weights = block(states, SOURCE_BIAS + pair_bias)
    assert cross_weights is None
    for b in range(2):
        readable = np.tile(SOURCE_MASK[b], (5, 1))
        expected, expected_weights = plain.block(
            states[b], readable, weights_of(block), config, pair_bias[0]
        )
        np.testing.assert_allclose(updated[b], expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(weights[b], expected_weights, rtol=1e-5, atol=1e-5)
    assert block.feed_forward.inner.kernel.shape == (8, config.feed_forward)


@pytest.mark.parametrize("memory_width", [8, 6])
@pytest.mark.parametrize("settings", BLOCK_SETTINGS)
def test_the_decoder_block_by_hand(settings, memory_width):
    config = small_config(dropout=0.3, **settings)
    block = built(Block(config=config, memory_width=memory_width, name="b"), seed=5)
    states = values(2, 4, 8, seed=1)
    memory = values(2, 5, memory_width, seed=2)
    pair_bias = values(1, config.heads, 4, 4, seed=6)
    target_bias = score_bias(look_ahead_mask(4)) + pair_bias
    results = block(states, target_bias, memory, SOURCE_BIAS)
    for b in range(2):
        expected = plain.block(
            states[b],
            plain.past(4),
            weights_of(block),
            config,
            pair_bias[0],
            memory=memory[b],
            memory_readable=SOURCE_MASK[b],
        )
        for result, right in zip(results, expected, strict=True):
            np.testing.assert_allclose(
                np.asarray(result)[b], right, rtol=1e-5, atol=1e-5
            )


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_the_digits_of_states_outlive_a_block_of_half_precision(policy):
    """Sublayers whose weights are zero add nothing."""
    keras.config.set_dtype_policy(policy)
    try:
        block = Block(config=small_config(norm_first=True), memory_width=8, name="b")
    finally:
        keras.config.set_dtype_policy("float32")
    block.build((None, None, 8))
    block.set_weights([np.zeros(weight.shape) for weight in block.weights])
    states = values(2, 5, 8)
    updated, *_ = block(states, SOURCE_BIAS, states, SOURCE_BIAS)
    np.testing.assert_array_equal(updated, states)
