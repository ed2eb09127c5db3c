"""A document that fails in any stage of `precis summarize` costs its own row only."""

import operator

import numpy as np
import pytest
import tensorflow as tf
from support.command_line import write_jsonl
from support.shared_networks import eagerly
from support.summarize_runs import (
    articles_of,
    manifest_of,
    rows_of,
    settings_of,
    story,
    summarized,
)

from precis.model.errors import JobError
from precis.model.inference import searcher
from precis.model.text.article import Article
from precis.pipelines.corpus.dead_letters import read_dead_letters
from precis.pipelines.summarize import window_summarizer
from precis.pipelines.summarize.summarize import summarize
from precis.pipelines.summarize.summary_rows import SummaryRow
from precis.pipelines.summarize.window_summarizer import WindowSummarizer

SECRET = "a sentence of the document"


def poison(monkeypatch, step, guilty, error=KeyError):
    """Makes a step of the rows of some documents fail."""
    function = getattr(SummaryRow, step)

    def poisoned(row):
        if row.article.document.document_id in guilty:
            raise error(SECRET)
        function(row)

    monkeypatch.setattr(SummaryRow, step, poisoned)


def texts(rows):
    """The columns of rows without the time they took, and without the scores, whose
    last digits depend on the batch.
    """
    return [
        {
            **row,
            "abstractive": [item["text"] for item in row["abstractive"] or ()],
            "abstractive_quality": None,
            "writing_seconds": None,
        }
        for row in rows
    ]


@pytest.fixture(scope="module")
def summarizer(bundle):
    """A function that summarizes a window of six stories with a network, and makes a
    table of them.
    """
    search = {"bundle": str(bundle), "beam_width": 2, "max_summary_tokens": 3}
    search |= {"window_documents": 6, "long_documents": "head"}
    worker = WindowSummarizer(settings_of(**search))
    worker.load()

    def run():
        with eagerly():
            (window,) = worker.summarize(articles_of(map(story, range(6))))
        table = worker.table(window)
        ids = table.column("document_id").to_pylist()
        assert ids == [row["document_id"] for row in window.rows]
        return window

    run.worker = worker
    yield run
    worker.close()


@pytest.fixture(scope="module")
def expected(summarizer):
    """The window without a guilty document."""
    window = summarizer()
    assert len(window.rows) == 6 and window.dead_letters == []
    return window


def test_each_stage_loses_its_guilty_document(summarizer, expected, monkeypatch):
    bodies = [Article.from_text(story(index)["article"]).body for index in range(6)]

    poison(monkeypatch, "extract", ["d01"], RecursionError)
    bulk = summarizer.worker._models.bulk
    encode = bulk.source_tokenizer.encode
    sources = [encode([body])[0][: bulk.max_source_tokens] for body in bodies]

    def encode_all_but_the_third(texts):
        texts = list(texts)
        if bodies[2] in texts:
            raise ValueError(SECRET)
        return encode(texts)

    monkeypatch.setattr(bulk.source_tokenizer, "encode", encode_all_but_the_third)
    together = searcher.TensorFlowSearcher.search_together

    def search_all_but_the_fourth(self, batch):
        if any(np.array_equal(source, sources[3]) for source in batch):
            raise tf.errors.ResourceExhaustedError(None, None, SECRET)
        return together(self, batch)

    target = "precis.model.inference.searcher.TensorFlowSearcher.search_together"
    monkeypatch.setattr(target, search_all_but_the_fourth)
    poison(monkeypatch, "finish", ["d04"], MemoryError)
    isolated = window_summarizer.isolated_table

    def table_without_the_sixth(rows, schema):
        words = [SECRET if row["document_id"] == "d05" else 1 for row in rows]
        changed = zip(rows, words, strict=True)
        rows = [{**row, "article_words": count} for row, count in changed]
        return isolated(rows, schema)

    monkeypatch.setattr(window_summarizer, "isolated_table", table_without_the_sixth)
    summarized = summarizer()
    assert texts(summarized.rows) == texts(expected.rows[:1])
    names = ("document_id", "stage", "reason", "error_class", "retryable")
    found = map(operator.attrgetter(*names), summarized.dead_letters)
    assert [*found] == [
        ("d01", "extract", "error", "RecursionError", False),
        ("d02", "encode", "error", "ValueError", False),
        ("d03", "search", "out_of_memory", "ResourceExhaustedError", True),
        ("d04", "finish", "out_of_memory", "MemoryError", True),
        ("d05", "write", "error", "DataError", False),
    ]
    for letter, index in zip(summarized.dead_letters, range(1, 6), strict=True):
        article = Article.from_text(story(index)["article"])
        assert letter.content_sha256 == article.content_sha256
        assert SECRET not in letter.detail and "\n" not in letter.detail


def test_a_network_that_gives_nan_for_one_document_loses_that_document(
    summarizer, expected, monkeypatch
):
    bulk = summarizer.worker._models.bulk
    network = bulk._searcher.network
    body = Article.from_text(story(3)["article"]).body
    (first,) = bulk.source_tokenizer.encode([body])
    marked = [int(token) for token in first[:3]]
    encode = type(network).encode

    def encode_with_nan(source):
        memory = encode(network, source)
        is_guilty = tf.reduce_all(tf.equal(source[:, :3], marked), axis=1)
        nan = tf.where(is_guilty, float("nan"), 0.0)[:, None, None]
        return tf.nest.map_structure(
            lambda part: part + nan if part.dtype.is_floating else part, memory
        )

    monkeypatch.setattr(network, "encode", encode_with_nan)
    summarized = summarizer()
    (letter,) = summarized.dead_letters
    detail = "the network gave no summary a finite score"
    assert letter[:4] == ("search", "nan", detail, "d03")
    others = [row for row in expected.rows if row["document_id"] != "d03"]
    assert texts(summarized.rows) == texts(others)


@pytest.mark.parametrize("width", [1, 3])
def test_a_search_notices_scores_that_are_not_finite(width):
    """In a beam, NaN makes all hypotheses impossible; greedy search returns it."""
    nan, lowest = float("nan"), -1e9
    scores = [[-1.0, nan], [nan, -1.0], [lowest, lowest], [-1.0, lowest]]
    scores += [[float("inf"), -1.0], [-1.0, -float("inf")]]
    values = np.array(scores)[:, : min(width, 2)]
    failed = searcher._rows_without_scores(values, values > lowest / 2, values)
    assert failed == ({1, 2, 4} if width == 1 else {0, 1, 2, 4})


def test_a_run_publishes_the_letters_and_its_counts_add_up(tmp_path, monkeypatch):
    lines = [story(index) for index in range(9)]
    corpus = write_jsonl(tmp_path / "news.jsonl", [*lines, "{broken"])
    sizes = {"min_source_words": 0, "window_documents": 4}
    flags = {"corpus": corpus, "max_failed_share": 0.5, **sizes}
    summarize(output=tmp_path / "undisturbed", **flags)
    guilty = ("d03", "d07")
    poison(monkeypatch, "extract", guilty)
    summarize(output=tmp_path / "run", **flags)
    counts = manifest_of(tmp_path / "run")["counts"]
    assert (counts["read"], counts["written"], counts["failed"]) == (10, 7, 3)
    of_run = {"run_id": None}
    assert [{**row, **of_run} for row in rows_of(tmp_path / "run")] == [
        {**row, **of_run}
        for row in rows_of(tmp_path / "undisturbed")
        if row["document_id"] not in guilty
    ]
    (path,) = (tmp_path / "run" / "dead_letters").iterdir()
    dead_letters = list(read_dead_letters(str(path)))
    of_stage = [letter for letter in dead_letters if letter["stage"] == "extract"]
    assert [letter["document_id"] for letter in of_stage] == list(guilty)
    for letter in of_stage:
        assert letter["reason"] == "error" and letter["error_class"] == "KeyError"
        assert letter["source_file"].endswith("news.jsonl")
        assert letter["source_position"].startswith("byte ")
        assert SECRET not in letter["detail"]


def test_a_defect_that_hits_every_document_ends_the_run(monkeypatch):
    lines = list(map(story, range(33)))
    poison(monkeypatch, "extract", [line["id"] for line in lines[:32]])
    message = (
        r"^the first 32 documents all failed in the stage extract with KeyError "
        r"\(KeyError at .*\), so the cause is not a document"
    )
    with pytest.raises(JobError, match=message):
        summarized(lines[:32])
    assert len(summarized(lines[:31]).dead_letters) == 31
    window = summarized(lines)  # A document that passes shows that others are guilty.
    assert len(window.rows) == 1 and len(window.dead_letters) == 32
