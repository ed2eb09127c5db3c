"""The block, with cross-attention and without, against plain numpy."""

import keras
import numpy as np
import pytest
from support import plain_layers as plain
from support.plain_network import scramble, weights_of
from support.small_network import small_config, values

from precis.model.network.blocks import TransformerBlock
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


@pytest.mark.parametrize("memory_width", [None, 8, 6])
@pytest.mark.parametrize("settings", BLOCK_SETTINGS)
def test_the_block_of_an_encoder_or_a_decoder_by_hand(settings, memory_width):
    config = small_config(dropout=0.3, **settings)
    block = TransformerBlock(config=config, memory_width=memory_width, name="b")
    block.build((None, None, 8))
    scramble(block, seed=5)
    states, pair_bias = values(2, 5, 8, seed=1), values(1, config.heads, 5, 5, seed=6)
    if memory_width is None:
        results = block(states, SOURCE_BIAS + pair_bias)
        assert results[2] is None
    else:
        memory = values(2, 5, memory_width, seed=2)
        target_bias = score_bias(look_ahead_mask(5)) + pair_bias
        results = block(states, target_bias, memory, SOURCE_BIAS)
    for b in range(2):
        given = {"readable": np.tile(SOURCE_MASK[b], (5, 1))}
        if memory_width is not None:
            of_memory = {"memory": memory[b], "memory_readable": SOURCE_MASK[b]}
            given = {"readable": plain.past(5), **of_memory}
        readable = given.pop("readable")
        expected = plain.block(
            states[b], readable, weights_of(block), config, pair_bias[0], **given
        )
        for result, right in zip(results, expected, strict=False):
            np.testing.assert_allclose(
                np.asarray(result)[b], right, rtol=1e-5, atol=1e-5
            )


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_the_digits_of_states_outlive_a_block_of_half_precision(policy):
    """Sublayers whose weights are zero add nothing."""
    keras.config.set_dtype_policy(policy)
    try:
        block = TransformerBlock(
            config=small_config(norm_first=True), memory_width=8, name="b"
        )
    finally:
        keras.config.set_dtype_policy("float32")
    block.build((None, None, 8))
    block.set_weights([np.zeros(weight.shape) for weight in block.weights])
    states = values(2, 5, 8)
    updated, *_ = block(states, SOURCE_BIAS, states, SOURCE_BIAS)
    np.testing.assert_array_equal(updated, states)
