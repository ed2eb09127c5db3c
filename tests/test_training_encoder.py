"""A trained encoder below a new decoder: its weights and its learning rate."""

import dataclasses

import numpy as np
import pytest
from support.plain_network import scramble
from support.shared_networks import eagerly
from support.small_training import prepare_training

from precis.model.bundle.encoder_bundle import save_encoder_bundle
from precis.model.errors import UsageError
from precis.model.network.build import build_encoder, build_network
from precis.model.network.config import DecoderOnlyConfig, EncoderConfig, StackConfig
from precis.model.tokenization.folder import TokenizerPair, load_tokenizers
from precis.model.tokenization.wordpiece import RESERVED_TOKENS, Tokenizer
from precis.model.training.initialization import (
    initialise,
    weights_of_encoder,
)


def values(network):
    """The weights by path, without the network's name."""
    return {
        weight.path.split("/", 1)[1]: np.asarray(weight.numpy())
        for weight in network.weights
    }


@pytest.fixture(scope="module")
def tokenizers(records_folder) -> TokenizerPair:
    return load_tokenizers(records_folder)


@pytest.fixture(scope="module")
def encoder_bundle(tokenizers, tmp_path_factory) -> str:
    folder = str(tmp_path_factory.mktemp("encoder"))
    shape = {
        "width": 12,
        "heads": 3,
        "feed_forward": 20,
        "encoder_layers": 2,
        "max_source_tokens": 64,
        "positions": "learned",
    }
    encoder = build_encoder(
        EncoderConfig(
            vocabulary_size=tokenizers.source.vocabulary_size,
            pad_id=0,
            embedding_norm=True,
            **shape,
        )
    )
    scramble(encoder, seed=4)
    save_encoder_bundle(
        folder, encoder=encoder, tokenizer=tokenizers.source, provenance={}
    )
    return folder


def test_a_decoder_is_put_on_an_encoder(encoder_bundle, tokenizers):
    decoder = StackConfig(
        vocabulary_size=tokenizers.target.vocabulary_size,
        pad_id=0,
        width=8,
        heads=2,
        feed_forward=10,
    )
    config, initial = weights_of_encoder(
        encoder_bundle,
        tokenizers,
        decoder,
        max_source_tokens=50,
        decoder_layers=3,
        tied_output=False,
        max_target_tokens=9,
    )
    assert (
        config.width,
        config.decoder.width,
        config.decoder_layers,
        config.max_source_tokens,
    ) == (12, 8, 3, 50)
    assert config.encoder == dataclasses.replace(
        config.encoder, encoder_layers=2, embedding_norm=True, positions="learned"
    )
    assert not config.pointer and not config.shared_embedding
    network = build_network(config)
    assert initialise(network, initial, tokenizers.source).keys() == {"encoder"}
    weights = values(network)
    for path, value in initial.weights.items():
        assert (weights[path] == value[: len(weights[path])]).all(), path
    assert weights["source_input/positions"].shape == (50, 12)
    assert weights["target_embedding/table"].shape[1] == 8
    assert {path.split("/")[0] for path in initial.weights} == {
        "embedding",
        "source_input",
        "encoder_0",
        "encoder_1",
    }


def test_a_longer_source_than_the_encoder_reads_is_cut(encoder_bundle, tokenizers):
    decoder = StackConfig(
        vocabulary_size=9, pad_id=0, width=8, heads=2, feed_forward=10
    )
    config, _ = weights_of_encoder(
        encoder_bundle, tokenizers, decoder, max_source_tokens=500, decoder_layers=1
    )
    assert config.max_source_tokens == 64


def test_sources_of_another_tokenizer_are_refused(encoder_bundle, tokenizers):
    other = TokenizerPair(Tokenizer([*RESERVED_TOKENS, "▁a"]), tokenizers.target)
    decoder = StackConfig(
        vocabulary_size=9, pad_id=0, width=8, heads=2, feed_forward=10
    )
    with pytest.raises(UsageError, match="prepare the records with --source_tokenizer"):
        weights_of_encoder(
            encoder_bundle, other, decoder, max_source_tokens=50, decoder_layers=1
        )


def largest_changes(before, after):
    """The largest change in each weight, by path."""
    return {path: np.abs(after[path] - before[path]).max() for path in before}


@pytest.mark.parametrize(
    "rates",
    [
        {},
        {"encoder_learning_rate": 1e-4},
        {"encoder_warmup_steps": 1000},
        {"freeze_encoder": True},
    ],
)
def test_the_encoder_learns_at_its_own_rate(
    records_folder, tokenizers, encoder_bundle, tmp_path, rates
):
    """The first step of Adam changes a number by the learning rate, whatever its
    gradient, up to epsilon.
    """
    decoder = StackConfig(
        vocabulary_size=tokenizers.target.vocabulary_size,
        pad_id=0,
        width=8,
        heads=2,
        feed_forward=10,
    )
    config, initial = weights_of_encoder(
        encoder_bundle,
        tokenizers,
        decoder,
        max_source_tokens=50,
        decoder_layers=1,
        max_target_tokens=48,
    )
    settings = {
        "steps": 1,
        "learning_rate": 1e-2,
        "warmup_steps": 10,
        "clip_norm": 0.0,
        **rates,
    }
    training = prepare_training(
        records_folder, tmp_path, network=config, initial=initial, **settings
    )
    network = training.state.network
    before = values(network)
    with eagerly():
        training.run()
    distance = largest_changes(before, values(network))
    expected = {
        "encoder_learning_rate": 1e-5,
        "encoder_warmup_steps": 1e-5,
        "freeze_encoder": 0.0,
    }.get(next(iter(rates), ""), 1e-3)
    for path in (
        "encoder_0/attention/query/kernel",
        "encoder_1/feed_forward/inner/kernel",
        "embedding/table",
    ):
        np.testing.assert_allclose(
            distance[path], expected, rtol=1e-2, atol=1e-9, err_msg=path
        )
    for path in ("decoder_0/cross_attention/query/kernel", "target_embedding/table"):
        np.testing.assert_allclose(distance[path], 1e-3, rtol=1e-2, err_msg=path)


def test_a_network_without_an_encoder_has_none_to_freeze(
    records_folder, tokenizers, tmp_path
):
    config = DecoderOnlyConfig(
        vocabulary_size=tokenizers.target.vocabulary_size,
        pad_id=0,
        width=8,
        heads=2,
        feed_forward=10,
        layers=1,
        max_target_tokens=48,
    )
    with pytest.raises(
        UsageError,
        match="--freeze_encoder is about an encoder, and this network has none of its "
        "own; leave it out",
    ):
        prepare_training(records_folder, tmp_path, network=config, freeze_encoder=True)
