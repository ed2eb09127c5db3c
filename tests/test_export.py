"""`precis export`: a SavedModel that writes what the bundle writes and runs without
precis, its manifest, and what failures leave behind.
"""

import dataclasses
import hashlib
import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import numpy as np
import pytest
import tensorflow as tf
from support.command_line import contents, exit_code
from support.small_export import (
    ARTICLES,
    FLAGS,
    assert_same_summaries,
    bodies,
    save_small_network,
)
from support.small_network import make_network

import precis.model.inference.export
from precis.model.bundle.network_bundle import load_bundle, save_bundle
from precis.model.errors import DataError, JobError, UsageError
from precis.model.inference.export import SummarizingModule, keep_distinct
from precis.model.inference.summarizer import Summarizer
from precis.model.network.config import SOURCE_PADDING
from precis.model.search.config import SearchConfig
from precis.model.tokenization.source import encode_sources
from precis.model.tokenization.wordpiece import Tokenizer
from precis.pipelines.bundles.export import export
from precis.pipelines.options.summarize import decode_id


@pytest.fixture(scope="module")
def bundle(tmp_path_factory) -> str:
    return save_small_network(tmp_path_factory.mktemp("bundle"))


@pytest.fixture(scope="module")
def exported(bundle, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "graph"
    export(bundle=bundle, output=folder, **FLAGS)
    return folder


def decoded(texts: tf.Tensor) -> list[list[str]]:
    return [[text.decode() for text in row] for row in texts.numpy()]


@pytest.fixture(scope="module")
def graph(exported):
    loaded = tf.saved_model.load(str(exported))
    signature = loaded.signatures["serving_default"]

    def run(articles: list[str]) -> tuple[list[list[str]], np.ndarray]:
        output = signature(articles=tf.constant(articles, tf.string))
        return decoded(output["summaries"]), output["scores"].numpy()

    run.loaded = loaded  # the signature does not keep the weights alive
    return run


@pytest.fixture(scope="module")
def expected(bundle) -> list[list[tuple[str, float]]]:
    """What the bundle itself writes of the articles."""
    loaded = load_bundle(bundle)
    summarizer = Summarizer(loaded.network, loaded.tokenizer, SearchConfig(**FLAGS))
    return summarizer.summarize(loaded.tokenizer.encode(bodies()))


def test_the_graph_writes_what_the_bundle_writes(graph, expected):
    assert len({ranked[0].text for ranked in expected}) > 10
    assert_same_summaries(*graph(ARTICLES), expected)
    assert expected[12] == expected[0]  # but for the credit, which is left out
    for part in (slice(1), slice(3, 8), slice(15, 16)):
        assert_same_summaries(*graph(ARTICLES[part]), expected[part])


def test_called_from_two_threads_at_once(graph, expected):
    parts = [slice(start, start + 4) for start in (0, 4, 8, 0)] * 2
    with ThreadPoolExecutor(2) as pool:
        outputs = pool.map(lambda part: graph(ARTICLES[part]), parts)
        for part, output in zip(parts, outputs, strict=True):
            assert_same_summaries(*output, expected[part])


def test_no_article_and_articles_without_text(graph, expected):
    summaries, scores = graph([])
    assert summaries == [] and scores.shape == (0, 3)
    summaries, scores = graph(["", ARTICLES[1], "(CNN) -- \u00a0\n"])
    assert summaries[0] == summaries[2] == ["", "", ""]
    assert scores[[0, 2]].tolist() == 2 * [[-np.inf] * 3]
    assert_same_summaries(summaries[1:2], scores[1:2], expected[1:2])


def test_the_signature_is_that_of_the_manifest(exported, graph):
    signature = graph.loaded.signatures["serving_default"]
    _, inputs = signature.structured_input_signature
    assert inputs["articles"].shape.as_list() == [None]
    assert inputs["articles"].dtype == tf.string
    outputs = {
        name: (spec.dtype, spec.shape.rank)
        for name, spec in signature.structured_outputs.items()
    }
    assert outputs == {"summaries": (tf.string, 2), "scores": (tf.float32, 2)}
    use = json.loads((exported / "manifest.json").read_text())["use"]
    assert use["signature"] == "serving_default"
    assert set(use["input"]) == {"articles"}
    assert set(use["output"]) == set(outputs)


def test_equal_texts_are_kept_once_and_blanks_come_last():
    texts = tf.constant(
        [["a", "b", "a", "c"], ["x", "x", "y", "x"], ["p", "p", "q", "r"]]
    )
    scores = tf.constant([[-1.0, -2.0, -3.0, -4.0]] * 3)
    exists = tf.constant(
        [[True] * 4, [True, True, True, False], [False, True, False, True]]
    )
    kept, kept_scores = keep_distinct(texts, scores, exists)
    assert kept.numpy().tolist() == [
        [b"a", b"b", b"c", b""],
        [b"x", b"y", b"", b""],
        [b"p", b"r", b"", b""],
    ]
    assert kept_scores.numpy().tolist() == [
        [-1.0, -2.0, -4.0, -np.inf],
        [-1.0, -3.0, -np.inf, -np.inf],
        [-2.0, -4.0, -np.inf, -np.inf],
    ]


def test_a_summary_that_differs_in_white_space_only_is_left_out(bundle, monkeypatch):
    """Hypotheses reach the output in the order, and by the rule, of the summarizer."""
    loaded = load_bundle(bundle)
    a, space = (loaded.tokenizer.vocabulary.index(piece) for piece in ("▁a", "▁"))
    end = loaded.tokenizer.end_id
    module = SummarizingModule(loaded, SearchConfig(beam_width=4, n_best=4))
    searched = (
        tf.constant([[[a, end, 0], [space, a, end], [a, a, end], [a, space, end]]]),
        tf.constant([[-1.0, -2.0, -3.0, -4.0]]),
        tf.constant([[True, True, True, True]]),
    )
    monkeypatch.setattr(module._searcher, "search_batch", lambda source: searched)
    output = module.summarize(tf.constant(["a"]))
    assert output["summaries"].numpy().tolist() == [[b"a", b"a a", b"", b""]]
    assert output["scores"].numpy().tolist() == [[-1.0, -3.0, -np.inf, -np.inf]]


@pytest.mark.parametrize(
    "cleaning",
    [
        {"strip_boilerplate": True},
        {"strip_boilerplate": False},
        {"clean": "none"},
    ],
)
def test_sources_have_the_prefix_and_the_tokenizer_of_sources(
    bundle, tmp_path, monkeypatch, cleaning
):
    """No flag says which prefix: the bundle does."""
    small = load_bundle(bundle)
    source = Tokenizer(small.tokenizer.vocabulary, lower_case=True)
    save_bundle(
        str(tmp_path / "bundle"),
        network=small.network,
        tokenizer=small.tokenizer,
        source_tokenizer=source,
        task_prefixes=("Headline: ",),
        provenance={},
    )
    modules, read = [], []

    def keep(module, folder):
        modules.append(module)
        Path(folder, "saved_model.pb").write_bytes(b"graph")

    monkeypatch.setattr(precis.model.inference.export, "save_graph", keep)
    flags = {"bundle": tmp_path / "bundle", **cleaning}
    manifest = export(output=tmp_path / "g", **flags)
    assert cleaning.items() <= manifest.items()
    (module,) = modules

    def search_batch(sources):
        read.extend(sources.numpy().tolist())
        rows = len(sources)
        exists = tf.zeros([rows, 1], "bool")
        return tf.zeros([rows, 1, 1], "int32"), tf.zeros([rows, 1]), exists

    monkeypatch.setattr(module._searcher, "search_batch", search_batch)
    assert set(decoded(module._summarize(tf.constant(ARTICLES))["summaries"])[0]) == {
        ""
    }
    texts = ["Headline: " + body for body in bodies(**cleaning)]
    encoded = encode_sources(source, texts, max_source_tokens=40)
    ids = [row.ids.tolist() for row in encoded]
    longest = max(map(len, ids))
    assert read == [row + [SOURCE_PADDING] * (longest - len(row)) for row in ids]


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["decoder_only_relative", "lstm"])
def test_networks_of_other_architectures(variant, bundle, tmp_path):
    """Saved and loaded again: what the bundle writes of the same texts."""
    tokenizer = load_bundle(bundle).tokenizer
    network = make_network(
        variant,
        vocabulary_size=tokenizer.vocabulary_size,
        pad_id=tokenizer.pad_id,
        max_source_tokens=40,
        dropout=0.0,
    )
    saved = {"network": network, "tokenizer": tokenizer, "provenance": {}}
    save_bundle(str(tmp_path / "bundle"), **saved)
    flags = {**FLAGS, "coverage_penalty": 0.2}
    export(bundle=str(tmp_path / "bundle"), output=tmp_path / "g", **flags)
    graph = tf.saved_model.load(str(tmp_path / "g"))
    output = graph.summarize(tf.constant(ARTICLES[:4]))
    loaded = load_bundle(str(tmp_path / "bundle"))
    summarizer = Summarizer(loaded.network, tokenizer, SearchConfig(**flags))
    expected = summarizer.summarize(tokenizer.encode(bodies()[:4]))
    assert_same_summaries(
        decoded(output["summaries"]), output["scores"].numpy(), expected
    )


WITHOUT_PRECIS = """
import json, sys
import tensorflow as tf, tensorflow_text
graph = tf.saved_model.load(sys.argv[1])
articles = tf.constant(json.load(open("articles.json")))
output = graph.signatures["serving_default"](articles=articles)
assert not {"model", "pipelines", "precis"} & set(sys.modules), "precis was imported"
summaries = output["summaries"].numpy()
print(json.dumps([[text.decode() for text in row] for row in summaries]))
"""


@pytest.mark.slow
def test_a_process_without_precis_writes_the_same(exported, expected, tmp_path):
    (tmp_path / "articles.json").write_text(json.dumps(ARTICLES))
    done = subprocess.run(
        [sys.executable, "-I", "-c", WITHOUT_PRECIS, str(exported)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    texts = [[summary.text for summary in ranked] for ranked in expected]
    assert json.loads(done.stdout) == [row + [""] * (3 - len(row)) for row in texts]


def test_the_manifest_names_model_search_versions_and_files(bundle, exported):
    manifest = json.loads((exported / "manifest.json").read_text())
    assert manifest["model_id"] == load_bundle(bundle).model_id
    assert manifest["versions"]["tensorflow"] == tf.__version__
    assert manifest["decoding"] == dataclasses.asdict(SearchConfig(**FLAGS))
    assert manifest["strip_boilerplate"] is True
    # The name that rows of `precis summarize` with the same search have.
    assert manifest["decode_id"] == decode_id(SearchConfig(**FLAGS), "float32")
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
    printed = capsys.readouterr().out
    assert printed.startswith(f"model {model_id}\nwrote {exported}/\nnext: ")
    program, option, code = shlex.split(printed.splitlines()[-1])[1:]
    assert (program, option) == (sys.executable, "-c") and f'"{exported}/"' in code
    compile(code, "next", "exec")
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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[1]", r"damaged \(.*\); name another --output"),
        (b"null", r"damaged \(.*\); name another --output"),
        (b"\xff", r"damaged \(not JSON: .*\); name another --output"),
    ],
)
def test_a_damaged_manifest_is_refused(content, message, bundle, tmp_path):
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(DataError, match=f"manifest.json: {message}"):
        export(bundle=bundle, output=tmp_path, **FLAGS)


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


def test_a_precision_that_does_not_exist_is_refused(bundle, tmp_path):
    known = "float32, mixed_bfloat16, mixed_float16"
    with pytest.raises(UsageError, match=f"--precision is one of {known}, not 'int8'"):
        export(bundle=bundle, output=tmp_path / "out", precision="int8")
