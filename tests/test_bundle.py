"""Bundles: what is saved comes back, in this process and a fresh one; what was changed since is refused."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from model.bundle import load_bundle, read_manifest, save_bundle
from model.config import NetworkConfig
from model.errors import DataError, UsageError
from model.network.build import build_network
from model.tokenizer import Tokenizer

SOURCE = np.array([[9, 30, 31, 200, 0, 0], [40, 41, 42, 43, 44, 45]], "int32")
TARGET = np.array([[2, 30, 31, 7], [2, 50, 0, 0]], "int32")


@pytest.fixture(scope="module")
def tokenizer(records_folder) -> Tokenizer:
    return Tokenizer.load(f"{records_folder}/tokenizer")


@pytest.fixture(scope="module")
def network(tokenizer):
    config = NetworkConfig(
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
    save_bundle(str(tmp_path / "bundle"), network=network, tokenizer=tokenizer, provenance={"step": 5})
    return tmp_path / "bundle"


def logits_of(network) -> np.ndarray:
    return np.asarray(network(SOURCE, TARGET))


def test_a_bundle_comes_back_and_has_no_pickle(bundle, network, tokenizer):
    loaded = load_bundle(str(bundle))
    assert loaded.network is not network and np.array_equal(logits_of(loaded.network), logits_of(network))
    assert loaded.network.config == network.config
    assert loaded.tokenizer.vocabulary == tokenizer.vocabulary
    names = {str(path.relative_to(bundle)) for path in bundle.rglob("*") if path.is_file()}
    assert names == {"config.json", "manifest.json", "weights.safetensors", "tokenizer/vocab.txt", "tokenizer/tokenizer.json"}


def test_the_manifest_says_what_the_files_are(bundle):
    manifest = read_manifest(str(bundle))
    assert manifest == json.loads((bundle / "manifest.json").read_text())
    assert manifest["provenance"] == {"step": 5}
    assert manifest["sha256"] == {
        name: hashlib.sha256((bundle / name).read_bytes()).hexdigest() for name in ("config.json", "weights.safetensors")
    }
    assert manifest["model_id"] == load_bundle(str(bundle)).model_id and len(manifest["model_id"]) == 16


def test_the_model_id_is_that_of_the_content(bundle, tmp_path, network, tokenizer):
    def model_id(network, tokenizer=tokenizer, **provenance):
        return save_bundle(str(tmp_path / "other" / "place"), network=network, tokenizer=tokenizer, provenance=provenance)

    first = read_manifest(str(bundle))["model_id"]
    assert model_id(network, step=7) == first  # neither the folder nor the provenance counts
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
    for changed in (content.replace(b"0.25", b"0.75") if name == "config.json" else content[:-1] + bytes([content[-1] ^ 1]), content[:-9]):
        assert changed != content
        path.write_bytes(changed)
        with pytest.raises(DataError, match=rf"{name}: missing, or its checksum differs from manifest.json's"):
            load_bundle(str(bundle))
    path.unlink()
    with pytest.raises(DataError, match=f"{name}: missing"):
        load_bundle(str(bundle))


def test_another_tokenizer_is_refused(bundle, tokenizer):
    Tokenizer(tokenizer.vocabulary, lower_case=True).save(str(bundle / "tokenizer"))
    with pytest.raises(DataError, match="tokenizer: not the tokenizer that manifest.json names; copy the bundle again"):
        load_bundle(str(bundle))


def test_a_folder_without_a_manifest_is_no_bundle(bundle):
    (bundle / "manifest.json").unlink()
    with pytest.raises(UsageError, match=r"this is no complete bundle \(no manifest.json\); name the --output of `precis train`"):
        load_bundle(str(bundle))


def test_a_damaged_or_foreign_manifest_is_refused(bundle):
    manifest = bundle / "manifest.json"
    content = manifest.read_text()
    manifest.write_text(content[:40])
    with pytest.raises(DataError, match=r"manifest.json: damaged \(.*copy the bundle again"):
        read_manifest(str(bundle))
    manifest.write_text(json.dumps({**json.loads(content), "format_version": 99}))
    with pytest.raises(UsageError, match="format_version is 99 and this precis reads 1; train it again"):
        load_bundle(str(bundle))


def test_a_bundle_is_incomplete_while_it_is_replaced(bundle, network, tokenizer, monkeypatch):
    """A write that fails halfway leaves no folder that passes for the old bundle or the new one."""
    monkeypatch.setattr("safetensors.numpy.save", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        save_bundle(str(bundle), network=network, tokenizer=tokenizer, provenance={})
    with pytest.raises(UsageError, match="no complete bundle"):
        load_bundle(str(bundle))


@pytest.mark.slow
def test_a_bundle_loads_in_a_fresh_process(bundle, network, tmp_path):
    program = (
        "import sys, numpy as np; from model.bundle import load_bundle; network = load_bundle(sys.argv[1]).network;"
        f"np.save(sys.argv[2], np.asarray(network(np.array({SOURCE.tolist()}, 'int32'), np.array({TARGET.tolist()}, 'int32'))))"
    )
    subprocess.run([sys.executable, "-c", program, str(bundle), str(tmp_path / "logits.npy")], check=True, capture_output=True, timeout=120)
    assert np.array_equal(np.load(tmp_path / "logits.npy"), logits_of(network))
