"""`precis import` of networks and encoders, and rows of the imported bundles.

A bundle is searched with the settings of its checkpoint, which flags override.
"""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from support.command_line import contents, exit_code, write_jsonl
from support.small_checkpoint import (
    POSITIONS,
    SETTINGS,
    TEXTS,
    tensors,
    write_checkpoint,
    write_tokenizer,
)
from support.small_encoder_checkpoint import write_encoder, write_pieces
from support.summarize_runs import articles_of, manifest_of, rows_of, settings_of

from precis.model.bundle.converters.checkpoint import load_checkpoint, load_encoder
from precis.model.bundle.encoder_bundle import load_encoder_bundle
from precis.model.bundle.manifest import read_manifest
from precis.model.bundle.network_bundle import load_bundle, read_decoding
from precis.model.errors import DataError, UsageError
from precis.model.inference.searcher import Searcher
from precis.model.search.config import SearchConfig
from precis.model.tokenization.checkpoint_files import read_tokenizer
from precis.pipelines.bundles.export import export
from precis.pipelines.bundles.import_checkpoint import import_checkpoint
from precis.pipelines.corpus.task import Position
from precis.pipelines.options.summarize import decode_id
from precis.pipelines.summarize.summarize import summarize
from precis.pipelines.summarize.window_summarizer import WindowSummarizer

LONG = " ".join(TEXTS)  # longer than the network's source length
LINES = [
    {"id": f"d{number}", "article": text}
    for number, text in enumerate([TEXTS[0], LONG])
]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    write_checkpoint(folder)
    write_tokenizer(folder, as_definition=True)
    return folder


@pytest.fixture(scope="module")
def bundle(checkpoint, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("imported") / "bundle"
    import_checkpoint(checkpoint=checkpoint, output=folder)
    return folder


def test_the_bundle_is_the_checkpoint(checkpoint, bundle):
    imported, loaded = load_checkpoint(str(checkpoint)), load_bundle(str(bundle))
    for before, after in zip(
        imported.network.weights, loaded.network.weights, strict=True
    ):
        np.testing.assert_array_equal(before.numpy(), after.numpy())
    assert (
        loaded.network.config == imported.network.config
        and loaded.special == imported.special
    )
    assert SearchConfig(**read_decoding(str(bundle))) == imported.decoding
    assert set(contents(bundle)) == {
        "README.md",
        "SHA256SUMS",
        "config.json",
        "manifest.json",
        "weights.safetensors",
        "tokenizer/tokenizers.json",
    }


def test_the_manifest_names_the_imported_files(checkpoint, bundle):
    names = [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
    ]
    assert read_manifest(str(bundle))["provenance"] == {
        "command": "import",
        "flags": {"checkpoint": str(checkpoint), "max_source_tokens": 0},
        "model_type": "bart",
        "checkpoint": str(checkpoint),
        "checkpoint_sha256": {
            name: hashlib.sha256((checkpoint / name).read_bytes()).hexdigest()
            for name in names
        },
    }


def test_the_command_prints_the_model_id_and_the_folder(
    checkpoint, bundle, tmp_path, capsys
):
    assert exit_code("import", str(checkpoint), "--output", str(tmp_path / "b")) == 0
    model_id = read_manifest(str(bundle))["model_id"]
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == [f"model {model_id}", f"wrote {tmp_path / 'b'}"]
    # The same checkpoint gives the same bytes.
    assert contents(tmp_path / "b") == contents(bundle)


@pytest.mark.slow
def test_an_imported_bundle_is_searched_with_the_settings_of_its_checkpoint(
    checkpoint, bundle, tmp_path
):
    """And with those of the flags that are given."""
    corpus = write_jsonl(tmp_path / "c.jsonl", LINES)
    flags = {"n_best": 2, "min_source_words": 0, "long_documents": "head"}
    summarize(corpus=corpus, bundle=bundle, output=tmp_path / "run", **flags)
    rows, manifest = rows_of(tmp_path / "run"), manifest_of(tmp_path / "run")
    tokenizer = read_tokenizer(str(checkpoint), SETTINGS)
    imported = load_checkpoint(str(checkpoint))
    sources = tokenizer.encode([TEXTS[0], LONG])
    limit = imported.network.config.max_source_tokens
    assert [len(source) > limit for source in sources] == [False, True]
    assert [row["truncated"] for row in rows] == [False, True]
    assert [row["source_tokens"] for row in rows] == [*map(len, sources)]
    assert rows[1]["seen_tokens"] == limit
    assert [row["document_id"] for row in rows] == ["d0", "d1"]

    asked = SearchConfig(**{**read_decoding(str(bundle)), "n_best": 2})
    assert imported.decoding.n_best == 1 and asked.beam_width == 3
    searcher = Searcher(imported.network, config=asked, special=imported.special)
    cut = [sources[0], np.array([*sources[1][: limit - 1], 2], "int32")]
    results = searcher.search(cut)
    best = tokenizer.decode([ranked[0].tokens for ranked in results])
    assert len(set(best)) == 2
    summaries = [row["abstractive_summary"].split() for row in rows]
    assert summaries == [text.split() for text in best]
    assert [row["abstractive"][0]["score"] for row in rows] == [
        pytest.approx(ranked[0].score, rel=5e-4) for ranked in results
    ]
    assert max(len(row["abstractive"]) for row in rows) == 2
    assert manifest["decode_id"] == decode_id(asked, "float32")
    of_checkpoint = settings_of(bundle=str(bundle)).model_ids["decode_id"]
    assert of_checkpoint == decode_id(imported.decoding, "float32")
    assert {row["model_id"] for row in rows} == {manifest["model_id"]}


def test_the_settings_of_a_damaged_bundle_are_not_used(bundle, tmp_path):
    for name, content in contents(bundle).items():
        (tmp_path / "b" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "b" / name).write_bytes(
            content.replace(b'"beam_width": 3', b'"beam_width": 9')
        )
    with pytest.raises(
        DataError,
        match="config.json: missing, or its checksum differs from manifest.json's",
    ):
        summarize(corpus="sample:20", output=tmp_path / "run", bundle=tmp_path / "b")
    assert not (tmp_path / "run").exists()  # found before any work began


def test_a_network_that_does_not_fit_its_checkpoint_writes_nothing(tmp_path):
    folder = tmp_path / "c"
    write_checkpoint(
        folder,
        {name: tensor for name, tensor in tensors().items() if "fc1.bias" not in name},
    )
    flags = {"checkpoint": folder, "output": tmp_path / "b"}
    with pytest.raises(
        UsageError,
        match="c: there is no tokenizer, neither tokenizer.json nor vocab.json",
    ):
        import_checkpoint(**flags)
    write_tokenizer(folder, as_definition=False)
    with pytest.raises(
        DataError,
        match=(
            "lacks decoder.layers.0.fc1.bias, encoder.layers.0.fc1.bias, "
            "encoder.layers.1.fc1.bias, which"
        ),
    ):
        import_checkpoint(**flags)
    with pytest.raises(UsageError, match="is the checkpoint itself, whose files the"):
        import_checkpoint(checkpoint=folder, output=folder)
    assert not (tmp_path / "b").exists()


@pytest.fixture(scope="module")
def t5_checkpoint(tmp_path_factory) -> Path:
    """A T5 with a task prefix and search settings for summaries."""
    folder = tmp_path_factory.mktemp("t5")
    task = {"prefix": "summarize: ", "num_beams": 2, "max_length": 9}
    write_checkpoint(
        folder, kind="t5", settings={"task_specific_params": {"summarization": task}}
    )
    write_tokenizer(folder, as_definition=True)
    return folder


def test_a_t5_reads_its_prefix_and_the_given_length(t5_checkpoint, tmp_path):
    folder = str(tmp_path / "b")
    import_checkpoint(checkpoint=t5_checkpoint, output=folder, max_source_tokens=60)
    imported = load_checkpoint(str(t5_checkpoint), max_source_tokens=60)
    network = load_bundle(folder).network
    for before, after in zip(imported.network.weights, network.weights, strict=True):
        np.testing.assert_array_equal(before.numpy(), after.numpy())
    assert network.config == imported.network.config
    assert network.config.max_source_tokens == 60
    settings = settings_of(bundle=folder)
    decoding = settings.decoding
    assert decoding == imported.decoding
    assert (decoding.beam_width, decoding.max_summary_tokens) == (2, 8)
    tokenizer = read_tokenizer(str(t5_checkpoint), SETTINGS)
    (expected,) = tokenizer.encode([f"summarize: {LONG}"])
    *prefix, end = tokenizer.encode(["summarize:"])[0].tolist()
    for long_documents in ("head", "chunk_merge"):
        settings = settings_of(bundle=folder, long_documents=long_documents)
        worker = WindowSummarizer(settings)
        worker.load()
        (((row,), *_),) = worker._start(articles_of([LINES[1]]), Position)
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


def test_an_impossible_source_length_is_refused(checkpoint, t5_checkpoint, tmp_path):
    for folder, length, message in (
        (
            checkpoint,
            41,
            "--max_source_tokens is 41, and this checkpoint has learned 40 positions; "
            "ask for no more",
        ),
        (
            t5_checkpoint,
            -1,
            "--max_source_tokens must not be negative, but is -1; "
            "0 takes the checkpoint's limit",
        ),
    ):
        with pytest.raises(UsageError, match=message):
            import_checkpoint(
                checkpoint=folder, output=tmp_path / "b", max_source_tokens=length
            )
    assert not (tmp_path / "b").exists()


def test_an_imported_network_cannot_be_exported(bundle, tmp_path):
    with pytest.raises(
        UsageError,
        match="an imported network cannot be exported: its tokenizer runs in the "
        "tokenizers library.*; use the bundle itself with `precis summarize`",
    ):
        export(bundle=bundle, output=tmp_path / "out")
    assert not (tmp_path / "out").exists()


# --- Encoders, whose bundles write no summaries.


@pytest.fixture(scope="module")
def encoder_checkpoint(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("encoder")
    write_encoder(folder, "distilbert")
    write_pieces(folder, {"do_lower_case": True})
    return folder


@pytest.fixture(scope="module")
def encoder_bundle(encoder_checkpoint, tmp_path_factory) -> str:
    folder = str(tmp_path_factory.mktemp("encoder_bundle") / "b")
    flags = {"output": folder, "max_source_tokens": 9}
    import_checkpoint(checkpoint=encoder_checkpoint, **flags)
    return folder


def test_an_encoder_becomes_a_bundle_of_its_kind(encoder_checkpoint, encoder_bundle):
    loaded = load_encoder_bundle(encoder_bundle)
    assert loaded.encoder.config.max_source_tokens == 9
    ids = loaded.tokenizer.encode(["Rain fell on Monday.", "It was cold."])
    assert [len(row) for row in ids] == [8, 6]
    original = load_encoder(str(encoder_checkpoint))
    for row in ids:
        np.testing.assert_array_equal(loaded.encoder(row[None]), original(row[None]))
    names = ["config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt"]
    assert read_manifest(encoder_bundle)["provenance"] == {
        "command": "import",
        "flags": {"checkpoint": str(encoder_checkpoint), "max_source_tokens": 9},
        "model_type": "distilbert",
        "checkpoint": str(encoder_checkpoint),
        "checkpoint_sha256": {
            name: hashlib.sha256((encoder_checkpoint / name).read_bytes()).hexdigest()
            for name in names
        },
    }


def test_an_encoder_writes_no_summaries(encoder_bundle, tmp_path):
    refused = pytest.raises(
        UsageError,
        match="b: this bundle is of the kind encoder, and abstractive is asked for "
        "here; `precis train",
    )
    output = tmp_path / "run"
    with refused:
        summarize(corpus="sample:20", bundle=encoder_bundle, output=output)
    with refused:
        export(bundle=encoder_bundle, output=output)
    assert not output.exists()


def test_a_checkpoint_of_another_architecture_is_refused(tmp_path):
    write_encoder(tmp_path, settings={"model_type": "mpnet"})
    known = "bart, mt5, pegasus, t5, bert, distilbert, roberta"
    with pytest.raises(
        UsageError,
        match=f"model_type is 'mpnet', and what can be imported is {known}; take such",
    ):
        import_checkpoint(checkpoint=tmp_path, output=tmp_path / "b")
