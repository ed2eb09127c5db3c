"""The decoder-only network: source, start token and summary are one sequence. For any
network see `test_step` and `test_generator`.
"""

import numpy as np
import pytest
from keras import ops
from support.plain_network import weights_of
from support.small_network import (
    DECODERS_ONLY,
    SOURCE,
    TARGET,
    by_hand,
    make_network,
    network_of,
    read_maps,
)

from precis.model.network.decoder_only import source_lengths
from precis.model.network.layers import padding_mask


@pytest.mark.parametrize("variant", DECODERS_ONLY)
def test_the_whole_network_by_hand(variant):
    network = network_of(variant)
    logits = np.asarray(network(SOURCE, TARGET))
    all_maps = read_maps(network, SOURCE, TARGET)
    for row, expected in enumerate(by_hand(network, SOURCE, TARGET)):
        np.testing.assert_allclose(
            ops.softmax(logits[row]), expected.probabilities, atol=1e-5
        )
        if not network.pointer:
            np.testing.assert_allclose(logits[row], expected.logits, atol=2e-5)
        assert np.ptp(expected.probabilities, axis=-1).min() > 0.03  # not uniform
        for actual, right in zip(all_maps[row], expected.maps, strict=True):
            assert actual[:2] == right[:2]
            np.testing.assert_allclose(actual[2], right[2], atol=1e-5)


def test_positions_continue_after_the_source_whatever_its_padding():
    """The sources have four and six tokens, so the start token has position 4 or 6."""
    network = network_of("decoder_only")
    assert np.asarray(source_lengths(padding_mask(SOURCE))).tolist() == [4, 6]
    _, inputs, _ = network.decode(TARGET, network.encode(SOURCE))
    weights = weights_of(network)
    table, codes = weights["embedding/table"], weights["input_layer/positions"]
    for row, first in enumerate((4, 6)):
        np.testing.assert_allclose(
            np.asarray(inputs)[row],
            table[TARGET[row]] * 8**0.5 + codes[first : first + 8],
            rtol=1e-5,
            atol=1e-5,
        )


def test_the_source_is_read_causally():
    """A token of the source attends only to itself and the tokens before it."""
    network = network_of("decoder_only_relative")
    states = np.asarray(network.encode(SOURCE).states)
    for end in range(1, 6):
        np.testing.assert_allclose(
            np.asarray(network.encode(SOURCE[1:, :end]).states)[0],
            states[1, :end],
            rtol=1e-5,
            atol=1e-5,
        )


def test_the_cut_between_source_and_summary_does_not_matter():
    """The logits of a sequence are the same wherever the source ends."""
    network = network_of("decoder_only_halves")
    whole = np.concatenate([SOURCE[1], TARGET[1]])
    logits = np.asarray(network(whole[None, :6], whole[None, 6:]))[0]
    for cut in (4, 7, 9):
        np.testing.assert_allclose(
            np.asarray(network(whole[None, :cut], whole[None, cut:]))[0][
                max(0, 6 - cut) :
            ],
            logits[max(0, cut - 6) :],
            rtol=1e-5,
            atol=1e-5,
        )


@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
def test_the_longest_source_with_the_longest_summary_has_positions(positions):
    network = make_network(
        "decoder_only", max_source_tokens=6, max_target_tokens=7, positions=positions
    )
    assert network.input_layer.positions.shape == (
        6 + 7 + 1,
        8,
    )  # the start token stands between
    assert np.isfinite(np.asarray(network(SOURCE, TARGET))).all()
    cache = network.start(network.encode(SOURCE), 1, 8)
    logits, _ = network.step(TARGET[:, :1], cache, ops.convert_to_tensor(7, "int32"))
    assert np.isfinite(np.asarray(logits)).all()


def test_the_source_is_stored_once_for_all_hypotheses():
    """Keys and values of the source have no axis of hypotheses."""
    network = network_of("decoder_only")
    for source in network.start(network.encode(SOURCE), 5, 3).per_document["source"]:
        assert source.keys.shape == (2, 2, 4, 6) and source.values.shape == (2, 2, 6, 4)
