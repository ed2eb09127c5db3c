"""`precis import` of networks, and `precis summarize` with the imported bundles.

A bundle is searched with the settings of its checkpoint, which flags override.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from support.command_line import contents, error_lines, precis, write_jsonl
from support.small_checkpoint import (
    POSITIONS,
    SETTINGS,
    TEXTS,
    tensors,
    write_checkpoint,
    write_tokenizer,
)

from precis.model.bundle.converters.checkpoint import load_checkpoint
from precis.model.bundle.manifest import read_manifest
from precis.model.bundle.network_bundle import load_bundle, read_decoding
from precis.model.errors import DataError
from precis.model.inference.searcher import Searcher
from precis.model.search.config import SearchConfig
from precis.model.tokenization.checkpoint_files import read_tokenizer
from precis.pipelines.cli import main
from precis.pipelines.import_checkpoint import import_checkpoint
from precis.pipelines.options.summarize import SummarizeOptions
from precis.pipelines.summary_settings import read_model_ids

LONG = " ".join(TEXTS)  # longer than the network's source length


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    write_checkpoint(folder)
    write_tokenizer(folder, as_definition=True)
    return folder


@pytest.fixture(scope="module")
def bundle(checkpoint, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("imported") / "bundle"
    assert main(["import", str(checkpoint), "--output", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> str:
    return write_jsonl(
        tmp_path_factory.mktemp("corpus") / "c.jsonl",
        [{"id": f"d{n}", "article": text} for n, text in enumerate([*TEXTS, LONG])],
    )


def run(folder: Path, **flags) -> tuple[list[dict], dict]:
    """The rows and the manifest of a run of `precis summarize`."""
    assert precis("summarize", output=folder, min_source_words=0, **flags) == 0
    rows = [
        row
        for part in sorted(folder.glob("summaries/*.parquet"))
        for row in pq.read_table(part).to_pylist()
    ]
    return rows, json.loads((folder / "manifest.json").read_text())


def decode_id(bundle: Path, decoding: SearchConfig) -> str | None:
    return read_model_ids(SummarizeOptions(output="o", bundle=str(bundle)), decoding)[
        "decode_id"
    ]


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
    assert precis("import", output=tmp_path / "b") == 2
    assert main(["import", str(checkpoint), "--output", str(tmp_path / "b")]) == 0
    model_id = read_manifest(str(bundle))["model_id"]
    assert capsys.readouterr().out == f"model {model_id}\nwrote {tmp_path / 'b'}\n"
    assert contents(tmp_path / "b") == contents(
        bundle
    )  # the same checkpoint gives the same bytes


def test_an_imported_bundle_is_searched_with_the_settings_of_its_checkpoint(
    checkpoint, bundle, corpus, tmp_path
):
    rows, manifest = run(tmp_path / "run", corpus=corpus, bundle=bundle)
    tokenizer, imported = (
        read_tokenizer(str(checkpoint), SETTINGS),
        load_checkpoint(str(checkpoint)),
    )
    sources = tokenizer.encode([*TEXTS, LONG])
    limit = imported.network.config.max_source_tokens
    assert [len(source) > limit for source in sources] == [False, False, False, True]
    cut = [*sources[:3], np.array([*sources[3][: limit - 1], 2], "int32")]
    results = Searcher(
        imported.network, config=imported.decoding, special=imported.special
    ).search(cut)
    assert len({tuple(ranked[0].tokens) for ranked in results}) == 4
    assert [row["abstractive_summary"].split() for row in rows] == [
        tokenizer.decode([ranked[0].tokens])[0].split() for ranked in results
    ]
    assert [[one["score"] for one in row["abstractive"]] for row in rows] == [
        [pytest.approx(ranked[0].score, abs=1e-5)] for ranked in results
    ]
    assert [row["document_id"] for row in rows] == ["d0", "d1", "d2", "d3"] and [
        row["truncated"] for row in rows
    ] == [False] * 3 + [True]
    assert [row["source_tokens"] for row in rows] == [
        len(source) for source in sources
    ] and rows[3]["seen_tokens"] == limit
    assert (
        {row["decode_id"] for row in rows}
        == {manifest["decode_id"]}
        == {decode_id(bundle, imported.decoding)}
    )
    assert {row["model_id"] for row in rows} == {read_manifest(str(bundle))["model_id"]}


def test_a_flag_overrides_the_setting_of_the_bundle(bundle, corpus, tmp_path):
    rows, manifest = run(
        tmp_path / "run", corpus=corpus, bundle=bundle, n_best=2, max_summary_tokens=6
    )
    asked = SearchConfig(
        **{**read_decoding(str(bundle)), "n_best": 2, "max_summary_tokens": 6}
    )
    assert (
        manifest["decode_id"]
        == decode_id(bundle, asked)
        != decode_id(bundle, SearchConfig(n_best=2, max_summary_tokens=6))
    )
    assert asked.beam_width == 3 and max(len(row["abstractive"]) for row in rows) == 2
    rows_without_flags, _ = run(tmp_path / "own", corpus=corpus, bundle=bundle)
    assert [row["abstractive_summary"] for row in rows_without_flags] != [
        row["abstractive_summary"] for row in rows
    ]


def test_the_settings_of_a_damaged_bundle_are_not_used(checkpoint, tmp_path, capsys):
    import_checkpoint(checkpoint=checkpoint, output=tmp_path / "b")
    config = tmp_path / "b" / "config.json"
    config.write_text(config.read_text().replace('"beam_width": 3', '"beam_width": 9'))
    assert (
        precis(
            "summarize",
            corpus="sample:20",
            output=tmp_path / "run",
            bundle=tmp_path / "b",
        )
        == 1
    )
    assert (
        "config.json: missing, or its checksum differs from manifest.json's"
        in error_lines(capsys.readouterr().err, "summarize")[0]
    )
    assert not (tmp_path / "run").exists()  # found before any work began


def test_a_network_that_does_not_fit_its_checkpoint_writes_nothing(
    checkpoint, tmp_path, capsys
):
    write_checkpoint(
        tmp_path / "c",
        {name: tensor for name, tensor in tensors().items() if "fc1.bias" not in name},
    )
    assert main(["import", str(tmp_path / "c"), "--output", str(tmp_path / "b")]) == 2
    assert (
        "c: there is no tokenizer, neither tokenizer.json nor vocab.json"
        in error_lines(capsys.readouterr().err, "import")[0]
    )
    write_tokenizer(tmp_path / "c", as_definition=False)
    with pytest.raises(
        DataError,
        match=(
            "lacks decoder.layers.0.fc1.bias, encoder.layers.0.fc1.bias, "
            "encoder.layers.1.fc1.bias, which"
        ),
    ):
        import_checkpoint(checkpoint=tmp_path / "c", output=tmp_path / "b")
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


def test_a_t5_summarizes_with_its_prefix_and_the_given_length(
    t5_checkpoint, corpus, tmp_path
):
    bundle = tmp_path / "b"
    flags = ["--output", str(bundle), "--max_source_tokens", "60"]
    assert main(["import", str(t5_checkpoint), *flags]) == 0
    imported, network = (
        load_checkpoint(str(t5_checkpoint), max_source_tokens=60),
        load_bundle(str(bundle)).network,
    )
    for before, after in zip(imported.network.weights, network.weights, strict=True):
        np.testing.assert_array_equal(before.numpy(), after.numpy())
    assert (
        network.config == imported.network.config
        and network.config.max_source_tokens == 60
    )
    rows, _ = run(tmp_path / "run", corpus=corpus, bundle=bundle)
    tokenizer = read_tokenizer(str(t5_checkpoint), SETTINGS)
    sources = tokenizer.encode([f"summarize: {text}" for text in [*TEXTS, LONG]])
    assert POSITIONS < len(sources[3]) and [row["source_tokens"] for row in rows] == [
        len(source) for source in sources
    ]
    assert (
        imported.decoding.beam_width == 2 and imported.decoding.max_summary_tokens == 8
    )
    searcher = Searcher(
        imported.network, config=imported.decoding, special=imported.special
    )
    results = searcher.search([tokenizer.cut(source, 60) for source in sources])
    assert [[one["score"] for one in row["abstractive"]] for row in rows] == [
        [pytest.approx(ranked[0].score, abs=1e-5)] for ranked in results
    ]


def test_an_impossible_source_length_is_refused(
    checkpoint, t5_checkpoint, tmp_path, capsys
):
    output = str(tmp_path / "b")
    too_many = ["--output", output, "--max_source_tokens", "41"]
    assert main(["import", str(checkpoint), *too_many]) == 2
    assert (
        "--max_source_tokens is 41, and this checkpoint has learned 40 positions; "
        "ask for no more"
    ) in error_lines(capsys.readouterr().err, "import")[0]
    negative = ["--output", output, "--max_source_tokens", "-1"]
    assert main(["import", str(t5_checkpoint), *negative]) == 2
    assert (
        "--max_source_tokens must not be negative, but is -1; "
        "0 takes the checkpoint's limit"
    ) in error_lines(capsys.readouterr().err, "import")[0]
    assert not (tmp_path / "b").exists()
