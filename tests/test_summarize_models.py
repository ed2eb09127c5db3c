"""Tests of `precis summarize`: keyphrases, models of sentences, and the oracle."""

import json
import shutil

import numpy as np
import pytest
from support.command_line import error_lines, precis, write_jsonl
from support.summarize_runs import manifest_of, rows_of, story

from precis.model.errors import DataError
from precis.model.extractive.config import SelectionConfig
from precis.model.inference.sentence_scorer import load_scorer, save_scorer
from precis.model.keyphrases.classifier import KeyphraseModel
from precis.model.keyphrases.ranking import frequent_keyphrases
from precis.model.keyphrases.references import reference_keyphrases
from precis.model.keyphrases.training import train_keyphrases
from precis.model.network.build import build_extractor
from precis.model.network.config import ExtractorConfig
from precis.model.quality.fallback import FallbackConfig
from precis.model.quality.flags import QualityConfig
from precis.model.search.config import SearchConfig
from precis.model.text.article import Article
from precis.model.text.words import words
from precis.pipelines.corpus.sample.generator import document
from precis.pipelines.options.summarize import SummarizeOptions
from precis.pipelines.summary_rows import (
    ScoringModels,
    SourceDocument,
    draft_rows,
)
from precis.pipelines.summary_settings import SummarySettings
from precis.pipelines.window_summarizer import WindowSummarizer

pytestmark = pytest.mark.usefixtures("one_time")


@pytest.fixture(scope="module")
def keyphrase_bundle(tmp_path_factory):
    pairs = [
        (
            [sentence.text for sentence in Article.from_text(story_.article).sentences],
            story_.highlights,
        )
        for story_ in map(document, range(60))
    ]
    folder = tmp_path_factory.mktemp("keyphrases") / "bundle"
    train_keyphrases(pairs, seed=3).save(str(folder))
    return folder


def test_keyphrases(keyphrase_bundle, tmp_path):
    corpus = write_jsonl(tmp_path / "c.jsonl", [story(0), {"article": "?!"}])
    for count in (2, 5):
        assert (
            precis(
                "summarize",
                corpus=corpus,
                output=tmp_path / f"{count}",
                keyphrase_bundle=keyphrase_bundle,
                keyphrases=count,
            )
            == 0
        )
        row, empty = rows_of(tmp_path / f"{count}")
        expected = KeyphraseModel.load(str(keyphrase_bundle)).keyphrases(
            [
                sentence.text
                for sentence in Article.from_text(story(0)["article"]).sentences
            ],
            count,
        )
        phrases = {
            method: [
                phrase for phrase in row["keyphrases"] if phrase["method"] == method
            ]
            for method in ("classifier", "frequency")
        }
        assert [
            (phrase["phrase"], phrase["score"]) for phrase in phrases["classifier"]
        ] == expected and len(expected) == count
        texts = [
            sentence.text
            for sentence in Article.from_text(story(0)["article"]).sentences
        ]
        assert [
            phrase["phrase"] for phrase in phrases["frequency"]
        ] == frequent_keyphrases(texts, count)
        assert (
            row["reference_keyphrases"]
            == sorted(reference_keyphrases(texts, story(0)["highlights"]))
            != []
        )
        assert (
            row["keyphrase_model_id"]
            == KeyphraseModel.load(str(keyphrase_bundle)).model_id
        )
        assert empty["keyphrases"] == [] and empty["reference_keyphrases"] is None
    manifest = manifest_of(tmp_path / "5")
    assert (
        manifest["keyphrase_model_id"]
        == json.loads((keyphrase_bundle / "manifest.json").read_bytes())["model_id"]
    )
    assert manifest_of(tmp_path / "2")["run_id"] != manifest["run_id"]
    assert (
        precis("summarize", corpus=corpus, output=tmp_path / "none", keyphrases=3) == 0
    )
    assert [row["keyphrases"] for row in rows_of(tmp_path / "none")] == [None, None]


def test_a_bundle_of_another_kind_is_refused_before_work(
    bundle, keyphrase_bundle, corpus, tmp_path, capsys
):
    out = tmp_path / "out"
    for flags, message in (
        (
            {"keyphrase_bundle": bundle},
            "is of the kind abstractive, and keyphrases is asked for here; "
            "`precis summarize --bundle` takes it",
        ),
        (
            {"extractive": "neural", "extractive_bundle": keyphrase_bundle},
            "`precis summarize --keyphrase_bundle` takes it",
        ),
        (
            {"bundle": keyphrase_bundle},
            "`precis summarize --keyphrase_bundle` takes it",
        ),
        ({"extractive": "neural"}, "--extractive neural needs --extractive_bundle"),
    ):
        assert precis("summarize", corpus=corpus, output=out, **flags) == 2
        (line,) = error_lines(capsys.readouterr().err, "summarize")
        assert message in line and not out.exists()


@pytest.fixture(scope="module")
def scorer_bundle(tmp_path_factory):
    """A network of one layer that has learned nothing."""
    config = ExtractorConfig(
        vector_width=0, width=8, layers=1, feed_forward=8, heads=2, max_sentences=32
    )
    folder = tmp_path_factory.mktemp("scorer") / "bundle"
    save_scorer(
        str(folder),
        extractor=build_extractor(config),
        encoder=None,
        precision="float32",
        provenance={},
    )
    return folder


def test_the_scores_of_a_network_choose_sentences(scorer_bundle, tmp_path):
    lines = [story(0), story(1), story(2)]
    flags = {
        "corpus": write_jsonl(tmp_path / "c.jsonl", lines),
        "extractive_bundle": scorer_bundle,
        "window_documents": 2,
    }
    assert (
        precis(
            "summarize",
            output=tmp_path / "out",
            extractive="neural,lead",
            redundancy="none",
            **flags,
        )
        == 0
    )
    documents = [Article.from_text(line["article"]).sentences for line in lines]
    scores = load_scorer(str(scorer_bundle)).score(
        [[sentence.text for sentence in document] for document in documents]
    )
    for row, sentences, scores_of_row in zip(
        rows_of(tmp_path / "out"), documents, scores, strict=True
    ):
        chosen = [
            sentence for sentence in row["extractive"] if sentence["method"] == "neural"
        ]
        best = sorted(np.argsort(-scores_of_row, kind="stable")[:3].tolist())
        assert [sentence["start"] for sentence in chosen] == [
            sentences[place].start for place in best
        ]
        assert [sentence["score"] for sentence in chosen] == pytest.approx(
            [scores_of_row[place] for place in best], rel=1e-5
        )
        assert row["summary_method"] == row["extractive_method"] == "neural"
    manifest = manifest_of(tmp_path / "out")
    assert (
        manifest["extractive_model_id"]
        == json.loads((scorer_bundle / "manifest.json").read_bytes())["model_id"]
    )
    assert manifest["extractive_bundle"] == str(scorer_bundle)


def settings(tmp_path, **options):
    concerns = (
        SummarizeOptions(output=str(tmp_path), **options),
        SelectionConfig(),
    )
    return SummarySettings(
        *concerns,
        QualityConfig(),
        FallbackConfig(),
        SearchConfig(),
        {"extractive_model_id": "0" * 16, "keyphrase_model_id": "1"},
    )


@pytest.mark.parametrize("name", ["extractive", "keyphrase"])
def test_a_model_that_was_replaced_is_refused(
    scorer_bundle, keyphrase_bundle, tmp_path, name
):
    folder = shutil.copytree(
        {"extractive": scorer_bundle, "keyphrase": keyphrase_bundle}[name],
        tmp_path / "copy",
    )
    worker = WindowSummarizer(settings(tmp_path, **{f"{name}_bundle": str(folder)}))
    with pytest.raises(
        DataError,
        match="copy holds model [0-9a-f]{16} now, and this job began with .*; "
        "put that model back",
    ):
        worker.load()


def test_the_oracle_is_there_for_documents_with_a_reference(tmp_path):
    corpus = write_jsonl(
        tmp_path / "c.jsonl", [story(0), {**story(1), "highlights": None}]
    )
    assert (
        precis(
            "summarize",
            corpus=corpus,
            output=tmp_path / "out",
            extractive="lead,oracle",
        )
        == 0
    )
    first, second = rows_of(tmp_path / "out")
    assert "oracle" in {sentence["method"] for sentence in first["extractive"]}
    assert {sentence["method"] for sentence in second["extractive"]} == {"lead"}
    assert (
        precis(
            "summarize", corpus=corpus, output=tmp_path / "only", extractive="oracle"
        )
        == 0
    )
    first, second = rows_of(tmp_path / "only")
    assert first["summary_method"] == "oracle" and first["quality_flags"] == []
    assert (second["summary"], second["quality_flags"]) == ("", ["empty"])


def test_a_whole_article_with_a_cut_in_a_word_is_no_longer_than_itself(tmp_path):
    """Every sentence is asked for, and the cut makes two words of one."""
    article = "He came from the U.S. to London."
    cut = article.index("S.")
    halves = [(0, cut), (cut, len(article))]
    cut_there = [
        Article.from_text(article)
        .sentences[0]
        ._replace(start=start, end=end, text=article[start:end])
        for start, end in halves
    ]
    whole = Article.from_text(article)
    whole.sentences = tuple(cut_there)
    (draft,) = draft_rows(
        [SourceDocument(whole, False)],
        settings(tmp_path, extractive="lead"),
        ScoringModels(),
    )
    assert (
        draft.extractive.flags == []
        and draft.columns["article_words"] == len(words(draft.extractive.text)) == 8
    )
