"""The convolutional gated unit against plain convolutions, and what padding and
precision do to it.
"""

import keras
import numpy as np
import pytest

from precis.model.network.convolutional_gate import ConvolutionalGate
from precis.model.network.layers import score_bias
from tests import plain_layers as plain
from tests.plain_network import scramble, weights_of
from tests.small_network import SOURCE, close, make_network, network_of, values

LENGTHS = (3, 6)


def make_gate(*, dropout=0.0):
    layer = ConvolutionalGate(width=8, dropout=dropout, name="convolutional_gate")
    layer.build()
    scramble(layer, seed=3)
    return layer


def bias_of(*lengths):
    return score_bias(
        np.arange(max(lengths))[None, None, None]
        < np.array(lengths)[:, None, None, None]
    )


def test_the_gate_by_convolutions():
    layer, states = make_gate(), values(2, 6, 8)
    found = np.asarray(layer(states, bias_of(*LENGTHS)))
    for row, length in enumerate(LENGTHS):
        expected = plain.convolutional_gate(
            states[row, :length].astype("float64"), weights_of(layer)
        )
        close(found[row, :length], expected)
        shares = expected / states[row, :length]
        assert (
            0 < shares.min() < 0.3 and 0.7 < shares.max() < 1
        )  # it dims some and leaves others


@pytest.mark.parametrize("length", [1, 2])
def test_a_document_shorter_than_a_convolution(length):
    layer, states = make_gate(), values(1, length, 8)
    close(
        layer(states, bias_of(length))[0],
        plain.convolutional_gate(states[0].astype("float64"), weights_of(layer)),
    )


def test_convolutions_reach_two_places():
    """Each of the three reaches as far as its width says; attention mixes the places
    after that, so its output is made constant here.
    """
    layer, states = make_gate(), values(1, 9, 8)
    for part, reach in (
        (layer.narrow, 0),
        (layer.middle, 1),
        (layer.wide_inner, 1),
        (layer.wide_outer, 1),
    ):
        moved = states.copy()
        moved[0, 4] += 1.0
        difference = np.abs(np.asarray(part(moved)) - np.asarray(part(states)))[0].max(
            1
        )
        assert np.flatnonzero(difference > 1e-6).tolist() == list(
            range(4 - reach, 5 + reach)
        )


def test_what_stands_at_padding_is_not_seen():
    layer, states = make_gate(), values(2, 6, 8)
    moved = states.copy()
    moved[0, LENGTHS[0] :] = 50.0
    found, expected = (
        np.asarray(layer(part, bias_of(*LENGTHS))) for part in (moved, states)
    )
    close(found[0, :3], expected[0, :3], 1e-6)
    close(found[1], expected[1], 1e-6)
    assert (
        np.abs(np.asarray(layer(moved, bias_of(6, 6)))[0, :3] - expected[0, :3]).max()
        > 1e-2
    )


def test_dropout_stands_behind_the_convolutions():
    layer, states = make_gate(dropout=0.5), values(2, 6, 8)
    close(
        layer(states, bias_of(*LENGTHS)),
        np.asarray(make_gate()(states, bias_of(*LENGTHS))),
        1e-6,
    )
    assert (
        np.abs(
            np.asarray(layer(states, bias_of(6, 6), training=True))
            - np.asarray(layer(states, bias_of(6, 6)))
        ).max()
        > 1e-2
    )


@pytest.mark.parametrize("variant", ["gate", "lstm_gate"])
def test_a_network_s_gate_is_float32_whatever_its_precision(variant):
    network = network_of(variant, "mixed_bfloat16")
    gate = network.convolutional_gate
    assert {part.compute_dtype for part in gate._flatten_layers()} == {"float32"}
    states = network.encode(SOURCE).states
    assert keras.backend.standardize_dtype(states.dtype) == "float32"


@pytest.mark.parametrize("variant", ["gate", "lstm_gate"])
def test_the_gate_dims_what_the_decoder_and_the_pointer_read(variant):
    network, without = (
        make_network(variant),
        make_network(variant, convolutional_gate=False),
    )
    own = {weight.path: weight for weight in network.weights}
    for weight in without.weights:
        weight.assign(own[weight.path])
    close(
        network.encode(SOURCE).states,
        network.convolutional_gate(
            without.encode(SOURCE).states, network.encode(SOURCE).bias
        ),
        1e-6,
    )
    assert {
        path.split("/")[1]
        for path in own.keys() - {weight.path for weight in without.weights}
    } == {"convolutional_gate"}
