"""Bundles of encoders, and the encoder of an encoder-decoder."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from support.small_encoder_checkpoint import BERT, write_encoder, write_pieces
from support.small_network import make_network, network_of

from precis.model.bundle.converters.checkpoint import load_encoder
from precis.model.bundle.encoder_bundle import (
    load_encoder_bundle,
    open_encoder,
    save_encoder_bundle,
)
from precis.model.bundle.manifest import save_bundle_files
from precis.model.bundle.network_bundle import save_bundle
from precis.model.errors import DataError, UsageError
from precis.model.tokenization.checkpoint_files import read_tokenizer
from precis.model.tokenization.imported import ImportedTokenizer
from precis.model.tokenization.wordpiece import Tokenizer

IDS = np.array([[3, 6, 7, 8, 2, 4], [3, 22, 35, 4, 0, 0]], "int32")


@pytest.fixture
def bundle(tmp_path) -> Path:
    write_encoder(tmp_path / "checkpoint")
    write_pieces(tmp_path / "checkpoint")
    encoder, tokenizer = (
        load_encoder(str(tmp_path / "checkpoint")),
        read_tokenizer(str(tmp_path / "checkpoint"), BERT),
    )
    model_id = save_encoder_bundle(
        str(tmp_path / "b"),
        encoder=encoder,
        tokenizer=tokenizer,
        provenance={"step": 2},
    )
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_text())
    assert (manifest["model_id"], manifest["kind"], manifest["provenance"]) == (
        model_id,
        "encoder",
        {"step": 2},
    )
    return tmp_path / "b"


def test_an_encoder_comes_back(bundle):
    saved, loaded = (
        load_encoder(str(bundle.parent / "checkpoint")),
        load_encoder_bundle(str(bundle)),
    )
    assert (
        loaded.encoder.config == saved.config
        and loaded.model_id
        == json.loads((bundle / "manifest.json").read_text())["model_id"]
    )
    np.testing.assert_array_equal(
        np.asarray(loaded.encoder(IDS)), np.asarray(saved(IDS))
    )
    assert isinstance(
        loaded.tokenizer, ImportedTokenizer
    ) and loaded.tokenizer.surrounding_ids == (
        (3,),
        (4,),
    )
    config = json.loads((bundle / "config.json").read_text())
    assert config == {
        "format_version": 1,
        "kind": "encoder",
        "encoder": dataclasses.asdict(saved.config),
    }
    names = {
        str(path.relative_to(bundle)) for path in bundle.rglob("*") if path.is_file()
    }
    assert names == {
        "README.md",
        "SHA256SUMS",
        "config.json",
        "manifest.json",
        "weights.safetensors",
        "tokenizer/tokenizers.json",
    }


def test_an_encoder_computes_in_the_given_precision(bundle):
    encoder = load_encoder_bundle(str(bundle), precision="mixed_bfloat16").encoder
    assert (
        encoder.encoder[1].feed_forward.inner.compute_dtype == "bfloat16"
        and encoder.weights[0].dtype == "float32"
    )


def test_the_encoder_of_an_encoder_decoder_is_loaded(records_folder, tmp_path):
    tokenizer = Tokenizer.load(f"{records_folder}/tokenizer")
    network = make_network(
        vocabulary_size=tokenizer.vocabulary_size, pad_id=0, pointer=True
    )
    model_id = save_bundle(
        str(tmp_path / "b"), network=network, tokenizer=tokenizer, provenance={}
    )
    loaded = load_encoder_bundle(str(tmp_path / "b"))
    assert (
        loaded.model_id == model_id
        and isinstance(loaded.tokenizer, Tokenizer)
        and loaded.encoder.config == network.config.encoder
    )
    np.testing.assert_array_equal(
        np.asarray(loaded.encoder(IDS)), np.asarray(network.encode(IDS).states)
    )


def test_an_encoder_is_opened_without_building_it(bundle):
    """The result has the configuration and the weights by their paths in the bundle."""
    opened, loaded = open_encoder(str(bundle)), load_encoder_bundle(str(bundle))
    assert (opened.config, opened.model_id) == (loaded.encoder.config, loaded.model_id)
    assert opened.weights.keys() == {weight.path for weight in loaded.encoder.weights}
    for weight in loaded.encoder.weights:
        np.testing.assert_array_equal(opened.weights[weight.path], weight.numpy())
    assert opened.tokenizer.fingerprint == loaded.tokenizer.fingerprint


@pytest.mark.parametrize("variant", ["t5", "vocabularies"])
def test_an_encoder_comes_with_the_tokenizer_of_sources(
    variant, records_folder, tmp_path
):
    target = Tokenizer.load(f"{records_folder}/tokenizer")
    source, network = Tokenizer(target.vocabulary, lower_case=True), network_of(variant)
    save_bundle(
        str(tmp_path),
        network=network,
        tokenizer=target,
        source_tokenizer=source,
        provenance={},
    )
    loaded = load_encoder_bundle(str(tmp_path))
    assert loaded.tokenizer.fingerprint == source.fingerprint != target.fingerprint
    ids = IDS % 13
    np.testing.assert_array_equal(
        np.asarray(loaded.encoder(ids)), np.asarray(network.encode(ids).states)
    )


@pytest.mark.parametrize(
    ("variant", "architecture"),
    [("decoder_only", "decoder_only"), ("gru", "recurrent")],
)
def test_a_network_without_a_separate_encoder_is_refused(
    variant, architecture, records_folder, tmp_path
):
    tokenizer = Tokenizer.load(f"{records_folder}/tokenizer")
    save_bundle(
        str(tmp_path / "b"),
        network=network_of(variant),
        tokenizer=tokenizer,
        provenance={},
    )
    with pytest.raises(
        UsageError,
        match=(
            f"b: a network of the architecture {architecture} has no encoder to take; "
            f"name another bundle"
        ),
    ):
        load_encoder_bundle(str(tmp_path / "b"))


def test_a_bundle_without_an_encoder_is_refused(tmp_path):
    save_bundle_files(
        str(tmp_path / "b"), kind="extractive", config={}, weights={}, provenance={}
    )
    with pytest.raises(
        UsageError,
        match=(
            "kind extractive, and encoder or abstractive is asked for here; "
            "`precis summarize --extractive_b"
        ),
    ):
        load_encoder_bundle(str(tmp_path / "b"))


def test_changed_weights_are_refused(bundle):
    path = bundle / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(
        DataError,
        match=(
            "weights.safetensors: missing, or its checksum differs from manifest.json's"
        ),
    ):
        load_encoder_bundle(str(bundle))
