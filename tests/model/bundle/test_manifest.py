"""The files of bundles of every kind: manifest, checksums and refusals."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from support.small_network import config_of

from precis.model.bundle.manifest import (
    open_bundle_config,
    open_tokenizer,
    open_weights,
    read_manifest,
    save_bundle_files,
)
from precis.model.bundle.network_bundle import (
    load_bundle,
    open_bundle,
    read_decoding,
)
from precis.model.errors import DataError, UsageError


def test_an_unknown_network_is_refused(tokenizer, tmp_path):
    fields = dataclasses.asdict(config_of("gru"))
    for architecture, network, words in (
        (
            "mixer",
            fields,
            (
                "the architecture 'mixer' is none of transformer, decoder_only, "
                "recurrent; only a newer precis knows it"
            ),
        ),
        (
            "recurrent",
            {**fields, "peephole": True},
            (
                "a configuration of another version of precis .*'peephole'.*; "
                "train or import again"
            ),
        ),
    ):
        config = {"architecture": architecture, "network": network}
        save_bundle_files(
            str(tmp_path),
            kind="abstractive",
            config=config,
            weights=WEIGHTS,
            provenance={},
            tokenizer=tokenizer,
        )
        with pytest.raises(DataError, match=words):
            load_bundle(str(tmp_path))


WEIGHTS = {
    "a": np.arange(6, dtype="float32").reshape(2, 3),
    "b/c": np.ones(2, "float32"),
}


def save_kind(folder: Path, kind: str, tokenizer=None) -> str:
    return save_bundle_files(
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
    bundle_config = open_bundle_config(str(tmp_path / "b"), "keyphrases", "extractive")
    assert bundle_config == (
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


def test_the_model_id_depends_on_kind_and_tokenizer(tokenizer, tmp_path):
    ids = {
        save_kind(tmp_path / str(n), kind, own)
        for n, (kind, own) in enumerate([("encoder", None), ("extractive", None)])
    }
    assert len(ids | {save_kind(tmp_path / "t", "encoder", tokenizer)}) == 3


@pytest.mark.parametrize(
    ("kind", "taker"),
    [
        ("encoder", "`precis train.* --encoder` takes it"),
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
            match=(
                f"b: this bundle is of the kind {kind}, "
                f"and abstractive is asked for here; {taker}"
            ),
        ):
            load(str(tmp_path / "b"))


def test_an_abstractive_bundle_is_refused_where_another_kind_is_asked_for(bundle):
    with pytest.raises(
        UsageError,
        match=(
            "kind abstractive, and extractive or keyphrases is asked for here; "
            "`precis summarize --bundle` takes it"
        ),
    ):
        open_bundle_config(str(bundle), "extractive", "keyphrases")


def test_changed_files_of_any_kind_are_refused(tokenizer, tmp_path):
    folder = tmp_path / "b"
    save_kind(folder, "keyphrases", tokenizer)
    for name, open_part in (
        ("config.json", lambda folder: open_bundle_config(folder, "keyphrases")),
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
