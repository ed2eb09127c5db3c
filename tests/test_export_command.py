"""`precis export`: its manifest, what it refuses, and what failures leave behind."""

import dataclasses
import hashlib
import json
import os
from pathlib import Path

import fsspec
import pytest
import tensorflow as tf
from support.command_line import contents, error_lines, exit_code
from support.small_export import FLAGS, save_small_network

import precis.model.inference.export
from precis.model.bundle.network_bundle import load_bundle
from precis.model.errors import JobError, UsageError
from precis.model.search.config import SearchConfig
from precis.pipelines.export import export


@pytest.fixture(scope="module")
def bundle(tmp_path_factory) -> str:
    return save_small_network(tmp_path_factory.mktemp("bundle"))


@pytest.fixture(scope="module")
def exported(bundle, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "graph"
    export(bundle=bundle, output=folder, **FLAGS)
    return folder


def test_the_manifest_names_model_search_versions_and_files(bundle, exported):
    manifest = json.loads((exported / "manifest.json").read_text())
    assert manifest["model_id"] == load_bundle(bundle).model_id
    assert manifest["versions"]["tensorflow"] == tf.__version__
    assert manifest["decoding"] == dataclasses.asdict(SearchConfig(**FLAGS))
    assert manifest["strip_boilerplate"] is True
    checksums = {
        name: hashlib.sha256(content).hexdigest()
        for name, content in contents(exported).items()
        if name != "manifest.json"
    }
    assert manifest["sha256"] == checksums
    assert "saved_model.pb" in checksums
    assert any(name.startswith("variables/") for name in checksums)


def test_the_same_export_again_changes_nothing(bundle, exported, capsys):
    before = {path: path.stat().st_mtime_ns for path in exported.rglob("*")}
    argv = [word for name, value in FLAGS.items() for word in (f"--{name}", str(value))]
    assert exit_code("export", bundle, "--output", f"{exported}/", *argv) == 0
    model_id = load_bundle(bundle).model_id
    assert capsys.readouterr().out == f"model {model_id}\nwrote {exported}/\n"
    assert {path: path.stat().st_mtime_ns for path in exported.rglob("*")} == before


@pytest.mark.parametrize(
    "name", ["other settings", "bundle", "foreign file", "damaged"]
)
def test_a_folder_with_other_content_is_refused(name, bundle, exported, tmp_path):
    folder = tmp_path / "out"
    flags = dict(FLAGS)
    if name == "foreign file":
        folder.mkdir()
        (folder / "notes.txt").write_text("mine")
    else:
        source = bundle if name == "bundle" else exported
        fsspec.filesystem("file").put(f"{source}/", str(folder), recursive=True)
    if name == "other settings":
        flags["n_best"] = 2
    if name == "damaged":
        (folder / "saved_model.pb").write_bytes(b"")
    before = contents(folder)
    with pytest.raises(
        UsageError,
        match="out holds something else than this export; name another --output, or "
        "remove that folder",
    ):
        export(bundle=bundle, output=folder, **flags)
    assert contents(folder) == before
    assert os.listdir(tmp_path) == ["out"]


def test_a_disk_that_fails_leaves_nothing(bundle, tmp_path, monkeypatch):
    def fail(module, folder):
        Path(folder, "half").write_text("half")
        raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    (tmp_path / "out.aside").mkdir()  # as a killed export leaves it
    monkeypatch.setattr(precis.model.inference.export, "save_graph", fail)
    with pytest.raises(
        JobError,
        match="out could not be written: No space left on device; make room or name "
        "another --output",
    ):
        export(bundle=bundle, output=tmp_path / "out", **FLAGS)
    assert os.listdir(tmp_path) == []


def test_an_object_store_gets_the_manifest_last(bundle, tmp_path, monkeypatch):
    monkeypatch.setattr(
        precis.model.inference.export,
        "save_graph",
        lambda module, folder: Path(folder, "saved_model.pb").write_bytes(b"graph"),
    )
    manifest = export(bundle=bundle, output="memory://exports/graph", **FLAGS)
    store = fsspec.filesystem("memory")
    assert sorted(store.find("/exports")) == [
        "/exports/graph/manifest.json",
        "/exports/graph/saved_model.pb",
    ]
    assert json.loads(store.cat("/exports/graph/manifest.json")) == manifest
    assert manifest["sha256"] == {
        "saved_model.pb": hashlib.sha256(b"graph").hexdigest()
    }


def test_an_imported_network_is_refused(tmp_path, capsys):
    from support.small_checkpoint import write_checkpoint, write_tokenizer

    from precis.pipelines.import_checkpoint import import_checkpoint

    write_checkpoint(tmp_path / "checkpoint")
    write_tokenizer(tmp_path / "checkpoint", as_definition=True)
    import_checkpoint(checkpoint=tmp_path / "checkpoint", output=tmp_path / "bundle")
    output = tmp_path / "out"
    assert exit_code("export", str(tmp_path / "bundle"), "--output", str(output)) == 2
    (line,) = error_lines(capsys.readouterr().err, "export")
    assert (
        "an imported network cannot be exported: its tokenizer runs in the tokenizers "
        "library" in line
    )
    assert "use the bundle itself with `precis summarize`" in line
    assert not output.exists()


def test_a_precision_that_does_not_exist_is_refused(bundle, tmp_path):
    with pytest.raises(
        UsageError,
        match="--precision is one of float32, mixed_bfloat16, mixed_float16, "
        "not 'int8'",
    ):
        export(bundle=bundle, output=tmp_path / "out", precision="int8")
