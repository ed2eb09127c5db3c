"""The recurrent encoder-decoder: its formulas, its cells, its precision. For any
network see `test_step` and `test_generator`.
"""

import numpy as np
import pytest
from keras import ops
from support import plain_recurrent as plain
from support.plain_network import weights_of
from support.small_network import (
    PAD,
    RECURRENT,
    SOURCE,
    TARGET,
    by_hand,
    make_network,
    network_of,
    read_maps,
    values,
)

from precis.model.cache import grow
from precis.model.network import layers


@pytest.mark.parametrize("variant", RECURRENT)
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


def test_a_cell_by_hand():
    """Cells of width 1: a GRU from 1/2 with x = 1, an LSTM from h = 1/2 and c = 2."""

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    z, r = (
        sigmoid(0.1 + 0.5 * 0.4 + 0.01 + 0.04),
        sigmoid(0.2 + 0.5 * 0.5 + 0.02 + 0.05),
    )
    new = np.tanh(0.3 + 0.03 + r * (0.5 * 0.6 + 0.06))
    gru = {
        "kernel": [[0.1, 0.2, 0.3]],
        "recurrent_kernel": [[0.4, 0.5, 0.6]],
        "bias": [[0.01, 0.02, 0.03], [0.04, 0.05, 0.06]],
    }
    unit = np.array([1.0])
    (h,) = plain.step_gru(
        unit, (unit / 2,), {name: np.array(value) for name, value in gru.items()}
    )
    assert h[0] == pytest.approx(z * 0.5 + (1 - z) * new, abs=1e-12)
    lstm = {
        "kernel": [[0.1, 0.2, 0.3, 0.4]],
        "recurrent_kernel": [[0.5, 0.6, 0.7, 0.8]],
        "bias": [0.01, 0.02, 0.03, 0.04],
    }
    h, c = plain.step_lstm(
        unit,
        (unit / 2, unit * 2),
        {name: np.array(value) for name, value in lstm.items()},
    )
    assert c[0] == pytest.approx(
        sigmoid(0.2 + 0.3 + 0.02) * 2
        + sigmoid(0.1 + 0.25 + 0.01) * np.tanh(0.3 + 0.35 + 0.03),
        abs=1e-12,
    )
    assert h[0] == pytest.approx(sigmoid(0.4 + 0.4 + 0.04) * np.tanh(c[0]), abs=1e-12)


@pytest.mark.parametrize("attention", ["luong", "bahdanau"])
def test_scores_by_hand(attention):
    network = make_network("gru", attention=attention)
    states, memory = values(2, 3, 8, seed=1), values(2, 5, 8, seed=2)
    actual = np.asarray(network.scores(states, network.scores.key(memory)))
    weights = plain.below(weights_of(network), "attention")
    assert set(weights) == (
        {"key/kernel"}
        if attention == "luong"
        else {"key/kernel", "key/bias", "query/kernel", "score/kernel"}
    )
    for b, t, s in np.ndindex(2, 3, 5):
        assert actual[b, t, s] == pytest.approx(
            plain.score(network.config, weights, states[b, t], memory[b, s]), abs=1e-4
        )


@pytest.mark.parametrize("input_feeding", [False, True])
def test_input_feeding_passes_the_output_to_the_cells_of_the_next_step(input_feeding):
    """Another memory changes the cells from the second step on, with input feeding
    only.
    """
    network = make_network("gru", input_feeding=input_feeding, encoder_layers=1)
    assert network.cells[0].kernel.shape == (
        16 if input_feeding else 8,
        24,
    ) and network.cells[1].kernel.shape == (8, 24)
    memory = network.encode(SOURCE)
    moved = memory._replace(states=memory.states + 1.0)
    cells = []
    for source_memory in (memory, moved):
        cache = network.start(source_memory, 1, 2)
        for index in range(2):
            _, cache = network.step(
                TARGET[:, index : index + 1],
                cache,
                ops.convert_to_tensor(index, "int32"),
            )
            cells.append(np.asarray(cache.per_beam["state"].cells[0]))
    np.testing.assert_array_equal(
        cells[0], cells[2]
    )  # there is no output before the first step
    assert (np.abs(cells[1] - cells[3]).max() > 1e-2) == input_feeding


def test_dropout_is_applied_to_inputs_and_outputs_of_the_decoder(monkeypatch):
    network = make_network("gru", decoder_layers=1)
    calls, call = [], layers.Dropout.call
    monkeypatch.setattr(
        layers.Dropout,
        "call",
        lambda self, x, training=False: (
            calls.append((self.name, training)) or call(self, x, training)
        ),
    )
    network(SOURCE, TARGET, training=True)
    assert calls == [
        ("input_dropout", True),
        ("input_dropout", True),
        ("output_dropout", True),
    ]


def test_recurrences_are_float32_whatever_the_precision():
    network, exact = (
        network_of("lstm_gate", precision)
        for precision in ("mixed_bfloat16", "float32")
    )
    memory, expected = network.encode(SOURCE), exact.encode(SOURCE)
    np.testing.assert_allclose(
        memory.states, np.asarray(expected.states), rtol=1e-6, atol=1e-6
    )
    states, _, _ = network.decode(TARGET, memory)
    np.testing.assert_allclose(
        states, np.asarray(exact.decode(TARGET, expected)[0]), rtol=1e-6, atol=1e-6
    )
    assert network.compute_dtype == "bfloat16" and exact.compute_dtype == "float32"


def test_it_reads_sources_and_writes_summaries_of_any_length():
    """There is no maximum position, and a cache needs no room."""
    network = network_of("gru")
    source, target = np.tile(SOURCE[1:], (1, 2)), np.tile(TARGET[1:], (1, 2))
    assert (
        source.shape[1] > network.config.max_source_tokens
        and target.shape[1] > network.config.max_target_tokens
    )
    np.testing.assert_allclose(
        ops.softmax(network(source, target)),
        [by_hand(network, source, target)[0].probabilities],
        rtol=1e-5,
        atol=1e-5,
    )
    assert (target != PAD).any()
    cache = network.start(network.encode(source), 3, 1)
    assert grow(cache, written=1, more=1) is cache
