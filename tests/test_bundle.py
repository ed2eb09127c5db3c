"""Bundles: what is saved comes back, in this process and a fresh one; what was changed
since is refused.
"""

import dataclasses
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from precis.model.bundle.manifest import (
    has_source_tokenizer,
    open_files,
    open_tokenizer,
    open_weights,
    read_manifest,
    save_files,
)
from precis.model.bundle.network_bundle import (
    check_prefix,
    load_bundle,
    open_bundle,
    read_decoding,
    save_bundle,
)
from precis.model.errors import DataError, UsageError
from precis.model.network.build import build_network
from precis.model.network.config import TransformerConfig
from precis.model.search.config import SearchConfig, SpecialTokens
from precis.model.tokenization.wordpiece import Tokenizer
from tests.small_network import COVERED, KINDS, config_of, network_of
from tests.small_network import SOURCE as SMALL_SOURCE
from tests.small_network import TARGET as SMALL_TARGET

SOURCE = np.array([[9, 30, 31, 200, 0, 0], [40, 41, 42, 43, 44, 45]], "int32")
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
        "config.json",
        "manifest.json",
        "weights.safetensors",
        "tokenizer/vocab.txt",
        "tokenizer/tokenizer.json",
    }


@pytest.mark.parametrize("variant", [*KINDS, *COVERED, "t5", "vocabularies"])
def test_a_network_of_any_architecture_comes_back(variant, tokenizer, tmp_path):
    """Also after others were built in between: weights are found by their paths."""
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


def test_a_network_that_is_not_known_is_refused(tokenizer, tmp_path):
    fields = dataclasses.asdict(config_of("gru"))
    for architecture, network, words in (
        (
            "mixer",
            fields,
            "the architecture 'mixer' is none of transformer, decoder_only, recurrent; only a newer precis knows it",
        ),
        (
            "recurrent",
            {**fields, "peephole": True},
            "a configuration of another version of precis .*'peephole'.*; train or import again",
        ),
    ):
        config = {"architecture": architecture, "network": network}
        save_files(
            str(tmp_path),
            kind="abstractive",
            config=config,
            weights=WEIGHTS,
            provenance={},
            tokenizer=tokenizer,
        )
        with pytest.raises(DataError, match=words):
            load_bundle(str(tmp_path))


def test_sources_may_have_a_tokenizer_of_their_own(network, tokenizer, tmp_path):
    other, folder = Tokenizer(tokenizer.vocabulary, lower_case=True), str(tmp_path)
    shared_id = save_bundle(folder, network=network, tokenizer=tokenizer, provenance={})
    loaded = load_bundle(folder)
    assert loaded.source_tokenizer is loaded.tokenizer and not has_source_tokenizer(
        folder
    )
    own_id = save_bundle(
        folder,
        network=network,
        tokenizer=tokenizer,
        source_tokenizer=other,
        provenance={},
    )
    loaded = load_bundle(folder)
    assert (loaded.tokenizer.fingerprint, loaded.source_tokenizer.fingerprint) == (
        tokenizer.fingerprint,
        other.fingerprint,
    )
    assert has_source_tokenizer(folder) and loaded.model_id == own_id != shared_id
    assert open_bundle(folder).source_tokenizer.fingerprint == other.fingerprint
    tokenizer.save(str(tmp_path / "source_tokenizer"))
    with pytest.raises(
        DataError,
        match="source_tokenizer: not the tokenizer that manifest.json names; copy the bundle again",
    ):
        load_bundle(folder)
    assert (
        save_bundle(folder, network=network, tokenizer=tokenizer, provenance={})
        == shared_id
    )
    assert (
        not has_source_tokenizer(folder)
        and not (tmp_path / "source_tokenizer").exists()
    )


def test_task_prefixes_come_back_and_others_are_refused(network, tokenizer, tmp_path):
    folder, plain = str(tmp_path / "b"), str(tmp_path / "plain")
    prefixes = ("summarize: ", "headline: ")
    first = save_bundle(
        folder,
        network=network,
        tokenizer=tokenizer,
        provenance={},
        task_prefixes=prefixes,
    )
    assert (
        load_bundle(folder).task_prefixes
        == open_bundle(folder).task_prefixes
        == prefixes
    )
    assert read_decoding(folder) == {"task_prefix": "summarize: "}
    for prefix in prefixes:
        check_prefix(prefix, open_bundle(folder))
    for prefix in ("", "translate: "):
        with pytest.raises(
            UsageError,
            match=f"--task_prefix '{prefix}' is not one .* trained with; it knows 'summarize: ', 'headline: '",
        ):
            check_prefix(prefix, open_bundle(folder))
    assert (
        save_bundle(
            plain,
            network=network,
            tokenizer=tokenizer,
            provenance={},
            task_prefixes=("",),
        )
        != first
    )
    assert "task_prefixes" not in json.loads(
        (tmp_path / "plain" / "config.json").read_text()
    )  # as a bundle that was given none
    assert open_bundle(plain).task_prefixes == () and read_decoding(plain) == {}
    check_prefix("", open_bundle(plain))
    with pytest.raises(
        UsageError,
        match="--task_prefix 'summarize: ' is not one that the network was trained with; it knows none",
    ):
        check_prefix("summarize: ", open_bundle(plain))


def test_an_imported_network_says_how_to_search_and_may_know_any_prefix(
    network, tokenizer, tmp_path
):
    special = SpecialTokens(
        start_id=2, end_id=1, pad_id=0, suppressed=(0, 5), prefix=(7,), last_id=1
    )
    decoding = SearchConfig(beam_width=5, length_penalty_form="average")
    settings = {
        "decoding": decoding,
        "special": special,
        "task_prefixes": ("summarize: ",),
    }
    save_bundle(
        str(tmp_path), network=network, tokenizer=tokenizer, provenance={}, **settings
    )
    assert load_bundle(str(tmp_path)).special == special
    assert read_decoding(str(tmp_path)) == {
        **dataclasses.asdict(decoding),
        "task_prefix": "summarize: ",
    }
    check_prefix("translate English to German: ", open_bundle(str(tmp_path)))


def test_the_manifest_says_what_the_files_are(bundle):
    manifest = read_manifest(str(bundle))
    assert manifest == json.loads((bundle / "manifest.json").read_text())
    assert manifest["provenance"] == {"step": 5}
    assert manifest["sha256"] == {
        name: hashlib.sha256((bundle / name).read_bytes()).hexdigest()
        for name in ("config.json", "weights.safetensors")
    }
    assert (
        manifest["model_id"] == load_bundle(str(bundle)).model_id
        and len(manifest["model_id"]) == 16
    )


def test_the_model_id_is_that_of_the_content(bundle, tmp_path, network, tokenizer):
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
        match="tokenizer: not the tokenizer that manifest.json names; copy the bundle again",
    ):
        load_bundle(str(bundle))


def test_a_folder_without_a_manifest_is_no_bundle(bundle):
    (bundle / "manifest.json").unlink()
    with pytest.raises(
        UsageError,
        match=r"this is no complete bundle \(no manifest.json\); name the --output of `precis train`",
    ):
        load_bundle(str(bundle))


def test_a_damaged_or_foreign_manifest_is_refused(bundle):
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
    """A write that fails halfway leaves no folder that passes for the old bundle or the
    new one.
    """
    monkeypatch.setattr("safetensors.numpy.save", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        save_bundle(str(bundle), network=network, tokenizer=tokenizer, provenance={})
    with pytest.raises(UsageError, match="no complete bundle"):
        load_bundle(str(bundle))


@pytest.mark.slow
def test_a_bundle_loads_in_a_fresh_process(bundle, network, tmp_path):
    program = (
        "import sys, numpy as np; from precis.model.bundle.network_bundle import load_bundle; network = load_bundle(sys.argv[1]).network;"
        f"np.save(sys.argv[2], np.asarray(network(np.array({SOURCE.tolist()}, 'int32'), np.array({TARGET.tolist()}, 'int32'))))"
    )
    subprocess.run(
        [sys.executable, "-c", program, str(bundle), str(tmp_path / "logits.npy")],
        check=True,
        capture_output=True,
        timeout=120,
    )
    assert np.array_equal(np.load(tmp_path / "logits.npy"), logits_of(network))


WEIGHTS = {
    "a": np.arange(6, dtype="float32").reshape(2, 3),
    "b/c": np.ones(2, "float32"),
}


def save_kind(folder: Path, kind: str, tokenizer=None) -> str:
    return save_files(
        str(folder),
        kind=kind,
        config={"x": 3},
        weights=WEIGHTS,
        provenance={"step": 1},
        tokenizer=tokenizer,
    )


@pytest.mark.parametrize("has_tokenizer", [True, False])
def test_a_bundle_of_any_kind_comes_back(has_tokenizer, tokenizer, tmp_path):
    model_id = save_kind(
        tmp_path / "b", "extractive", tokenizer if has_tokenizer else None
    )
    found = open_files(str(tmp_path / "b"), "keyphrases", "extractive")
    assert found == (
        "extractive",
        {"format_version": 1, "kind": "extractive", "x": 3},
        model_id,
    )
    weights = open_weights(str(tmp_path / "b"))
    assert weights.keys() == WEIGHTS.keys() and all(
        np.array_equal(weights[name], WEIGHTS[name]) for name in WEIGHTS
    )
    manifest = read_manifest(str(tmp_path / "b"))
    assert (manifest["kind"], manifest["model_id"], manifest["provenance"]) == (
        "extractive",
        model_id,
        {"step": 1},
    )
    assert (
        (tmp_path / "b" / "tokenizer").exists()
        == ("tokenizer_fingerprint" in manifest)
        == has_tokenizer
    )
    if has_tokenizer:
        assert open_tokenizer(str(tmp_path / "b")).fingerprint == tokenizer.fingerprint


def test_the_kind_and_the_tokenizer_count_for_the_model_id(tokenizer, tmp_path):
    ids = {
        save_kind(tmp_path / str(n), kind, own)
        for n, (kind, own) in enumerate([("encoder", None), ("extractive", None)])
    }
    assert len(ids | {save_kind(tmp_path / "t", "encoder", tokenizer)}) == 3


def test_the_model_id_is_the_sha256_of_what_is_in_the_files(bundle, network, tokenizer):
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
    assert (
        manifest["model_id"] == hashlib.sha256(content.encode()).hexdigest()[:16]
        and manifest["kind"] == "abstractive"
    )


@pytest.mark.parametrize(
    ("kind", "taker"),
    [
        ("encoder", "`precis train --task extractive --encoder` takes it"),
        ("extractive", "`precis summarize --extractive_bundle` takes it"),
        ("keyphrases", "`precis summarize --keyphrase_bundle` takes it"),
        ("dreaming", "only a newer precis knows it"),
    ],
)
def test_a_bundle_of_another_kind_is_refused(kind, taker, tokenizer, tmp_path):
    save_kind(tmp_path / "b", kind, tokenizer)
    for load in (load_bundle, open_bundle, read_decoding):
        with pytest.raises(
            UsageError,
            match=f"b: this bundle is of the kind {kind}, and abstractive is asked for here; {taker}",
        ):
            load(str(tmp_path / "b"))


def test_an_abstractive_bundle_is_refused_where_another_kind_is_asked_for(bundle):
    with pytest.raises(
        UsageError,
        match="kind abstractive, and extractive or keyphrases is asked for here; `precis summarize --bundle` takes it",
    ):
        open_files(str(bundle), "extractive", "keyphrases")


def test_what_was_changed_is_refused_whatever_the_kind(tokenizer, tmp_path):
    folder = tmp_path / "b"
    save_kind(folder, "keyphrases", tokenizer)
    for name, open_part in (
        ("config.json", lambda folder: open_files(folder, "keyphrases")),
        ("weights.safetensors", open_weights),
    ):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content + b" ")
        with pytest.raises(
            DataError, match=f"{name}: missing, or its checksum differs"
        ):
            open_part(str(folder))
        (folder / name).write_bytes(content)
    save_kind(tmp_path / "without", "keyphrases")
    (folder / "manifest.json").write_bytes(
        (tmp_path / "without" / "manifest.json").read_bytes()
    )
    with pytest.raises(DataError, match="not the tokenizer that manifest.json names"):
        open_tokenizer(str(folder))
