"""The first weights of a training: those of a bundle, and word vectors."""

import dataclasses

import numpy as np
import pytest
from support.plain_network import scramble
from support.shared_networks import eagerly
from support.small_training import network_config, prepare_training

from precis.model.bundle.network_bundle import load_bundle, open_bundle, save_bundle
from precis.model.errors import UsageError
from precis.model.network.build import build_network
from precis.model.tokenization.folder import TokenizerPair, load_tokenizers
from precis.model.tokenization.wordpiece import RESERVED_TOKENS, Tokenizer
from precis.model.training.export import export_network
from precis.model.training.initialization import (
    InitialWeights,
    initialise,
    weights_of_bundle,
    with_word_vectors,
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
        weights_of_bundle(trained, TokenizerPair(other, other))


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


@pytest.mark.slow
def test_a_training_goes_on_from_a_bundle(
    records_folder, tokenizers, trained, tmp_path
):
    config, initial = weights_of_bundle(trained, tokenizers)
    training = prepare_training(
        records_folder, tmp_path / "one", network=config, initial=initial, steps=2
    )
    table = values(training.state.network)["embedding/table"]
    assert (table == values(load_bundle(trained).network)["embedding/table"]).all()
    with eagerly():
        training.run()
    export_network(training.setup, training.state)
    assert load_bundle(str(tmp_path / "one")).model_id != load_bundle(trained).model_id
    assert open_bundle(str(tmp_path / "one")).config == config
    # A training that began with other weights is another training.
    other = dataclasses.replace(initial, identity={"init_from": "0" * 16})
    with pytest.raises(UsageError, match="of other settings: the first weights differ"):
        prepare_training(
            records_folder, tmp_path / "one", network=config, initial=other, steps=2
        )


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
