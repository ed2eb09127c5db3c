"""Training of every kind of network: resumed exactly, in pieces the same, and able to
learn.
"""

import dataclasses

import pytest
from support.small_training import (
    VOCABULARY,
    assert_same_training,
    losses,
    network_config,
    prepare_training,
    run_to_end,
    stop_at,
)

from precis.model.network.config import DecoderOnlyConfig, RecurrentConfig

SHAPE = {
    "vocabulary_size": VOCABULARY,
    "pad_id": 0,
    "width": 16,
    "dropout": 0.1,
    "max_source_tokens": 192,
    "max_target_tokens": 48,
}
NETWORKS = {
    "coverage_and_gate": network_config(coverage=True, convolutional_gate=True),
    "like_t5": network_config(
        positions="relative",
        norm_first=True,
        rms_norm=True,
        biases=False,
        gated_feed_forward=True,
        pointer=False,
    ),
    "decoder_only": DecoderOnlyConfig(**SHAPE, feed_forward=32, heads=2, layers=2),
    "gru": RecurrentConfig(**SHAPE, encoder_layers=1, decoder_layers=1),
    "lstm": RecurrentConfig(
        **SHAPE,
        encoder_layers=2,
        decoder_layers=2,
        cell="lstm",
        attention="bahdanau",
        input_feeding=False,
        convolutional_gate=True,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_a_stopped_training_ends_as_an_undisturbed_one(records_folder, tmp_path, name):
    run_to_end(records_folder, tmp_path / "one", network=NETWORKS[name])
    training = prepare_training(
        records_folder, tmp_path / "two", network=NETWORKS[name]
    )
    stop_at(training, 6)
    run_to_end(records_folder, tmp_path / "two", network=NETWORKS[name])
    assert_same_training(tmp_path / "one", tmp_path / "two")


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_pieces_change_no_loss(records_folder, tmp_path, name):
    """Without dropout, whose masks differ."""
    network = dataclasses.replace(NETWORKS[name], dropout=0.0)
    for pieces in (1, 3):
        run_to_end(
            records_folder,
            tmp_path / str(pieces),
            network=network,
            steps=4,
            accumulate=pieces,
        )
    assert losses(tmp_path / "1", 4) == pytest.approx(
        losses(tmp_path / "3", 4), rel=1e-5
    )


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_learns(records_folder, tmp_path, name):
    """A pass is about ten steps of batches of different lengths, so that only whole
    passes can be compared.
    """
    run_to_end(
        records_folder,
        tmp_path,
        network=NETWORKS[name],
        steps=30,
        learning_rate=0.01,
        warmup_steps=10,
    )
    steps = losses(tmp_path, 30)
    assert sum(steps[-10:]) < sum(steps[:10]) - 2.5
