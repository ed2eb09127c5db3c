"""`precis import` and `precis export`: bundles of checkpoints, checkpoints of bundles.

`test_checkpoints` has what is read and refused, `test_checkpoint_parity` loads exports
with transformers.
"""

import json
from pathlib import Path

import fsspec
import numpy as np
import pytest
import safetensors.numpy
from support.command_line import contents, exit_code
from support.huggingface_bundles import read_folder, save_layout, write_small_checkpoint
from support.shared_networks import eagerly
from support.small_checkpoint import (
    KINDS,
    POSITIONS,
    SETTINGS,
    TEXTS,
    tensors,
    write_checkpoint,
    write_tokenizer,
)
from support.small_encoder_checkpoint import write_encoder, write_pieces
from support.summarize_runs import articles_of, settings_of

import precis
from precis.model import files
from precis.model.bundle.checkpoints.importer import load_checkpoint
from precis.model.bundle.manifest import open_stored
from precis.model.bundle.network_bundle import (
    check_prefix,
    load_bundle,
    load_encoder_bundle,
    open_bundle,
)
from precis.model.errors import DataError, UsageError
from precis.model.tokenization.imported import read_tokenizer
from precis.pipelines.bundles.export import export
from precis.pipelines.bundles.import_checkpoint import import_checkpoint
from precis.pipelines.corpus.task import Position
from precis.pipelines.summarize.options import decode_id
from precis.pipelines.summarize.summarize import summarize
from precis.pipelines.summarize.window_summarizer import WindowSummarizer
from precis.pipelines.training.train import train

LONG = " ".join(TEXTS)  # longer than the network's source length
LINES = [{"id": f"d{n}", "article": text} for n, text in enumerate([TEXTS[0], LONG])]
FILES = {
    *("README.md", "config.json", "generation_config.json", "manifest.json"),
    *("model.safetensors", "tokenizer.json", "tokenizer_config.json"),
}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    write_checkpoint(folder)
    write_tokenizer(folder)
    return folder


@pytest.fixture(scope="module")
def bundle(checkpoint, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("imported") / "bundle"
    assert exit_code("import", str(checkpoint), "--output", str(folder)) == 0
    return folder


@pytest.fixture(scope="module")
def layout_bundle(tmp_path_factory) -> str:
    """A network of this project that transformers has: of 24 target tokens."""
    return save_layout(tmp_path_factory.mktemp("layout") / "bundle", "bart")


# Import.
def test_the_bundle_is_the_checkpoint(checkpoint, bundle):
    imported, loaded = load_checkpoint(str(checkpoint)), load_bundle(str(bundle))
    before, after = (each.network.get_weights() for each in (imported, loaded))
    np.testing.assert_equal(after, before)
    assert loaded.network.config == imported.network.config
    assert loaded.special == imported.special
    settings = settings_of(bundle=str(bundle))
    assert settings.decoding == imported.decoding
    expected = decode_id(imported.decoding, "float32")
    assert settings.model_ids["decode_id"] == expected
    assert set(contents(bundle)) == {
        *("README.md", "config.json", "manifest.json"),
        *("weights.safetensors", "tokenizer/tokenizers.json"),
    }
    names = {"config.json", "generation_config.json", "model.safetensors"}
    assert open_stored(str(bundle)).manifest["provenance"] == {
        "command": "import",
        "flags": {"checkpoint": str(checkpoint), "max_source_tokens": 0},
        "model_type": "bart",
        "bos_token_id": 0,
        "checkpoint": str(checkpoint),
        "checkpoint_sha256": {
            name: files.sha256_file(str(checkpoint / name))
            for name in names | {"tokenizer.json"}
        },
    }


def test_a_t5_reads_its_prefix_and_the_given_length(tmp_path, capsys):
    task = {"prefix": "summarize: ", "num_beams": 2, "max_length": 9}
    settings = {"task_specific_params": {"summarization": task}}
    write_checkpoint(tmp_path / "t5", kind="t5", settings=settings)
    write_tokenizer(tmp_path / "t5")
    folder = str(tmp_path / "b")
    import_checkpoint(checkpoint=tmp_path / "t5", output=folder, max_source_tokens=60)
    assert "at most 8 tokens, as with `generate` of tr" in capsys.readouterr().err
    assert load_bundle(folder).network.config.max_source_tokens == 60
    decoding = settings_of(bundle=folder).decoding
    assert (decoding.beam_width, decoding.max_summary_tokens) == (2, 8)
    # A checkpoint does not list all the prefixes that its network knows.
    check_prefix("translate English to German: ", open_bundle(folder))
    tokenizer = read_tokenizer(str(tmp_path / "t5"), SETTINGS)
    (expected,) = tokenizer.encode([f"summarize: {LONG}"])
    *prefix, end = tokenizer.encode(["summarize:"])[0].tolist()
    for long_documents in ("head", "chunk_merge"):
        settings = settings_of(bundle=folder, long_documents=long_documents)
        worker = WindowSummarizer(settings)
        worker.load()
        ((window, _),) = worker._start(articles_of([LINES[1]]), Position)
        (row,) = window.documents
        source = row.source
        assert POSITIONS < len(expected) == source.source_tokens
        if long_documents == "head":
            assert source.passages[0].tolist() == tokenizer.cut(expected, 60).tolist()
            continue
        assert len(source.passages) > 1
        for passage in source.passages:
            assert passage[: len(prefix)].tolist() == prefix
            assert passage[-1] == end and len(passage) <= 60
        assert source.passages[-1][-20:].tolist() == expected[-20:].tolist()


def test_what_cannot_be_imported_writes_nothing(checkpoint, tmp_path):
    folder, output = tmp_path / "c", tmp_path / "b"
    lacking = {name: each for name, each in tensors().items() if "fc1.b" not in name}
    write_checkpoint(folder, lacking)
    no_tokenizer = r"c: there is no tokenizer.json; .*save_pretrained\("
    with pytest.raises(UsageError, match=no_tokenizer):
        import_checkpoint(checkpoint=folder, output=output)
    write_tokenizer(folder)
    with pytest.raises(DataError, match="lacks decoder.layers.0.fc1.bias, encoder.la"):
        import_checkpoint(checkpoint=folder, output=output)
    with pytest.raises(UsageError, match="is the checkpoint itself, whose files would"):
        import_checkpoint(checkpoint=folder, output=folder)
    negative = "`max_source_tokens=` must not be negative, but is -1; 0 takes the check"
    with pytest.raises(UsageError, match=negative):
        import_checkpoint(checkpoint=checkpoint, output=output, max_source_tokens=-1)
    assert not output.exists()


def test_an_encoder_becomes_a_bundle_that_writes_no_summaries(tmp_path):
    write_encoder(tmp_path / "c", "distilbert")
    write_pieces(tmp_path / "c")
    folder = str(tmp_path / "b")
    flags = {"checkpoint": str(tmp_path / "c"), "max_source_tokens": 9}
    import_checkpoint(output=folder, **flags)
    loaded = load_encoder_bundle(folder)
    assert loaded.encoder.config.max_source_tokens == 9
    ids = loaded.tokenizer.encode(["Rain fell on Monday.", "It was cold."])
    assert [len(row) for row in ids] == [8, 6]
    original = load_checkpoint(flags["checkpoint"]).network
    for row in ids:
        np.testing.assert_array_equal(loaded.encoder(row[None]), original(row[None]))
    provenance = open_stored(folder).manifest["provenance"]
    assert provenance["flags"] == flags and provenance["model_type"] == "distilbert"
    names = {"config.json", "model.safetensors", "tokenizer.json"}
    assert provenance["checkpoint_sha256"].keys() == names
    message = "b: a bundle of kind encoder, but kind abstractive is needed here"
    for command, given in ((summarize, {"corpus": "sample:20"}), (export, {})):
        with pytest.raises(UsageError, match=message):
            command(bundle=folder, output=tmp_path / "run", **given)
    assert not (tmp_path / "run").exists()


# Export.
@pytest.mark.parametrize("kind", KINDS)
def test_an_imported_network_becomes_the_checkpoint_it_came_from(kind, tmp_path):
    checkpoint = write_small_checkpoint(tmp_path / "checkpoint", kind)
    import_checkpoint(checkpoint=checkpoint, output=str(tmp_path / "bundle"))
    output = str(tmp_path / "out")
    manifest = export(bundle=str(tmp_path / "bundle"), output=output)
    assert set(contents(tmp_path / "out")) == FILES
    assert manifest["model_type"] == KINDS[kind]["model_type"]
    before = safetensors.numpy.load_file(tmp_path / "checkpoint" / "model.safetensors")
    after = safetensors.numpy.load_file(tmp_path / "out" / "model.safetensors")
    computed = {name for name in after if "embed_positions" in name}
    assert set(after) - set(before) == (computed if kind == "pegasus" else set())
    for name, values in before.items():
        skipped = 2 if "embed_positions" in name else 0  # The rows are never read.
        np.testing.assert_array_equal(after[name][skipped:], values[skipped:])
    there = read_folder(tmp_path / "out", "config.json")
    for name in KINDS[kind]:
        if name != "dropout_rate":
            assert there.get(name) == KINDS[kind][name], name
    # Read again, it is the same bundle.
    import_checkpoint(checkpoint=output, output=str(tmp_path / "again"))
    folders = (tmp_path / "bundle", tmp_path / "again")
    first, second = (open_stored(str(each)).read_weights() for each in folders)
    np.testing.assert_equal(second, first)
    first, second = (read_folder(each, "config.json") for each in folders)
    assert second["decoding"] == first["decoding"]
    assert second["special"] == first["special"]
    free = {"dropout"} if kind == "bart" else {"dropout", "max_target_tokens"}
    for name in first["network"].keys() - free:
        assert second["network"][name] == first["network"][name], name


def test_what_transformers_does_otherwise_is_written_out(tmp_path):
    bundle = save_layout(tmp_path / "bart", "bart", tied_output=False, decoder_layers=1)
    export(bundle=bundle, output=tmp_path / "out")
    stored = safetensors.numpy.load_file(tmp_path / "out" / "model.safetensors")
    # Without a tied output, BART reads each input from a table of its own.
    shared = stored["model.shared.weight"]
    for side in ("encoder", "decoder"):
        read = stored[f"model.{side}.embed_tokens.weight"]
        np.testing.assert_array_equal(read, shared)
    assert "lm_head.weight" in stored
    assert read_folder(tmp_path / "out", "generation_config.json")["use_cache"] is True
    # Its cache of a T5 has as many layers as the encoder. The prefix is written too.
    bundle = save_layout(tmp_path / "t5", "t5", encoder_layers=1)
    export(bundle=bundle, output=tmp_path / "deep")
    config = read_folder(tmp_path / "deep", "config.json")
    generation = read_folder(tmp_path / "deep", "generation_config.json")
    assert generation["use_cache"] is config["use_cache"] is False
    task = {"summarization": {"prefix": "summarize: "}}
    assert config["task_specific_params"] == task
    assert "'summarize: ' + article" in (tmp_path / "deep" / "README.md").read_text()


def test_an_export_is_replaced_and_nothing_else(layout_bundle, tmp_path, capsys):
    argv = ("export", layout_bundle, "--output", str(tmp_path / "out"))
    (tmp_path / "out").mkdir()
    # As an export leaves it that is killed at its first file.
    (tmp_path / "out" / "manifest.json.1a2b3c4d.aside").write_bytes(b"half")
    assert exit_code(*argv, "--beam_width", "2") == 0
    (tmp_path / "out" / "model.safetensors").unlink()
    assert exit_code(*argv) == 0
    assert set(contents(tmp_path / "out")) == FILES
    assert "README.md for a program that uses it" in capsys.readouterr().out
    settings = read_folder(tmp_path / "out", "tokenizer_config.json")
    assert settings["model_max_length"] == 60
    assert (settings["pad_token"], settings["eos_token"]) == ("[PAD]", "[END]")
    assert read_folder(tmp_path / "out", "generation_config.json")["num_beams"] == 4
    manifest = read_folder(tmp_path / "out", "manifest.json")
    assert set(manifest["sha256"]) == FILES - {"README.md", "manifest.json"}
    text = (tmp_path / "out" / "README.md").read_text()
    assert "library_name: transformers" in text and "AutoTokenizer" in text
    assert '\nlicense: "unknown"\n' in text
    before = contents(layout_bundle)
    with pytest.raises(UsageError, match="a bundle of the kind abstractive; name ano"):
        export(bundle=layout_bundle, output=layout_bundle)
    assert contents(layout_bundle) == before
    (tmp_path / "out" / "manifest.json").write_text("[1]")
    with pytest.raises(DataError, match=r"manifest.json: damaged \(.*name another `o"):
        export(bundle=layout_bundle, output=tmp_path / "out")
    (tmp_path / "out" / "manifest.json").unlink()
    message = "out holds README.md and is not an export; name"
    with pytest.raises(UsageError, match=message):
        export(bundle=layout_bundle, output=tmp_path / "out")


def test_a_flag_leaves_a_summary_room_to_end(bundle, tmp_path):
    flags = {"bundle": bundle, "max_summary_tokens": 3}  # Its minimum is 3.
    message = "`max_summary_tokens=` is 3, which is min_summary_tokens .* raise it"
    for call in (
        lambda: precis.summarize_text("Rain fell.", **flags),
        lambda: export(output=tmp_path / "out", **flags),
    ):
        with pytest.raises(UsageError, match=message):
            call()
    with eagerly():
        flags |= {"max_summary_tokens": 4, "min_source_words": 0}
        row = precis.summarize_text("Rain fell.", **flags)
    assert row["settings_id"]
    # The fourth token is an end that the checkpoint puts there.
    assert "unfinished" in row["abstractive_quality"]["flags"]


def test_an_object_store_gets_the_manifest_last(layout_bundle):
    flags = {"bundle": layout_bundle, "min_summary_tokens": 30}
    manifest = export(output="memory://exports/checkpoint", **flags)
    store = fsspec.filesystem("memory")
    names = {name.rsplit("/", 1)[1] for name in store.find("/exports/checkpoint")}
    assert names == FILES
    assert json.loads(store.cat("/exports/checkpoint/manifest.json")) == manifest
    # No more tokens are asked for than the network writes.
    settings = json.loads(store.cat("/exports/checkpoint/generation_config.json"))
    assert (settings["max_new_tokens"], settings["min_new_tokens"]) == (24, 23)
    written = {name: store.modified(f"/exports/checkpoint/{name}") for name in FILES}
    assert max(written, key=lambda name: written[name]) == "manifest.json"


USELESS_LAYOUTS = [
    ({"layout": "bart", "architecture": "recurrent"}, "transformer, not recurrent"),
    ({"layout": "t5", "encoder": "e"}, "`layout=` cannot be given with `encoder=`, w"),
]


@pytest.mark.parametrize(("flags", "message"), USELESS_LAYOUTS)
def test_a_layout_without_a_use_is_refused(flags, message, records_folder, tmp_path):
    with pytest.raises(UsageError, match=message):
        train(records=records_folder, output=str(tmp_path / "b"), **flags)
