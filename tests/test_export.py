"""The exported graph: a SavedModel that writes what `precis summarize` writes, and runs
without precis.
"""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from support.command_line import exit_code, precis, write_jsonl
from support.small_export import (
    ARTICLES,
    FLAGS,
    assert_same_summaries,
    bodies,
    save_small_network,
)
from support.small_network import make_network

from precis.model.bundle.network_bundle import load_bundle, save_bundle
from precis.model.inference.export import SummarizingModule, keep_distinct
from precis.model.inference.summarizer import Summarizer
from precis.model.search.config import SearchConfig
from precis.model.tokenization.wordpiece import Tokenizer
from precis.pipelines.export import export


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


def test_called_again_with_other_batches(graph, expected):
    for start, stop in ((0, 1), (3, 8), (0, len(ARTICLES)), (15, 16)):
        assert_same_summaries(*graph(ARTICLES[start:stop]), expected[start:stop])


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


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["gelu_tanh", "decoder_only_relative", "lstm"])
def test_networks_of_any_architecture_with_prefix_and_two_tokenizers(
    variant, bundle, tmp_path
):
    """Saved and loaded again: what the bundle writes of the same texts behind the same
    prefix, encoded by the source tokenizer.
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
    save_bundle(
        str(tmp_path / "bundle"),
        network=network,
        tokenizer=target,
        source_tokenizer=source,
        task_prefixes=("Headline: ",),
        provenance={},
    )
    coverage = {**FLAGS, "coverage_penalty": 0.2}
    config = SearchConfig(**coverage)
    # No flag says which prefix: the bundle does.
    export(bundle=str(tmp_path / "bundle"), output=tmp_path / "g", **coverage)
    graph = tf.saved_model.load(str(tmp_path / "g"))
    output = graph.summarize(tf.constant(ARTICLES))
    loaded = load_bundle(str(tmp_path / "bundle"))
    summarizer = Summarizer(
        loaded.network, target, config, None, loaded.source_tokenizer
    )
    expected = summarizer.summarize(
        source.encode(["Headline: " + body for body in bodies()])
    )
    assert_same_summaries(
        decoded(output["summaries"]), output["scores"].numpy(), expected
    )
    without_prefix = Summarizer(loaded.network, target, config).summarize(
        target.encode(bodies())
    )
    assert [ranked[0] for ranked in without_prefix] != [
        ranked[0] for ranked in expected
    ]


def test_flags_reach_the_graph(bundle, tmp_path):
    settings = {"beam_width": 1, "max_summary_tokens": 5, "no_repeat_ngram": 0}
    argv = [
        word for name, value in settings.items() for word in (f"--{name}", str(value))
    ]
    output = str(tmp_path / "g")
    assert (
        exit_code("export", bundle, "--output", output, "--no-strip_boilerplate", *argv)
        == 0
    )
    graph = tf.saved_model.load(output)
    summaries = decoded(graph.summarize(tf.constant(ARTICLES))["summaries"])
    loaded = load_bundle(bundle)
    summarizer = Summarizer(loaded.network, loaded.tokenizer, SearchConfig(**settings))
    expected = summarizer.summarize(
        loaded.tokenizer.encode(bodies(strip_boilerplate=False))
    )
    assert summaries == [[summary.text for summary in ranked] for ranked in expected]
    assert summaries[0] != summaries[12]  # the credit is read


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
    run = tmp_path / "run"
    flags = {"corpus": corpus, "bundle": bundle, "min_source_words": 0, **FLAGS}
    assert precis("summarize", output=run, **flags) == 0
    rows = [
        row
        for part in sorted(run.glob("summaries/*.parquet"))
        for row in pq.read_table(part).to_pylist()
    ]
    assert [row["document_id"] for row in rows] == [
        str(index) for index in range(len(ARTICLES))
    ]
    assert {row["decode_id"] for row in rows} == {
        json.loads((exported / "manifest.json").read_text())["decode_id"]
    }
    (tmp_path / "articles.json").write_text(json.dumps(ARTICLES))
    done = subprocess.run(
        [sys.executable, "-I", "-c", WITHOUT_PRECIS, str(exported)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    expected = [[summary["text"] for summary in row["abstractive"]] for row in rows]
    assert json.loads(done.stdout) == [
        texts + [""] * (3 - len(texts)) for texts in expected
    ]
