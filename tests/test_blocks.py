"""The encoder block and the decoder block against plain numpy."""

import numpy as np
import pytest
from support import plain_layers as plain
from support.plain_network import scramble, weights_of
from support.small_network import small_config, values

from precis.model.network.blocks import DecoderBlock, EncoderBlock
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
    block = built(EncoderBlock(config=config, name="block"), seed=4)
    states = values(2, 5, 8)
    pair_bias = values(1, config.heads, 5, 5, seed=6)
    updated, weights = map(np.asarray, block(states, SOURCE_BIAS + pair_bias))
    for b in range(2):
        readable = np.tile(SOURCE_MASK[b], (5, 1))
        expected, expected_weights = plain.encoder_block(
            states[b], readable, weights_of(block), config, pair_bias[0]
        )
        np.testing.assert_allclose(updated[b], expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(weights[b], expected_weights, rtol=1e-5, atol=1e-5)
    assert block.feed_forward.inner.kernel.shape == (8, config.feed_forward)


@pytest.mark.parametrize("memory_width", [8, 6])
@pytest.mark.parametrize("settings", BLOCK_SETTINGS)
def test_the_decoder_block_by_hand(settings, memory_width):
    config = small_config(dropout=0.3, **settings)
    block = built(
        DecoderBlock(config=config, memory_width=memory_width, name="block"), seed=5
    )
    states = values(2, 4, 8, seed=1)
    memory = values(2, 5, memory_width, seed=2)
    pair_bias = values(1, config.heads, 4, 4, seed=6)
    target_bias = score_bias(look_ahead_mask(4)) + pair_bias
    results = block(states, memory, target_bias, SOURCE_BIAS)
    for b in range(2):
        expected = plain.decoder_block(
            states[b],
            memory[b],
            SOURCE_MASK[b],
            weights_of(block),
            config,
            pair_bias[0],
        )
        for result, right in zip(results, expected, strict=True):
            np.testing.assert_allclose(
                np.asarray(result)[b], right, rtol=1e-5, atol=1e-5
            )
