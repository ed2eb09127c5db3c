"""Bundles that somebody edited: weights that are no numbers, an edited model_id, files
that are not what they should be. Each is refused in one line with a way out.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from support.small_network import network_of

from precis.model.bundle.manifest import (
    content_model_id,
    open_weights,
    read_manifest,
    refuse_other_kind,
    save_bundle_files,
)
from precis.model.bundle.network_bundle import (
    load_bundle,
    open_bundle,
    read_decoding,
    save_bundle,
)
from precis.model.errors import DataError, UsageError
from precis.model.tokenization.wordpiece import Tokenizer
from precis.pipelines.run.result_files import read_run_manifest

WAY_OUT = "copy the bundle again or train it again"
NO_OBJECTS = [b"[1]", b"null", b"1", b'"text"', b"{", b"", b'"\xff"', b"[" * 100_000]


@pytest.fixture(scope="module")
def written(tmp_path_factory, records_folder) -> dict[str, bytes]:
    """The files of a bundle by name."""
    folder = tmp_path_factory.mktemp("bundle")
    tokenizer = Tokenizer.load(f"{records_folder}/tokenizer")
    network = network_of("untied_pointer")
    save_bundle(str(folder), network=network, tokenizer=tokenizer, provenance={})
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.fixture
def bundle(written, tmp_path) -> Path:
    for name, content in written.items():
        (tmp_path / "b" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "b" / name).write_bytes(content)
    return tmp_path / "b"


def rewrite(bundle: Path, name: str, content: bytes) -> None:
    """Replaces a file and makes a manifest that fits it."""
    (bundle / name).write_bytes(content)
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["sha256"][name] = hashlib.sha256(content).hexdigest()
    manifest["model_id"] = content_model_id(manifest)
    (bundle / "manifest.json").write_text(json.dumps(manifest))


def edit(path: Path, **changes: object) -> None:
    content = {**json.loads(path.read_text()), **changes}
    path.write_text(
        json.dumps({name: value for name, value in content.items() if value != "gone"})
    )


@pytest.mark.parametrize(
    ("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]
)
def test_weights_that_are_not_finite_are_refused(bundle, value, word):
    weights = safetensors.numpy.load((bundle / "weights.safetensors").read_bytes())
    name = sorted(weights)[3]
    weights[name].reshape(-1)[-1] = value
    rewrite(bundle, "weights.safetensors", safetensors.numpy.save(weights))
    with pytest.raises(
        DataError,
        match=f"weights.safetensors: the tensor {name} holds {word}; {WAY_OUT}",
    ):
        load_bundle(str(bundle))


def test_weights_that_are_not_finite_are_not_saved(tmp_path):
    large = np.zeros((3, 2_000_000), "float32")
    large[2, -1] = np.nan
    with pytest.raises(
        DataError,
        match="out/weights.safetensors: the tensor b holds NaN; no bundle is written",
    ):
        save_bundle_files(
            str(tmp_path / "out"),
            kind="extractive",
            config={},
            weights={"a": np.arange(3), "b": large},
            provenance={},
        )
    assert list(tmp_path.iterdir()) == []


def test_damaged_weights_with_a_fitting_manifest_are_refused(bundle, written):
    rewrite(bundle, "weights.safetensors", written["weights.safetensors"][:-9])
    with pytest.raises(
        DataError, match=rf"weights.safetensors: damaged \(.*\); {WAY_OUT}"
    ):
        open_weights(str(bundle))


@pytest.mark.parametrize(
    "changes",
    [
        {"model_id": "0" * 16},
        {"model_id": ""},
        {"sha256": {"config.json": "0" * 64, "weights.safetensors": "0" * 64}},
        {"tokenizer_fingerprint": "0" * 64},
        {"tokenizer_fingerprint": "gone"},
        {"source_tokenizer_fingerprint": "0" * 64},
    ],
)
def test_a_model_id_that_is_not_that_of_the_files_is_refused(bundle, changes):
    edit(bundle / "manifest.json", **changes)
    with pytest.raises(
        DataError,
        match=r"manifest.json: its model_id is \w*, and that of its files is \w{16}; "
        f"{WAY_OUT}",
    ):
        open_bundle(str(bundle))


@pytest.mark.parametrize("content", NO_OBJECTS)
def test_a_manifest_that_is_no_object_is_refused(bundle, content):
    (bundle / "manifest.json").write_bytes(content)
    for read in (read_manifest, load_bundle, open_bundle, read_decoding):
        with pytest.raises(
            DataError, match=rf"^{bundle}/manifest.json: damaged \(.*\); {WAY_OUT}$"
        ):
            read(str(bundle))
    with pytest.raises(
        DataError, match=r"manifest.json: damaged \(.*\); name another --output"
    ):
        refuse_other_kind(str(bundle), "encoder")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_id": 3}, "model_id must be of the type string, not number"),
        ({"model_id": True}, "model_id must be of the type string, not boolean"),
        ({"sha256": []}, "sha256 must be of the type object, not array"),
        ({"provenance": None}, "provenance must be of the type object, not null"),
        ({"provenance": "gone"}, "provenance is missing"),
    ],
)
def test_a_manifest_with_a_wrong_field_is_refused(bundle, changes, message):
    edit(bundle / "manifest.json", **changes)
    with pytest.raises(
        DataError, match=rf"manifest.json: damaged \({message}\); {WAY_OUT}"
    ):
        open_bundle(str(bundle))


@pytest.mark.parametrize("field", ["model_id", "sha256"])
def test_a_manifest_without_a_field_is_that_of_no_bundle(bundle, field):
    edit(bundle / "manifest.json", **{field: "gone"})
    with pytest.raises(
        UsageError, match="this is no bundle, its manifest.json is that"
    ):
        open_bundle(str(bundle))


@pytest.mark.parametrize("content", NO_OBJECTS)
def test_a_configuration_that_is_no_object_is_refused(bundle, content):
    rewrite(bundle, "config.json", content)
    for read in (load_bundle, open_bundle, read_decoding):
        with pytest.raises(
            DataError, match=rf"^{bundle}/config.json: damaged \(.*\); {WAY_OUT}$"
        ):
            read(str(bundle))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"network": "gone"}, "network is missing"),
        ({"network": [1]}, "network must be of the type object, not array"),
        ({"special": [1]}, ".*"),
        ({"special": {"start": 1}}, ".*"),
        ({"task_prefixes": 1}, ".*"),
        ({"architecture": ["transformer"]}, ".*"),
    ],
)
def test_a_configuration_with_a_wrong_field_is_refused(bundle, changes, message):
    edit(bundle / "config.json", **changes)
    rewrite(bundle, "config.json", (bundle / "config.json").read_bytes())
    with pytest.raises(
        DataError, match=rf"config.json: damaged \({message}\); {WAY_OUT}"
    ):
        open_bundle(str(bundle))


@pytest.mark.parametrize(
    "changes", [{"width": "8"}, {"encoder_layers": 1.5}, {"encoder_layers": 3}]
)
def test_a_network_that_cannot_be_built_is_refused(bundle, changes):
    config = json.loads((bundle / "config.json").read_text())
    edit(bundle / "config.json", network={**config["network"], **changes})
    rewrite(bundle, "config.json", (bundle / "config.json").read_bytes())
    with pytest.raises(
        DataError, match=r"config.json: damaged \(.*\); |another version"
    ):
        load_bundle(str(bundle))


def test_another_kind_in_the_manifest_is_refused(bundle):
    edit(bundle / "manifest.json", kind="keyphrases", model_id="0" * 16)
    with pytest.raises(
        DataError,
        match="config.json: its kind is 'abstractive', and manifest.json names "
        f"'keyphrases'; {WAY_OUT}",
    ):
        open_bundle(str(bundle))


@pytest.mark.parametrize("content", [b"[1]", b"null", b"{}", b'{"counts": [1]}'])
def test_a_damaged_manifest_of_a_run_is_refused(content, tmp_path):
    path = tmp_path / "manifest.json"
    path.write_bytes(content)
    with pytest.raises(
        DataError, match=r"manifest.json: damaged \(.*\); name another --output"
    ):
        read_run_manifest(str(path))
