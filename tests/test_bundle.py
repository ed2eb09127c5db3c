"""Bundles of networks: they come back in any process, and changed ones are refused."""

import dataclasses
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from support.small_network import SOURCE as SMALL_SOURCE
from support.small_network import TARGET as SMALL_TARGET
from support.small_network import config_of, network_of

from precis.model.bundle.manifest import (
    read_manifest,
)
from precis.model.bundle.network_bundle import (
    load_bundle,
    open_bundle,
    save_bundle,
)
from precis.model.errors import DataError, UsageError
from precis.model.network.build import build_network
from precis.model.network.config import TransformerConfig
from precis.model.tokenization.wordpiece import Tokenizer

SOURCE = np.array([[9, 30, 31, 200, -1, -1], [40, 41, 42, 43, 44, 45]], "int32")
TARGET = np.array([[2, 30, 31, 7], [2, 50, 0, 0]], "int32")


@pytest.fixture(scope="module")
def tokenizer(records_folder) -> Tokenizer:
    return Tokenizer.load(f"{records_folder}/tokenizer")


@pytest.fixture(scope="module")
def network(tokenizer):
    config = TransformerConfig(
        vocabulary_size=tokenizer.vocabulary_size,
        pad_id=0,
        encoder_layers=2,
        decoder_layers=1,
        width=16,
        feed_forward=24,
        heads=2,
        dropout=0.25,
    )
    return build_network(config, seed=4)


@pytest.fixture
def bundle(tmp_path, network, tokenizer) -> Path:
    save_bundle(
        str(tmp_path / "bundle"),
        network=network,
        tokenizer=tokenizer,
        provenance={"step": 5},
    )
    return tmp_path / "bundle"


def logits_of(network) -> np.ndarray:
    return np.asarray(network(SOURCE, TARGET))


def test_a_bundle_comes_back_and_has_no_pickle(bundle, network, tokenizer):
    loaded = load_bundle(str(bundle))
    assert loaded.network is not network and np.array_equal(
        logits_of(loaded.network), logits_of(network)
    )
    assert loaded.network.config == network.config
    assert loaded.tokenizer.vocabulary == tokenizer.vocabulary
    names = {
        str(path.relative_to(bundle)) for path in bundle.rglob("*") if path.is_file()
    }
    assert names == {
        "README.md",
        "SHA256SUMS",
        "config.json",
        "manifest.json",
        "weights.safetensors",
        "tokenizer/vocab.txt",
        "tokenizer/tokenizer.json",
    }


@pytest.mark.parametrize("variant", ["untied_pointer", "decoder_only", "lstm"])
def test_a_network_of_any_architecture_comes_back(variant, tokenizer, tmp_path):
    """Weights are matched by path, so other networks may be built in between."""
    network = network_of(variant)
    save_bundle(str(tmp_path), network=network, tokenizer=tokenizer, provenance={})
    build_network(config_of(variant))
    loaded = load_bundle(str(tmp_path))
    assert (
        loaded.network.config == network.config and loaded.network.name == network.name
    )
    np.testing.assert_array_equal(
        loaded.network(SMALL_SOURCE, SMALL_TARGET), network(SMALL_SOURCE, SMALL_TARGET)
    )
    assert (
        json.loads((tmp_path / "config.json").read_text())["architecture"]
        == network.name
    )
    assert open_bundle(str(tmp_path)).config == network.config


def test_the_model_id_depends_on_the_content_only(bundle, tmp_path, network, tokenizer):
    def model_id(network, tokenizer=tokenizer, **provenance):
        return save_bundle(
            str(tmp_path / "other" / "place"),
            network=network,
            tokenizer=tokenizer,
            provenance=provenance,
        )

    first = read_manifest(str(bundle))["model_id"]
    assert (
        model_id(network, step=7) == first
    )  # neither the folder nor the provenance counts
    assert model_id(network, Tokenizer(tokenizer.vocabulary, lower_case=True)) != first
    other = build_network(network.config, seed=4)
    assert model_id(other) == first
    bias = next(weight for weight in other.weights if weight.path.endswith("bias"))
    bias.assign(bias.numpy() + np.float32(1e-6))
    assert model_id(other) != first


@pytest.mark.parametrize("name", ["weights.safetensors", "config.json"])
def test_a_changed_file_is_refused(bundle, name):
    path = bundle / name
    content = path.read_bytes()
    for changed in (
        content.replace(b"0.25", b"0.75")
        if name == "config.json"
        else content[:-1] + bytes([content[-1] ^ 1]),
        content[:-9],
    ):
        assert changed != content
        path.write_bytes(changed)
        with pytest.raises(
            DataError,
            match=rf"{name}: missing, or its checksum differs from manifest.json's",
        ):
            load_bundle(str(bundle))
    path.unlink()
    with pytest.raises(DataError, match=f"{name}: missing"):
        load_bundle(str(bundle))


def test_another_tokenizer_is_refused(bundle, tokenizer):
    Tokenizer(tokenizer.vocabulary, lower_case=True).save(str(bundle / "tokenizer"))
    with pytest.raises(
        DataError,
        match=(
            "tokenizer: not the tokenizer that manifest.json names; "
            "copy the bundle again"
        ),
    ):
        load_bundle(str(bundle))


def test_a_folder_without_a_manifest_is_no_bundle(bundle):
    (bundle / "manifest.json").unlink()
    with pytest.raises(
        UsageError,
        match=(
            r"this is no complete bundle \(no manifest.json\); "
            r"name the --output of `precis train`"
        ),
    ):
        load_bundle(str(bundle))


def test_a_manifest_that_is_damaged_or_of_another_version_is_refused(bundle):
    manifest = bundle / "manifest.json"
    content = manifest.read_text()
    manifest.write_text(content[:40])
    with pytest.raises(
        DataError, match=r"manifest.json: damaged \(.*copy the bundle again"
    ):
        read_manifest(str(bundle))
    manifest.write_text(json.dumps({**json.loads(content), "format_version": 99}))
    with pytest.raises(
        UsageError, match="format_version is 99 and this precis reads 1; train it again"
    ):
        load_bundle(str(bundle))


def test_a_bundle_is_incomplete_while_it_is_replaced(
    bundle, network, tokenizer, monkeypatch
):
    """After an interrupted write the folder is neither the old nor the new bundle."""
    monkeypatch.setattr("safetensors.numpy.save", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        save_bundle(str(bundle), network=network, tokenizer=tokenizer, provenance={})
    with pytest.raises(UsageError, match="no complete bundle"):
        load_bundle(str(bundle))


def test_the_model_id_is_the_sha256_of_the_checksums(bundle, network, tokenizer):
    config = json.loads((bundle / "config.json").read_text())
    shape = {
        "architecture": "transformer",
        "network": dataclasses.asdict(network.config),
    }
    assert config == {"format_version": 1, "kind": "abstractive", **shape}
    checksums = {
        name: hashlib.sha256((bundle / name).read_bytes()).hexdigest()
        for name in ("config.json", "weights.safetensors")
    }
    content = json.dumps(
        {**checksums, "tokenizer": tokenizer.fingerprint},
        sort_keys=True,
        separators=(",", ":"),
    )
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert manifest["model_id"] == hashlib.sha256(content.encode()).hexdigest()[:16]
    assert (manifest["sha256"], manifest["kind"]) == (checksums, "abstractive")
    assert manifest["provenance"] == {"step": 5}
