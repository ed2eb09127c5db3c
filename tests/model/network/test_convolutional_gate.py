"""The convolutional gated unit against plain convolutions, with padding, dropout and
mixed precision.
"""

import numpy as np
import pytest
from support import plain_convolutional_gate as plain
from support.plain_network import scramble, weights_of
from support.small_network import values

from precis.model.network.convolutional_gate import ConvolutionalGate
from precis.model.network.layers import score_bias


def make_gate(*, dropout=0.0):
    layer = ConvolutionalGate(width=8, dropout=dropout, name="convolutional_gate")
    layer.build()
    scramble(layer, seed=3)
    return layer


def bias_of(*lengths):
    """The bias of sources of these lengths, float32 [B, 1, 1, S]."""
    positions = np.arange(max(lengths))[None, None, None]
    return score_bias(positions < np.array(lengths)[:, None, None, None])


@pytest.mark.parametrize("lengths", [(3, 6), (1,), (2,)])
def test_the_gate_by_convolutions(lengths):
    """Also of documents shorter than a convolution, and whatever stands at padding."""
    layer = make_gate()
    states = values(len(lengths), max(lengths), 8)
    states[0, lengths[0] :] = 50.0
    gated = np.asarray(layer(states, bias_of(*lengths)))
    gates = []
    for row, length in enumerate(lengths):
        text = states[row, :length]
        expected = plain.convolutional_gate(text.astype("float64"), weights_of(layer))
        np.testing.assert_allclose(gated[row, :length], expected, rtol=1e-5, atol=1e-5)
        gates.append(expected / text)
    # Nearly closed for some of the states, and nearly open for others.
    gates = np.concatenate(gates)
    assert 0 < gates.min() < 0.4 and 0.7 < gates.max() < 1
