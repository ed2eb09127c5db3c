"""Bundles of networks and encoders: they come back in any process, and files that were
changed, on the way or by somebody who made the checksums anew, are refused in one line
with a way out.
"""

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from support import read_table
from support.command_line import contents
from support.small_encoder_checkpoint import BERT, write_encoder, write_pieces
from support.small_network import SOURCE, TARGET, config_of, make_network, network_of

from precis.model.bundle.checkpoints.importer import load_checkpoint
from precis.model.bundle.manifest import (
    content_model_id,
    open_stored,
    refuse_other_kind,
    save_bundle_files,
)
from precis.model.bundle.network_bundle import (
    check_prefix,
    load_bundle,
    load_encoder_bundle,
    open_bundle,
    open_encoder,
    read_summary_flags,
    save_bundle,
    with_decoding_of_bundle,
)
from precis.model.errors import DataError, UsageError
from precis.model.network.build import build_network
from precis.model.tokenization.imported import read_tokenizer
from precis.model.tokenization.wordpiece import Tokenizer
from precis.pipelines.tables.finished_run import read_run

WAY_OUT = "copy the bundle again or train it again"
WEIGHTS = "weights.safetensors"
NO_OBJECTS = [b"[1]", b"null", b"1", b'"text"', b"{", b"", b'"\xff"', b"[" * 100_000]
IDS = np.array([[3, 6, 7, 8, 2, 4], [3, 22, 35, 4, 0, 0]], "int32")
FILES = {"README.md", "config.json", "manifest.json", WEIGHTS}
OTHER_TOKENIZER = "tokenizer: not the tokenizer that .* with; copy the bundle again"
LATER_FIELDS = set(
    "rotary_base rotary_scaling reach window local_rotary_base kv_heads qk_norm "
    "norm_bias first_norm both_norms score_width merged_attention "
    "continues_source labels".split()
)
OTHER_FILE = "missing, or its checksum differs from manifest.json's"


def without_later_fields(config) -> dict:
    """The fields that are stored where the others have their defaults."""
    fields = dataclasses.asdict(config)
    return {name: fields[name] for name in fields.keys() - LATER_FIELDS}


@pytest.fixture(scope="module")
def tokenizer(records_folder) -> Tokenizer:
    return Tokenizer.load(f"{records_folder}/tokenizer")


@pytest.fixture(scope="module")
def lower(tokenizer) -> Tokenizer:
    return Tokenizer(tokenizer.vocabulary, lower_case=True)


@pytest.fixture(scope="module")
def network():
    return network_of("untied_pointer")


def save(folder: Path, network: Any, tokenizer: Tokenizer, **more: Any) -> str:
    fields = {"provenance": {"step": 5}, **more}
    return save_bundle(str(folder), network=network, tokenizer=tokenizer, **fields)


@pytest.fixture
def bundle(network, tokenizer, tmp_path) -> Path:
    save(tmp_path / "b", network, tokenizer)
    return tmp_path / "b"


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


def edit(path: Path, **changes: object) -> None:
    content = {**read(path), **changes}
    kept = {name: value for name, value in content.items() if value != "gone"}
    path.write_text(json.dumps(kept))


def rewrite(bundle: Path, name: str, content: bytes) -> None:
    """Replaces a file and makes a manifest that fits it."""
    (bundle / name).write_bytes(content)
    manifest = read(bundle / "manifest.json")
    manifest["sha256"][name] = hashlib.sha256(content).hexdigest()
    manifest["model_id"] = content_model_id(manifest)
    (bundle / "manifest.json").write_text(json.dumps(manifest))


# Networks come back.
@pytest.mark.parametrize("variant", ["untied_pointer", "decoder_only", "gru_untied"])
def test_a_network_of_any_architecture_comes_back(variant, tokenizer, tmp_path):
    """Weights are matched by path, so other networks may be built in between."""
    network = network_of(variant)
    save(tmp_path, network, tokenizer)
    build_network(config_of(variant))
    loaded = load_bundle(str(tmp_path))
    assert loaded.network.config == network.config
    assert loaded.network.name == network.name
    logits, expected = (each(SOURCE, TARGET) for each in (loaded.network, network))
    np.testing.assert_array_equal(logits, expected)
    assert loaded.tokenizer.vocabulary == tokenizer.vocabulary
    assert read(tmp_path / "config.json")["architecture"] == network.name
    assert open_bundle(str(tmp_path)).config == network.config
    tokenizers = {"tokenizer/vocab.txt", "tokenizer/tokenizer.json"}
    assert set(contents(tmp_path)) == FILES | tokenizers


def test_the_model_id_is_the_sha256_of_the_checksums(
    bundle, network, tokenizer, lower, tmp_path
):
    assert read(bundle / "config.json") == {
        **{"format_version": 1, "kind": "abstractive", "architecture": "transformer"},
        "network": without_later_fields(network.config),
    }
    checksums = {
        name: hashlib.sha256((bundle / name).read_bytes()).hexdigest()
        for name in ("config.json", WEIGHTS)
    }
    content = {**checksums, "tokenizer": tokenizer.fingerprint}
    joined = json.dumps(content, sort_keys=True, separators=(",", ":"))
    first = hashlib.sha256(joined.encode()).hexdigest()[:16]
    manifest = read(bundle / "manifest.json")
    assert manifest["model_id"] == first
    assert (manifest["sha256"], manifest["kind"]) == (checksums, "abstractive")
    assert manifest["provenance"] == {"step": 5}
    # Neither the folder nor the provenance counts.
    other = tmp_path / "other" / "place"
    assert save(other, network, tokenizer, provenance={"step": 7}) == first
    assert save(other, network, lower) != first


def test_sources_may_have_a_separate_tokenizer(network, tokenizer, lower, tmp_path):
    folder = str(tmp_path)
    shared_id = save(tmp_path, network, tokenizer)
    loaded = load_bundle(folder)
    assert loaded.source_tokenizer is loaded.tokenizer
    own_id = save(tmp_path, network, tokenizer, source_tokenizer=lower)
    loaded = load_bundle(folder)
    assert loaded.tokenizer.fingerprint == tokenizer.fingerprint
    assert loaded.source_tokenizer.fingerprint == lower.fingerprint
    assert loaded.model_id == own_id != shared_id
    assert load_encoder_bundle(folder).tokenizer.fingerprint == lower.fingerprint
    tokenizer.save(str(tmp_path / "source_tokenizer"))
    (tmp_path / "manifest.json").touch()  # This process has read the bundle before.
    with pytest.raises(DataError, match=f"source_{OTHER_TOKENIZER}"):
        load_bundle(folder)
    assert save(tmp_path, network, tokenizer) == shared_id
    assert not (tmp_path / "source_tokenizer").exists()


def test_task_prefixes_come_back_and_others_are_refused(network, tokenizer, tmp_path):
    prefixes = ("summarize: ", "headline: ")
    save(tmp_path / "b", network, tokenizer, task_prefixes=prefixes)
    save(tmp_path / "plain", network, tokenizer, task_prefixes=("",))
    two, plain = str(tmp_path / "b"), str(tmp_path / "plain")
    assert load_bundle(two).task_prefixes == open_bundle(two).task_prefixes == prefixes
    given = {"bundle": two, "task_prefix": "summarize: "}
    assert with_decoding_of_bundle({"bundle": two}) == given
    # A bundle that was given none says nothing of them.
    assert "task_prefixes" not in read(tmp_path / "plain" / "config.json")
    assert open_bundle(plain).task_prefixes == ()
    assert with_decoding_of_bundle({"bundle": plain}) == {"bundle": plain}
    for prefix in prefixes:
        check_prefix(prefix, open_bundle(two))
    check_prefix("", open_bundle(plain))
    for folder, prefix, known in (
        (two, "", "'summarize: ', 'headline: '"),
        (two, "translate: ", "'summarize: ', 'headline: '"),
        (plain, "summarize: ", "none"),
    ):
        message = f"`task_prefix='{prefix}'`: the network was not .* prefixes: {known}"
        with pytest.raises(UsageError, match=message):
            check_prefix(prefix, open_bundle(folder))


def test_a_bundle_is_incomplete_while_it_is_replaced(
    bundle, network, tokenizer, monkeypatch
):
    """After an interrupted write the folder is neither the old nor the new bundle."""
    monkeypatch.setattr("safetensors.numpy.save", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        save(bundle, network, tokenizer)
    message = r"not a complete bundle \(no manifest.json\); name the `output=` of"
    with pytest.raises(UsageError, match=message):
        load_bundle(str(bundle))


# Encoders come back.
@pytest.fixture
def encoder_bundle(tmp_path) -> Path:
    folder = str(tmp_path / "checkpoint")
    write_encoder(Path(folder))
    write_pieces(Path(folder))
    network, tokenizer = load_checkpoint(folder).network, read_tokenizer(folder, BERT)
    save(tmp_path / "e", network, tokenizer, provenance={"step": 2})
    return tmp_path / "e"


def test_an_encoder_comes_back(encoder_bundle):
    saved = load_checkpoint(str(encoder_bundle.parent / "checkpoint")).network
    loaded = load_encoder_bundle(str(encoder_bundle))
    np.testing.assert_array_equal(np.asarray(loaded.encoder(IDS)), saved(IDS))
    assert loaded.tokenizer.surrounding_ids == ((3,), (4,))
    manifest = read(encoder_bundle / "manifest.json")
    assert (manifest["kind"], manifest["provenance"]) == ("encoder", {"step": 2})
    assert loaded.model_id == manifest["model_id"]
    config = {"encoder": without_later_fields(saved.config)}
    expected = {"format_version": 1, "kind": "encoder", **config}
    assert read(encoder_bundle / "config.json") == expected
    assert set(contents(encoder_bundle)) == FILES | {"tokenizer/tokenizers.json"}
    # Without building it there are its weights by path.
    opened = open_encoder(str(encoder_bundle))
    assert (opened.config, opened.model_id) == (saved.config, loaded.model_id)
    paths = {weight.path.split("/", 1)[1] for weight in loaded.encoder.weights}
    assert opened.weights.keys() == paths
    assert opened.tokenizer.fingerprint == loaded.tokenizer.fingerprint
    halves = load_encoder_bundle(str(encoder_bundle), precision="mixed_bfloat16")
    assert halves.encoder.encoder[1].feed_forward.inner.compute_dtype == "bfloat16"
    assert halves.encoder.weights[0].dtype == "float32"


@pytest.mark.parametrize("variant", ["pointer", "t5", "vocabularies"])
def test_the_encoder_of_an_encoder_decoder_is_loaded(variant, tokenizer, tmp_path):
    is_pointer = variant == "pointer"
    network = make_network(pointer=True) if is_pointer else network_of(variant)
    model_id = save(tmp_path, network, tokenizer)
    loaded = load_encoder_bundle(str(tmp_path))
    assert loaded.model_id == model_id
    assert loaded.encoder.config == network.config.encoder
    states = np.asarray(network.encode(IDS % 13).states)
    np.testing.assert_array_equal(np.asarray(loaded.encoder(IDS % 13)), states)


def save_kind(folder: Path, kind: str, tokenizer=None) -> str:
    weights = {"a": np.arange(6, dtype="float32").reshape(2, 3)}
    fields = {"config": {"x": 3}, "weights": weights, "provenance": {"step": 1}}
    return save_bundle_files(str(folder), kind=kind, tokenizer=tokenizer, **fields)


def test_a_bundle_of_any_kind_comes_back(tokenizer, tmp_path):
    folder = str(tmp_path / "x")
    model_id = save_kind(tmp_path / "x", "extractive", tokenizer)
    opened = open_stored(folder, "keyphrases", "extractive")
    assert opened.config == {"format_version": 1, "kind": "extractive", "x": 3}
    assert (opened.kind, opened.model_id) == ("extractive", model_id)
    assert opened.read_weights()["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert opened.tokenizers.source.fingerprint == tokenizer.fingerprint
    # A new bundle in its place has nothing of the old one.
    assert save_kind(tmp_path / "x", "extractive") != model_id
    assert not (tmp_path / "x" / "tokenizer").exists()
    assert "tokenizer_fingerprint" not in open_stored(folder).manifest


TAKERS = [
    ("encoder", "`encoder=` of `precis train` or `precis train-selector`"),
    ("extractive", "`extractive_bundle=` of `precis summarize`"),
    ("keyphrases", "`keyphrase_bundle=` of `precis summarize`"),
    ("dreaming", "input of a newer precis"),
]


@pytest.mark.parametrize(("kind", "taker"), TAKERS)
def test_a_bundle_of_another_kind_is_refused(kind, taker, tokenizer, tmp_path):
    save_kind(tmp_path / "x", "extractive", tokenizer)
    edit(tmp_path / "x" / "manifest.json", kind=kind)
    asked = "x: a bundle of kind {}, but kind {} is needed here; use it as {}"
    message = asked.format(kind, "abstractive", taker)
    for load in (load_bundle, open_bundle, read_summary_flags):
        with pytest.raises(UsageError, match=message):
            load(str(tmp_path / "x"))


@pytest.mark.parametrize(
    ("variant", "name"), [("decoder_only", "decoder_only"), ("gru", "recurrent")]
)
def test_a_network_without_an_encoder_is_refused(variant, name, tokenizer, tmp_path):
    save(tmp_path / "b", network_of(variant), tokenizer)
    message = f"b: a network of .* {name} has no encoder; name another bundle"
    with pytest.raises(UsageError, match=message):
        load_encoder_bundle(str(tmp_path / "b"))


# Changed files are refused.
@pytest.mark.parametrize("name", [WEIGHTS, "config.json"])
def test_a_changed_file_is_refused(name, bundle):
    path = bundle / name
    content = path.read_bytes()
    for changed in (content[:-1] + bytes([content[-1] ^ 1]), content[:-9], None):
        path.unlink() if changed is None else path.write_bytes(changed)
        for load in (load_bundle, load_encoder_bundle):
            with pytest.raises(DataError, match=f"{name}: {OTHER_FILE}"):
                load(str(bundle))


@pytest.mark.parametrize(
    ("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")]
)
def test_weights_that_are_not_finite_are_refused(value, word, bundle, tmp_path):
    weights = safetensors.numpy.load((bundle / WEIGHTS).read_bytes())
    name = sorted(weights)[3]
    weights[name].reshape(-1)[-1] = value
    rewrite(bundle, WEIGHTS, safetensors.numpy.save(weights))
    message = f"{WEIGHTS}: the tensor {name} holds {word}; {WAY_OUT}"
    with pytest.raises(DataError, match=message):
        load_bundle(str(bundle))
    fields = {"kind": "extractive", "config": {}, "provenance": {}}
    message = f"x/{WEIGHTS}: .* {name} holds {word}; .*; train from finite weights"
    with pytest.raises(DataError, match=message):
        save_bundle_files(str(tmp_path / "x"), weights=weights, **fields)
    assert not (tmp_path / "x").exists()


def test_damaged_weights_with_a_fitting_manifest_are_refused(bundle):
    rewrite(bundle, WEIGHTS, (bundle / WEIGHTS).read_bytes()[:-9])
    with pytest.raises(DataError, match=rf"{WEIGHTS}: damaged \(.*\); {WAY_OUT}"):
        open_stored(str(bundle)).read_weights()


MODEL_ID = r"model_id is \w*, but its files give \w{16}; "
CHECKSUMS = {"config.json": "0" * 64, WEIGHTS: "0" * 64}


EDITED_MANIFESTS = [
    ({"model_id": "0" * 16}, DataError, MODEL_ID + WAY_OUT),
    ({"model_id": ""}, DataError, MODEL_ID),
    ({"sha256": CHECKSUMS}, DataError, MODEL_ID),
    ({"tokenizer_fingerprint": "0" * 64}, DataError, MODEL_ID),
    ({"tokenizer_fingerprint": "gone"}, DataError, MODEL_ID),
    ({"source_tokenizer_fingerprint": "0" * 64}, DataError, MODEL_ID),
    ({"model_id": 3}, DataError, "model_id must be of type str, not int"),
    ({"sha256": []}, DataError, "sha256 must be of type dict, not list"),
    ({"provenance": "gone"}, DataError, rf"\(provenance is missing\); {WAY_OUT}"),
    ({"model_id": "gone"}, UsageError, "this precis cannot read it: man"),
    ({"sha256": "gone"}, UsageError, "kind abstractive and format_version 1;"),
    ({"format_version": 99}, UsageError, "kind abstractive and format_version"),
    ({"kind": "keyphrases", "model_id": ""}, UsageError, "of kind keyphrases,"),
]


@pytest.mark.parametrize(("changes", "error", "message"), EDITED_MANIFESTS)
def test_an_edited_manifest_is_refused(changes, error, message, bundle):
    edit(bundle / "manifest.json", **changes)
    with pytest.raises(error, match=message):
        open_bundle(str(bundle))


@pytest.mark.parametrize("content", NO_OBJECTS)
def test_a_file_that_is_no_object_is_refused(content, bundle):
    rewrite(bundle, "config.json", content)
    for load in (load_bundle, read_summary_flags):
        message = rf"^{bundle}/config.json: damaged \(.*\); {WAY_OUT}$"
        with pytest.raises(DataError, match=message):
            load(str(bundle))
    (bundle / "manifest.json").write_bytes(content)
    for load in (open_stored, load_bundle, read_summary_flags):
        message = rf"^{bundle}/manifest.json: damaged \(.*\); {WAY_OUT}$"
        with pytest.raises(DataError, match=message):
            load(str(bundle))
    message = r"manifest.json: damaged \(.*\); name another `output=`"
    with pytest.raises(DataError, match=message):
        refuse_other_kind(str(bundle), "encoder")


WRONG_FIELDS = read_table("refusals")["bundle_fields"]


@pytest.mark.parametrize(("changes", "of_network", "message"), WRONG_FIELDS)
def test_a_configuration_with_a_wrong_field_is_refused(
    changes, of_network, message, bundle
):
    network = {**read(bundle / "config.json")["network"], **of_network}
    edit(bundle / "config.json", **{"network": network, **changes})
    rewrite(bundle, "config.json", (bundle / "config.json").read_bytes())
    with pytest.raises(DataError, match=f"{bundle}.*({message})"):
        load_bundle(str(bundle))


def test_a_damaged_manifest_of_a_run_is_refused(tmp_path):
    message = r"manifest.json: damaged \(.*\); repair the run with the"
    for content in ("[1]", "null", "{}", '{"counts": [1]}'):
        (tmp_path / "manifest.json").write_text(content)
        with pytest.raises(DataError, match=message):
            read_run(str(tmp_path))
