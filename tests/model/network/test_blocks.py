"""The block in half precision; `test_whole_networks` has its formulas."""

import keras
import numpy as np
import pytest
from support.small_network import small_config, values

from precis.model.network.blocks import TransformerBlock
from precis.model.network.layers import score_bias

# Two sources of length 3 and 5, bool [B, S].
SOURCE_MASK = np.array([[True, True, True, False, False], [True] * 5])
SOURCE_BIAS = score_bias(SOURCE_MASK[:, None, None])


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
