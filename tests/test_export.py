"""`precis export`: a SavedModel that says what `precis summarize` says, and nothing of
precis is needed to run it.
"""

import dataclasses
import hashlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import numpy as np
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from command_line import contents, error_lines, exit_code, precis, write_jsonl

import precis.model.inference.export
from precis.model.bundle.network_bundle import load_bundle, save_bundle
from precis.model.errors import JobError, UsageError
from precis.model.inference.export import SummarizingModule, keep_distinct
from precis.model.inference.summarizer import Summarizer
from precis.model.network.build import build_network
from precis.model.network.config import TransformerConfig
from precis.model.search.config import SearchConfig
from precis.model.text.article import Article
from precis.model.tokenization.vocabulary import count_words, learn
from precis.model.tokenization.wordpiece import Tokenizer
from precis.pipelines.corpus.sample import generator
from precis.pipelines.export import export
from tests.plain_network import scramble
from tests.small_network import make_network

ARTICLES = [generator.document(100 + index).article for index in range(12)]
ARTICLES += [
    "(CNN) -- " + ARTICLES[0],
    "LONDON, England (CNN)\u00a0-- Rain\r\nfell\x00 on\tMonday. Cafe\u0301 owners \u2014 said so.",
    "By . Jane Roe . PUBLISHED: . 09:12 EST, 3 May 2014 . | . Rain fell .",
    "a",
]
FLAGS = {"beam_width": 4, "n_best": 3, "max_summary_tokens": 9}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory) -> str:
    tokenizer = Tokenizer(
        learn(
            count_words([Article.from_text(article).body for article in ARTICLES]),
            size=400,
        )
    )
    shape = {
        "encoder_layers": 1,
        "decoder_layers": 1,
        "width": 16,
        "feed_forward": 16,
        "heads": 2,
    }
    limits = {"max_source_tokens": 40, "max_target_tokens": 12}
    config = TransformerConfig(
        vocabulary_size=tokenizer.vocabulary_size,
        pad_id=tokenizer.pad_id,
        **shape,
        **limits,
    )
    network = build_network(config, seed=5)
    scramble(network, seed=3, scale=0.7)
    folder = str(tmp_path_factory.mktemp("bundle"))
    save_bundle(folder, network=network, tokenizer=tokenizer, provenance={})
    return folder


@pytest.fixture(scope="module")
def exported(bundle, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "graph"
    export(bundle=bundle, output=folder, **FLAGS)
    return folder


@pytest.fixture(scope="module")
def graph(exported):
    loaded = tf.saved_model.load(str(exported))
    signature = loaded.signatures["serving_default"]

    def run(articles: list[str]) -> tuple[list[list[str]], np.ndarray]:
        found = signature(articles=tf.constant(articles, tf.string))
        return [
            [text.decode() for text in row] for row in found["summaries"].numpy()
        ], found["scores"].numpy()

    run.loaded = loaded  # the signature does not keep the weights alive
    return run


@pytest.fixture(scope="module")
def expected(bundle) -> list[list[tuple[str, float]]]:
    """What the bundle itself says of the articles."""
    loaded = load_bundle(bundle)
    summarizer = Summarizer(loaded.network, loaded.tokenizer, SearchConfig(**FLAGS))
    return summarizer.summarize(
        loaded.tokenizer.encode(
            [Article.from_text(article).body for article in ARTICLES]
        )
    )


def assert_same(summaries, scores, expected):
    assert len(summaries) == len(expected)
    for texts, numbers, ranked in zip(summaries, scores, expected, strict=True):
        missing = FLAGS["n_best"] - len(ranked)
        assert texts == [summary.text for summary in ranked] + [""] * missing
        assert (
            numbers.tolist()
            == [pytest.approx(summary.score, abs=1e-4) for summary in ranked]
            + [-np.inf] * missing
        )


def test_the_graph_says_what_the_bundle_says(graph, expected):
    assert len({ranked[0].text for ranked in expected}) > 10
    assert_same(*graph(ARTICLES), expected)
    assert expected[12] == expected[0]  # but for the credit, which is left out


def test_called_again_with_other_batches(graph, expected):
    for start, stop in ((0, 1), (3, 8), (0, len(ARTICLES)), (15, 16)):
        assert_same(*graph(ARTICLES[start:stop]), expected[start:stop])


def test_called_from_two_threads_at_once(graph, expected):
    parts = [slice(start, start + 4) for start in (0, 4, 8, 0)] * 2
    with ThreadPoolExecutor(2) as pool:
        for part, found in zip(
            parts, pool.map(lambda part: graph(ARTICLES[part]), parts), strict=True
        ):
            assert_same(*found, expected[part])


def test_no_article_and_articles_of_nothing(graph, expected):
    assert graph([])[0] == [] and graph([])[1].shape == (0, 3)
    summaries, scores = graph(["", ARTICLES[1], "(CNN) -- \u00a0\n"])
    assert summaries[0] == summaries[2] == ["", "", ""] and scores[
        [0, 2]
    ].tolist() == 2 * [[-np.inf] * 3]
    assert_same(summaries[1:2], scores[1:2], expected[1:2])


def test_the_signature_is_what_the_manifest_says(exported, graph):
    signature = graph.loaded.signatures["serving_default"]
    _, inputs = signature.structured_input_signature
    assert (
        inputs["articles"].shape.as_list() == [None]
        and inputs["articles"].dtype == tf.string
    )
    outputs = {
        name: (spec.dtype, spec.shape.rank)
        for name, spec in signature.structured_outputs.items()
    }
    assert outputs == {"summaries": (tf.string, 2), "scores": (tf.float32, 2)}
    use = json.loads((exported / "manifest.json").read_text())["use"]
    assert (
        use["signature"] == "serving_default"
        and set(use["input"]) == {"articles"}
        and set(use["output"]) == set(outputs)
    )


def test_the_manifest_names_model_search_versions_and_files(bundle, exported):
    manifest = json.loads((exported / "manifest.json").read_text())
    assert (
        manifest["model_id"] == load_bundle(bundle).model_id
        and manifest["versions"]["tensorflow"] == tf.__version__
    )
    assert (
        manifest["decoding"] == dataclasses.asdict(SearchConfig(**FLAGS))
        and manifest["strip_boilerplate"] is True
    )
    held = {
        name: hashlib.sha256(content).hexdigest()
        for name, content in contents(exported).items()
        if name != "manifest.json"
    }
    assert (
        manifest["sha256"] == held
        and "saved_model.pb" in held
        and any(name.startswith("variables/") for name in held)
    )


def test_equal_texts_are_kept_once_and_blanks_come_last():
    texts = tf.constant(
        [["a", "b", "a", "c"], ["x", "x", "y", "x"], ["p", "p", "q", "r"]]
    )
    scores = tf.constant([[-1.0, -2.0, -3.0, -4.0]] * 3)
    is_one = tf.constant(
        [[True] * 4, [True, True, True, False], [False, True, False, True]]
    )
    kept, left = keep_distinct(texts, scores, is_one)
    assert kept.numpy().tolist() == [
        [b"a", b"b", b"c", b""],
        [b"x", b"y", b"", b""],
        [b"p", b"r", b"", b""],
    ]
    gone = -np.inf
    assert left.numpy().tolist() == [
        [-1.0, -2.0, -4.0, gone],
        [-1.0, -3.0, gone, gone],
        [-2.0, -4.0, gone, gone],
    ]


def test_summaries_that_differ_in_white_space_only_are_one(bundle, monkeypatch):
    """What the search finds reaches the output in the order, and by the rule, of the
    summarizer.
    """
    loaded = load_bundle(bundle)
    pieces = {piece: loaded.tokenizer.vocabulary.index(piece) for piece in ("▁a", "▁")}
    a, space, end = pieces["▁a"], pieces["▁"], loaded.tokenizer.end_id
    found = tf.constant([[[a, end, 0], [space, a, end], [a, a, end], [a, space, end]]])
    module = SummarizingModule(loaded, SearchConfig(beam_width=4, n_best=4))
    searched = (
        found,
        tf.constant([[-1.0, -2.0, -3.0, -4.0]]),
        tf.constant([[True, True, True, True]]),
    )
    monkeypatch.setattr(module._searcher, "search_batch", lambda source: searched)
    result = module.summarize(tf.constant(["a"]))
    assert result["summaries"].numpy().tolist() == [[b"a", b"a a", b"", b""]]
    assert result["scores"].numpy().tolist() == [[-1.0, -3.0, -np.inf, -np.inf]]


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["gelu_tanh", "decoder_only_relative", "lstm"])
def test_networks_of_any_architecture_with_prefix_and_two_tokenizers(
    variant, bundle, tmp_path
):
    """Saved and loaded again: what the bundle says of the same texts behind the same
    prefix, cut by the tokenizer of sources.
    """
    target = load_bundle(bundle).tokenizer
    source = Tokenizer(target.vocabulary, lower_case=True)
    network = make_network(
        variant,
        vocabulary_size=target.vocabulary_size,
        pad_id=target.pad_id,
        max_source_tokens=40,
        dropout=0.0,
    )
    made = {
        "network": network,
        "tokenizer": target,
        "source_tokenizer": source,
        "task_prefixes": ("Headline: ",),
    }
    save_bundle(str(tmp_path / "bundle"), **made, provenance={})
    coverage = {**FLAGS, "coverage_penalty": 0.2}
    export(
        bundle=str(tmp_path / "bundle"), output=tmp_path / "g", **coverage
    )  # the bundle says which prefix
    graph = tf.saved_model.load(str(tmp_path / "g"))
    found = graph.summarize(tf.constant(ARTICLES))
    loaded = load_bundle(str(tmp_path / "bundle"))
    summarizer = Summarizer(
        loaded.network,
        target,
        SearchConfig(**coverage),
        None,
        loaded.source_tokenizer,
    )
    expected = summarizer.summarize(
        source.encode(
            ["Headline: " + Article.from_text(article).body for article in ARTICLES]
        )
    )
    assert_same(
        [[text.decode() for text in row] for row in found["summaries"].numpy()],
        found["scores"].numpy(),
        expected,
    )
    plain = Summarizer(loaded.network, target, SearchConfig(**coverage)).summarize(
        target.encode([Article.from_text(article).body for article in ARTICLES])
    )
    assert [ranked[0] for ranked in plain] != [ranked[0] for ranked in expected]


def test_flags_reach_the_graph(bundle, tmp_path):
    precis_flags = {"beam_width": 1, "max_summary_tokens": 5, "no_repeat_ngram": 0}
    argv = [
        word
        for name, value in precis_flags.items()
        for word in (f"--{name}", str(value))
    ]
    assert (
        exit_code(
            "export",
            bundle,
            "--output",
            str(tmp_path / "g"),
            "--no-strip_boilerplate",
            *argv,
        )
        == 0
    )
    graph = tf.saved_model.load(str(tmp_path / "g"))
    summaries = graph.summarize(tf.constant(ARTICLES))["summaries"].numpy()
    loaded = load_bundle(bundle)
    bodies = loaded.tokenizer.encode(
        [
            Article.from_text(article, strip_boilerplate=False).body
            for article in ARTICLES
        ]
    )
    ranked = Summarizer(
        loaded.network, loaded.tokenizer, SearchConfig(**precis_flags)
    ).summarize(bodies)
    assert [[text.decode() for text in row] for row in summaries] == [
        [one.text for one in summaries] for summaries in ranked
    ]
    assert summaries[0] != summaries[12]  # the credit is read


def test_the_same_export_again_is_left_alone_and_says_so(bundle, exported, capsys):
    before = {path: path.stat().st_mtime_ns for path in exported.rglob("*")}
    argv = [word for name, value in FLAGS.items() for word in (f"--{name}", str(value))]
    assert exit_code("export", bundle, "--output", f"{exported}/", *argv) == 0
    assert (
        capsys.readouterr().out
        == f"model {load_bundle(bundle).model_id}\nwrote {exported}/\n"
    )
    assert {path: path.stat().st_mtime_ns for path in exported.rglob("*")} == before


@pytest.mark.parametrize(
    "name", ["other settings", "bundle", "foreign file", "damaged"]
)
def test_a_folder_with_other_content_is_refused(name, bundle, exported, tmp_path):
    folder, flags = tmp_path / "out", dict(FLAGS)
    if name == "foreign file":
        folder.mkdir()
        (folder / "notes.txt").write_text("mine")
    else:
        fsspec.filesystem("file").put(
            str(bundle if name == "bundle" else exported) + "/",
            str(folder),
            recursive=True,
        )
    if name == "other settings":
        flags["n_best"] = 2
    if name == "damaged":
        (folder / "saved_model.pb").write_bytes(b"")
    before = contents(folder)
    with pytest.raises(
        UsageError,
        match="out holds something else than this export; name another --output, or remove that folder",
    ):
        export(bundle=bundle, output=folder, **flags)
    assert contents(folder) == before and os.listdir(tmp_path) == ["out"]


def test_a_disk_that_fails_leaves_nothing(bundle, tmp_path, monkeypatch):
    def fail(module, folder):
        Path(folder, "half").write_text("half")
        raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    (tmp_path / "out.aside").mkdir()  # as a killed export leaves it
    monkeypatch.setattr(precis.model.inference.export, "save_graph", fail)
    with pytest.raises(
        JobError,
        match="out could not be written: No space left on device; make room or name another --output",
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
    from small_checkpoint import write_checkpoint, write_tokenizer

    from precis.pipelines.import_checkpoint import import_checkpoint

    write_checkpoint(tmp_path / "checkpoint")
    write_tokenizer(tmp_path / "checkpoint", as_definition=True)
    import_checkpoint(checkpoint=tmp_path / "checkpoint", output=tmp_path / "bundle")
    assert (
        exit_code("export", str(tmp_path / "bundle"), "--output", str(tmp_path / "out"))
        == 2
    )
    (line,) = error_lines(capsys.readouterr().err, "export")
    assert (
        "an imported network cannot be exported: its tokenizer runs in the tokenizers library"
        in line
    )
    assert (
        "use the bundle itself with `precis summarize`" in line
        and not (tmp_path / "out").exists()
    )


def test_a_precision_that_does_not_exist_is_refused(bundle, tmp_path):
    with pytest.raises(
        UsageError,
        match="--precision is one of float32, mixed_bfloat16, mixed_float16, not 'int8'",
    ):
        export(bundle=bundle, output=tmp_path / "out", precision="int8")


@pytest.mark.slow
def test_rows_of_precis_summarize_in_a_process_without_precis(
    bundle, exported, tmp_path
):
    corpus = write_jsonl(
        tmp_path / "c.jsonl",
        [
            {"id": str(index), "article": article}
            for index, article in enumerate(ARTICLES)
        ],
    )
    assert (
        precis(
            "summarize",
            corpus=corpus,
            bundle=bundle,
            output=tmp_path / "run",
            min_source_words=0,
            **FLAGS,
        )
        == 0
    )
    rows = [
        row
        for part in sorted((tmp_path / "run").glob("summaries/*.parquet"))
        for row in pq.read_table(part).to_pylist()
    ]
    assert [row["document_id"] for row in rows] == [
        str(index) for index in range(len(ARTICLES))
    ]
    assert {row["decode_id"] for row in rows} == {
        json.loads((exported / "manifest.json").read_text())["decode_id"]
    }
    (tmp_path / "articles.json").write_text(json.dumps(ARTICLES))
    program = f"""
import json, sys
import tensorflow as tf, tensorflow_text
run = tf.saved_model.load({str(exported)!r})
found = run.signatures["serving_default"](articles=tf.constant(json.load(open("articles.json"))))
assert not {{"model", "pipelines", "precis"}} & set(sys.modules), "precis was imported"
print(json.dumps([[text.decode() for text in row] for row in found["summaries"].numpy()]))
"""
    done = subprocess.run(
        [sys.executable, "-I", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    expected = [[one["text"] for one in row["abstractive"]] for row in rows]
    assert json.loads(done.stdout) == [
        texts + [""] * (3 - len(texts)) for texts in expected
    ]
