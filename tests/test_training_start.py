"""The first weights of a training: those of a bundle, a trained encoder, word vectors;
and the learning rate of the encoder.
"""

import dataclasses

import numpy as np
import pytest
from small_training import network_config, prepare_training

from precis.model.bundle.encoder_bundle import save_encoder_bundle
from precis.model.bundle.network_bundle import load_bundle, open_bundle, save_bundle
from precis.model.errors import UsageError
from precis.model.network.build import build_encoder, build_network
from precis.model.network.config import DecoderOnlyConfig, EncoderConfig, StackConfig
from precis.model.tokenization.folder import Tokenizers, load_tokenizers
from precis.model.tokenization.wordpiece import RESERVED_TOKENS, Tokenizer
from precis.model.training.export import export_network
from precis.model.training.initialization import (
    InitialWeights,
    initialise,
    weights_of_bundle,
    weights_of_encoder,
    with_word_vectors,
)
from tests.plain_network import scramble


def values(network):
    """The weights by path, without the network's name."""
    return {
        weight.path.split("/", 1)[1]: np.asarray(weight.numpy())
        for weight in network.weights
    }


@pytest.fixture(scope="module")
def tokenizers(records_folder) -> Tokenizers:
    return load_tokenizers(records_folder)


@pytest.fixture(scope="module")
def trained(tokenizers, tmp_path_factory) -> str:
    """A bundle of a network whose position table is learned."""
    folder = str(tmp_path_factory.mktemp("trained"))
    network = build_network(network_config(positions="learned"))
    scramble(network, seed=3)
    save_bundle(
        folder,
        network=network,
        tokenizer=tokenizers.target,
        provenance={},
        task_prefixes=["summarize: "],
    )
    return folder


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


# --init_from


def test_a_network_begins_with_the_weights_of_its_bundle(trained, tokenizers):
    config, initial = weights_of_bundle(
        trained, tokenizers, dropout=0.3, max_source_tokens=40, max_target_tokens=48
    )
    assert config == network_config(
        positions="learned", dropout=0.3, max_source_tokens=40
    )
    network = build_network(config, seed=1)
    assert initialise(network, initial, tokenizers.source) == {
        "init_from": load_bundle(trained).model_id
    }
    before, after = values(load_bundle(trained).network), values(network)
    assert after["source_input/positions"].shape == (40, 16)
    before["source_input/positions"] = before["source_input/positions"][:40]
    assert before.keys() == after.keys()
    assert all((before[path] == after[path]).all() for path in before)


def test_coverage_adds_one_weight_that_is_zero(trained, tokenizers):
    config, initial = weights_of_bundle(trained, tokenizers, coverage=True)
    network = build_network(config)
    initialise(network, initial, tokenizers.source)
    (added,) = values(network).keys() - values(load_bundle(trained).network).keys()
    assert added == "pointer/coverage_weight" and values(network)[added] == 0.0
    source = np.array([[7, 8, 9]], "int32")
    np.testing.assert_array_equal(
        network(source, source), load_bundle(trained).network(source, source)
    )


def test_another_vocabulary_is_refused(trained):
    other = Tokenizer([*RESERVED_TOKENS, "▁a", "▁b"])
    words = (
        r"its vocabulary \(tokenizer \w{12}, \d+ pieces\) is not the records' "
        r"\(\w{12}, 6 pieces\); prepare the records with --tokenizer"
    )
    with pytest.raises(UsageError, match=words):
        weights_of_bundle(trained, Tokenizers(other, other))


def test_more_positions_than_were_learned_are_refused(trained, tokenizers):
    with pytest.raises(
        UsageError,
        match="--max_source_tokens 193 is more than the 192 positions "
        "that .* has learned; set it to 192",
    ):
        weights_of_bundle(trained, tokenizers, max_source_tokens=193)


def test_coverage_needs_a_pointer(tokenizers, tmp_path):
    save_bundle(
        str(tmp_path),
        network=build_network(network_config(pointer=False)),
        tokenizer=tokenizers.target,
        provenance={},
    )
    with pytest.raises(
        UsageError,
        match="coverage is what the pointer has read so far, so it needs one; "
        "leave --no-pointer or --coverage out",
    ):
        weights_of_bundle(str(tmp_path), tokenizers, coverage=True)


def test_a_training_goes_on_from_a_bundle(
    records_folder, tokenizers, trained, tmp_path
):
    config, initial = weights_of_bundle(trained, tokenizers)
    training = prepare_training(
        records_folder, tmp_path / "one", network=config, initial=initial, steps=2
    )
    table = values(training.state.network)["embedding/table"]
    assert (table == values(load_bundle(trained).network)["embedding/table"]).all()
    training.run()
    export_network(training.setup, training.state)
    assert load_bundle(str(tmp_path / "one")).model_id != load_bundle(trained).model_id
    assert open_bundle(str(tmp_path / "one")).config == config
    # A training that began with other weights is another training.
    other = dataclasses.replace(initial, identity={"init_from": "0" * 16})
    with pytest.raises(
        UsageError, match="belongs to a training with other records or settings"
    ):
        prepare_training(
            records_folder, tmp_path / "one", network=config, initial=other, steps=2
        )


# --encoder


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
    other = Tokenizers(Tokenizer([*RESERVED_TOKENS, "▁a"]), tokenizers.target)
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


def test_a_missing_file_of_word_vectors_is_refused(tmp_path):
    with pytest.raises(
        UsageError,
        match="--word_vectors .*none.txt: there is no such file; "
        "name one in Word2Vec's text or binary format",
    ):
        with_word_vectors(InitialWeights(), str(tmp_path / "none.txt"))


def test_word_vectors_do_not_replace_the_embeddings_of_a_bundle(
    tokenizers, trained, tmp_path
):
    _, initial = weights_of_bundle(trained, tokenizers)
    with pytest.raises(
        UsageError, match="a bundle brings its own; leave one of the two out"
    ):
        with_word_vectors(initial, str(tmp_path))
