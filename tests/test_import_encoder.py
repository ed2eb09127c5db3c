"""`precis import` of an encoder: a bundle of its kind, which writes no summaries."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from support.command_line import error_lines, exit_code
from support.small_encoder_checkpoint import write_encoder, write_pieces

from precis.model.bundle.converters.checkpoint import load_encoder
from precis.model.bundle.encoder_bundle import load_encoder_bundle
from precis.model.bundle.manifest import read_manifest
from precis.model.errors import UsageError
from precis.pipelines.cli import main
from precis.pipelines.import_checkpoint import import_checkpoint


@pytest.fixture(scope="module")
def encoder_checkpoint(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("encoder")
    write_encoder(folder, "distilbert")
    write_pieces(folder, {"do_lower_case": True})
    return folder


def test_an_encoder_becomes_a_bundle_of_its_kind(encoder_checkpoint, tmp_path, capsys):
    assert (
        main(["import", str(encoder_checkpoint), "--output", str(tmp_path / "b")]) == 0
    )
    loaded = load_encoder_bundle(str(tmp_path / "b"))
    assert (
        capsys.readouterr().out == f"model {loaded.model_id}\nwrote {tmp_path / 'b'}\n"
    )
    ids = loaded.tokenizer.encode(["Rain fell on Monday.", "It was cold."])
    assert [len(row) for row in ids] == [8, 6]
    for row in ids:
        np.testing.assert_array_equal(
            loaded.encoder(row[None]), load_encoder(str(encoder_checkpoint))(row[None])
        )
    names = ["config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt"]
    assert read_manifest(str(tmp_path / "b"))["provenance"] == {
        "model_type": "distilbert",
        "checkpoint": str(encoder_checkpoint),
        "checkpoint_sha256": {
            name: hashlib.sha256((encoder_checkpoint / name).read_bytes()).hexdigest()
            for name in names
        },
    }


@pytest.mark.parametrize("command", ["summarize", "export"])
def test_an_encoder_writes_no_summaries(command, encoder_checkpoint, tmp_path, capsys):
    bundle = str(tmp_path / "b")
    import_checkpoint(checkpoint=encoder_checkpoint, output=bundle)
    named = (
        ["--corpus", "sample:20", "--bundle", bundle]
        if command == "summarize"
        else [bundle]
    )
    assert exit_code(command, *named, "--output", str(tmp_path / "run")) == 2
    line = error_lines(capsys.readouterr().err, command)[0]
    assert (
        "b: this bundle is of the kind encoder, and abstractive is asked for here; "
        "`precis train --task extractive"
    ) in line
    assert not (tmp_path / "run").exists()


def test_a_checkpoint_of_another_architecture_is_refused(tmp_path):
    write_encoder(tmp_path, settings={"model_type": "mpnet"})
    known = "bart, mt5, pegasus, t5, bert, distilbert, roberta"
    with pytest.raises(
        UsageError,
        match=f"model_type is 'mpnet', and what can be imported is {known}; take such",
    ):
        import_checkpoint(checkpoint=tmp_path, output=tmp_path / "b")


def test_an_encoder_reads_the_given_number_of_tokens(encoder_checkpoint, tmp_path):
    import_checkpoint(
        checkpoint=encoder_checkpoint, output=tmp_path / "b", max_source_tokens=9
    )
    assert (
        load_encoder_bundle(str(tmp_path / "b")).encoder.config.max_source_tokens == 9
    )
