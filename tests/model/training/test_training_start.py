"""The first weights of a training: those of a bundle, a trained encoder below a new
decoder, and word vectors.
"""

import dataclasses
import functools

import numpy as np
import pytest
from support.plain_network import scramble
from support.small_training import network_config, prepare_training

from precis.model.bundle.network_bundle import load_bundle, save_bundle
from precis.model.errors import UsageError
from precis.model.network.build import build_network
from precis.model.network.config import DecoderOnlyConfig, EncoderConfig, StackConfig
from precis.model.tokenization.folder import TokenizerPair, load_tokenizers
from precis.model.tokenization.wordpiece import RESERVED_TOKENS, Tokenizer
from precis.model.training.initialization import (
    InitialWeights,
    initialise,
    weights_of_bundle,
    weights_of_encoder,
    with_word_vectors,
)
from precis.model.training.state import save_training


def values(network):
    """The weights by path, without the network's name."""
    return {
        weight.path.split("/", 1)[1]: np.asarray(weight.numpy())
        for weight in network.weights
    }


@pytest.fixture(scope="module")
def tokenizers(records_folder) -> TokenizerPair:
    return load_tokenizers(records_folder)


OTHER = Tokenizer([*RESERVED_TOKENS, "▁a"])

# --init_from


@pytest.fixture(scope="module")
def trained(tokenizers, tmp_path_factory) -> str:
    """A bundle of a network whose position table is learned."""
    folder = str(tmp_path_factory.mktemp("trained"))
    network = build_network(network_config(positions="learned"))
    scramble(network, seed=3)
    save_bundle(folder, network=network, tokenizer=tokenizers.target, provenance={})
    return folder


def test_a_network_begins_with_the_weights_of_its_bundle(trained, tokenizers):
    changes = {"dropout": 0.3, "max_source_tokens": 40}
    config, initial = weights_of_bundle(trained, tokenizers, **changes)
    assert config == network_config(positions="learned", **changes)
    network = build_network(config, seed=1)
    assert initialise(network, initial, tokenizers.source) == {
        "init_from": load_bundle(trained).model_id
    }
    before, after = values(load_bundle(trained).network), values(network)
    before["source_input/positions"] = before["source_input/positions"][:40]
    assert before.keys() == after.keys()
    for path, value in before.items():
        np.testing.assert_array_equal(after[path], value, err_msg=path)


def test_a_bundle_that_does_not_fit_is_refused(trained, tokenizers):
    match = r"its vocabulary \(tokenizer \w{12}, \d+ pieces\) differs from .* "
    match += r"\(\w{12}, 5 pieces\); prepare the records with `tokenizer="
    with pytest.raises(UsageError, match=match):
        weights_of_bundle(trained, TokenizerPair(OTHER, OTHER))
    match = "`max_source_tokens=193` is more than .* learned .*; set it to 192 or less"
    with pytest.raises(UsageError, match=match):
        weights_of_bundle(trained, tokenizers, max_source_tokens=193)


def test_a_training_from_other_first_weights_is_another(
    records_folder, tokenizers, trained, tmp_path
):
    config, initial = weights_of_bundle(trained, tokenizers)
    begin = functools.partial(prepare_training, records_folder, tmp_path)
    save_training(begin(network=config, initial=initial))
    other = dataclasses.replace(initial, identity={"init_from": "0" * 16})
    message = "with other settings: the initial weights differ"
    with pytest.raises(UsageError, match=message):
        begin(network=config, initial=other)


# --encoder


@pytest.fixture(scope="module")
def encoder_bundle(tokenizers, tmp_path_factory) -> str:
    folder = str(tmp_path_factory.mktemp("encoder"))
    size = tokenizers.source.vocabulary_size
    shape = {"width": 12, "heads": 3, "feed_forward": 20, "encoder_layers": 2}
    positions = {"max_source_tokens": 64, "positions": "learned"}
    others = {"embedding_norm": True, **shape, **positions}
    encoder = build_network(EncoderConfig(vocabulary_size=size, pad_id=0, **others))
    scramble(encoder, seed=4)
    save_bundle(folder, network=encoder, tokenizer=tokenizers.source, provenance={})
    return folder


def on_encoder(folder, tokenizers, **changes):
    """The encoder below a new decoder."""
    size = tokenizers.target.vocabulary_size
    shape = {"width": 8, "heads": 2, "feed_forward": 10}
    decoder = StackConfig(vocabulary_size=size, pad_id=0, **shape)
    limits = {"max_source_tokens": 50, "max_target_tokens": 48, "decoder_layers": 1}
    return weights_of_encoder(folder, tokenizers, decoder, **{**limits, **changes})


def test_a_decoder_is_put_on_an_encoder(encoder_bundle, tokenizers):
    config, initial = on_encoder(encoder_bundle, tokenizers, decoder_layers=3)
    assert (config.width, config.decoder.width, config.decoder_layers) == (12, 8, 3)
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
    parts = {path.split("/")[0] for path in initial.weights}
    assert parts == {"embedding", "source_input", "encoder_0", "encoder_1"}
    # A longer source than the encoder reads is cut, one of another tokenizer refused.
    config, _ = on_encoder(encoder_bundle, tokenizers, max_source_tokens=500)
    assert config.max_source_tokens == 64
    other = TokenizerPair(OTHER, tokenizers.target)
    with pytest.raises(UsageError, match="prepare the records with `source_tokenizer="):
        on_encoder(encoder_bundle, other)


def test_a_network_without_an_encoder_has_none_to_freeze(records_folder, tmp_path):
    shape = {"width": 8, "heads": 2, "feed_forward": 10, "layers": 1}
    config = DecoderOnlyConfig(vocabulary_size=600, pad_id=0, **shape)
    match = "`freeze_encoder=` does not apply, as this network has no sep"
    with pytest.raises(UsageError, match=match):
        prepare_training(records_folder, tmp_path, network=config, freeze_encoder=True)


# --word_vectors


def test_embeddings_begin_as_word_vectors(tokenizers, tmp_path, capsys):
    words = [word for word in tokenizers.source.words if word]
    path = tmp_path / "vectors.txt"
    vector = " ".join(map(str, range(16)))
    other = " ".join(["1"] * 16)
    path.write_text(f"2 16\n{words[5]} {vector}\nnowhere {other}\n")
    initial = with_word_vectors(InitialWeights(), str(path))
    network = build_network(network_config())
    before = values(network)["embedding/table"]
    facts = initialise(network, initial, tokenizers.source)
    after = values(network)["embedding/table"]
    (row,) = np.flatnonzero((before != after).any(axis=1))
    assert tokenizers.source.words[row] == words[5]
    np.testing.assert_allclose(after[row] / after[row, 1], range(16), rtol=1e-5)
    share = f"1 of {len(words)} words have a vector"
    assert facts["word_vectors_found"].startswith(share)
    assert len(facts["word_vectors"]) == 64
    assert f"word vectors: {share}" in capsys.readouterr().err


def test_word_vectors_that_are_not_there_are_refused(tmp_path):
    match = "`word_vectors=.*none.txt`: no such file; name a file in Word2Vec's"
    with pytest.raises(UsageError, match=match):
        with_word_vectors(InitialWeights(), str(tmp_path / "none.txt"))
