"""`write=sentences`, end to end: a selector that has learned the importance of words,
a writer, and a run.
"""

import pyarrow.parquet as pq
import pytest
from support.command_line import exit_code, precis

from precis.model.errors import UsageError
from precis.model.rouge import tokenize
from precis.model.search.config import SearchConfig
from precis.model.text.article import Article
from precis.model.text.document import Document
from precis.model.text.normalization import one_line
from precis.model.text.words import words
from precis.pipelines.corpus.sample.generator import document
from precis.pipelines.summarize.options import SummarizeOptions
from precis.pipelines.summarize.summary_settings import check_writing

DOCUMENTS = "sample:300"


@pytest.mark.slow
def test_every_line_names_the_sentence_that_it_was_written_of(tmp_path):
    corpus, bundle = {"corpus": DOCUMENTS}, tmp_path / "bundle"
    limits = {"validation_share": 0.05, "writer_steps": 60}
    assert not precis("train-summarizer", output=bundle, **corpus, **limits)
    flags = {"bundle": bundle, "split": "test", "extractive": "neural,lead", **corpus}
    assert not precis("summarize", output=tmp_path / "run", **flags)
    rows = pq.read_table(tmp_path / "run" / "data").to_pylist()
    articles = {each.document_id: each.article for each in map(document, range(300))}
    assert len(rows) > 10
    lines = unchanged = 0
    for row in rows:
        article = articles[row["document_id"]]
        (candidate,) = row["abstractive"]
        assert row["abstractive_method"] == "sentences"
        assert row["truncated"] is False
        whole = Article(Document(document_id="d", article=article))
        spans = {(each.start, each.end) for each in whole.sentences}
        written = row["abstractive_summary"].split("\n")
        assert len(written) == len(candidate["support"]) <= 5
        starts = [span["start"] for span in candidate["support"]]
        assert starts == sorted(set(starts))
        quality = row["abstractive_quality"]
        assert quality["unsupported_numbers"] == []
        assert quality["unsupported_names"] == []
        for line, span in zip(written, candidate["support"], strict=True):
            sentence = one_line(article[span["start"] : span["end"]])
            assert (span["start"], span["end"]) in spans
            assert set(tokenize(line)) & set(tokenize(sentence))
            lines += 1
            unchanged += line == sentence
    limits = {"max_words": 14, "max_chars": 80, "group_by": "split"}
    flags |= {"form": "key_points", **limits}
    assert not precis("summarize", output=tmp_path / "short", **flags)
    short = pq.read_table(tmp_path / "short" / "data").to_pylist()
    groups = pq.read_table(tmp_path / "short" / "groups").to_pylist()
    for row in [*short, *groups]:
        texts = [row["summary"], row.get("abstractive_summary") or ""]
        assert max(map(len, texts)) <= 80
        assert max(len(words(text)) for text in texts) <= 14
    assert sum(row["summary_method"] == "abstractive" for row in short) > 10
    # A writer of 60 steps writes little that is complete, so sentences stand as is.
    assert 2 * unchanged > lines > len(rows)
    assert exit_code("verify", str(tmp_path / "run")) == 0


def test_sentences_need_both_bundles_and_the_importance_of_words(selector_bundle):
    selector = str(selector_bundle)
    for bundles, message in (
        ({"bundle": "b"}, "sentences needs --bundle, .* and --extractive_bundle, "),
        (
            {"bundle": "b", "extractive_bundle": selector},
            f"{selector}: does not know the importance of words",
        ),
    ):
        options = SummarizeOptions(output="o", write="sentences", **bundles)
        with pytest.raises(UsageError, match=message):
            check_writing(options, SearchConfig())
    options = SummarizeOptions(output="o", write="sentences")
    with pytest.raises(UsageError, match="--n_best 2: write=sentences makes one"):
        check_writing(options, SearchConfig(n_best=2))
    check_writing(SummarizeOptions(output="o"), SearchConfig(n_best=2))
