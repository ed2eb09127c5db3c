"""Tests of `precis summarize`: quality, the text to show, short documents, keyphrases,
and models of sentences.
"""

import json
import math
import shutil

import numpy as np
import pytest
from command_line import error_lines, precis, write_jsonl
from summarize_runs import SHORT, WRITTEN, id_of, manifest_of, rows_of, story

from precis.model.errors import DataError
from precis.model.extractive.config import SelectionConfig
from precis.model.inference.sentence_scorer import load_scorer, save_scorer
from precis.model.keyphrases.classifier import KeyphraseModel
from precis.model.keyphrases.ranking import frequent_keyphrases
from precis.model.keyphrases.references import reference_keyphrases
from precis.model.keyphrases.training import train_keyphrases
from precis.model.network.build import build_extractor
from precis.model.network.config import ExtractorConfig
from precis.model.quality.fallback import GateConfig
from precis.model.quality.flags import FLAGS, QualityConfig
from precis.model.quality.measures import measure, read_source
from precis.model.search.config import SearchConfig
from precis.model.text.article import Article
from precis.model.text.words import words
from precis.pipelines.corpus.sample.generator import document
from precis.pipelines.options import SummarizeOptions
from precis.pipelines.summary_rows import (
    ScoringModels,
    SourceDocument,
    draft_rows,
    has_fewer_words,
)
from precis.pipelines.summary_settings import SummarySettings
from precis.pipelines.window_summarizer import WindowSummarizer

pytestmark = pytest.mark.usefixtures("one_time")
READ_COLUMNS = (
    "source_tokens",
    "seen_tokens",
    "truncated",
    "abstractive_summary",
    "abstractive",
    "abstractive_quality",
)


@pytest.fixture(scope="module")
def gated(flags, tmp_path_factory):
    """A run with a fallback and with documents that are their own summary."""
    folder = tmp_path_factory.mktemp("gated") / "run"
    gate = {
        "min_source_words": 12,
        "fallback": "extractive",
        "fallback_flags": "too_short,unsupported_name,truncated_source",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        assert precis("summarize", output=folder, **{**flags, **gate}) == 0
    return folder


def test_qualities_are_those_of_the_texts_of_the_row(undisturbed):
    """From the article that was written and the texts that came back; the measures
    themselves have tests of their own.
    """
    for row, line in zip(rows_of(undisturbed), WRITTEN, strict=True):
        source = read_source(Article.from_text(line["article"]))
        assert (
            row["extractive_quality"]
            == measure(row["extractive_summary"], source, QualityConfig())._asdict()
        )
        found = row["abstractive_quality"]
        log_prob, margin = found.pop("mean_log_prob"), found.pop("beam_margin")
        expected = measure(
            row["abstractive_summary"],
            source,
            QualityConfig(),
            mean_log_prob=log_prob,
            is_truncated=row["truncated"],
        )
        assert found == expected._asdict() and log_prob < 0 and margin > 0
        if len(row["abstractive"]) == 2:
            assert (
                margin
                <= row["abstractive"][0]["score"]
                - row["abstractive"][1]["score"]
                + 1e-6
            )


def test_an_extractive_summary_copies_and_is_not_flagged(undisturbed):
    for row in rows_of(undisturbed):
        if row["article_words"] >= 3:
            quality = row["extractive_quality"]
            assert (
                quality["coverage"] == 1.0
                and quality["flags"] == []
                and quality["novel_1grams_percent"] == 0.0
            )
            assert quality["words"] == len(words(row["extractive_summary"]))


def test_a_document_that_is_short_is_its_own_summary_and_no_network_reads_it(gated):
    rows = {row["document_id"]: row for row in rows_of(gated)}
    short = [id_of(line) for line in WRITTEN if len(words(line["article"])) < 12]
    assert len(short) >= 8 and rows["short"]["article_words"] == 12
    for name, row in rows.items():
        is_short = name in short
        assert (row["summary_method"] == "source") == is_short and (
            "short_source" in row["quality_flags"]
        ) == is_short
        assert all((row[column] is None) == is_short for column in READ_COLUMNS)
        assert row["model_id"] is not None and row["extractive_quality"] is not None
    assert rows["03 words"]["summary"] == "rain rain rain fell ." and rows["03 words"][
        "quality_flags"
    ] == ["short_source"]
    assert rows["marks"]["summary"] == "?! … --" and rows["marks"]["quality_flags"] == [
        "empty",
        "short_source",
    ]
    assert manifest_of(gated)["search"]["documents"] == len(rows_of(gated)) - len(short)


def test_boilerplate_is_no_part_of_a_short_document(tmp_path):
    corpus = write_jsonl(tmp_path / "c.jsonl", [{"article": "(CNN) -- " + SHORT}])
    assert (
        precis(
            "summarize",
            corpus=corpus,
            output=tmp_path / "out",
            extractive="lead",
            sentences=1,
        )
        == 0
    )
    (row,) = rows_of(tmp_path / "out")
    assert (
        row["summary"]
        == "Rain fell on Monday.\nNobody came, it was cold.\n“Why?” she asked."
        and row["summary_method"] == "source"
    )
    assert row["extractive_summary"] == "Rain fell on Monday."


def test_the_extractive_text_is_shown_where_a_named_flag_is_set(gated):
    held_back = (
        "too_short",
        "unsupported_name",
        "truncated_source",
        "longer_than_source",
    )
    reasons = {}
    methods = {}
    for row in rows_of(gated):
        methods[row["summary_method"]] = methods.get(row["summary_method"], 0) + 1
        if row["abstractive_quality"] is None:
            continue
        found = [
            name for name in row["abstractive_quality"]["flags"] if name in held_back
        ]
        for name in found:
            reasons[name] = reasons.get(name, 0) + 1
        shown = ("frequency", "extractive") if found else ("abstractive", "abstractive")
        assert (row["summary_method"], row["summary"]) == (
            shown[0],
            row[f"{shown[1]}_summary"],
        )
        assert row["quality_flags"] == row[f"{shown[1]}_quality"]["flags"]
    manifest = manifest_of(gated)
    assert manifest["fallbacks"] == reasons and manifest["summary_methods"] == methods
    shown_flags = [name for row in rows_of(gated) for name in row["quality_flags"]]
    assert (
        manifest["quality_flags"]
        == {name: shown_flags.count(name) for name in sorted(set(shown_flags))}
        != {}
    )
    assert (
        set(methods) == {"frequency", "abstractive", "source"}
        and set(reasons) <= set(FLAGS)
        and len(reasons) > 1
    )


def test_without_a_fallback_the_network_is_shown_unless_it_is_longer(undisturbed):
    shown = [
        (
            row["summary_method"],
            "longer_than_source" in row["abstractive_quality"]["flags"],
        )
        for row in rows_of(undisturbed)
    ]
    assert {method for method, is_longer in shown if is_longer} == {"frequency"}
    assert {method for method, is_longer in shown if not is_longer} == {"abstractive"}
    assert set(manifest_of(undisturbed)["fallbacks"]) == {"longer_than_source"}


def test_no_summary_is_longer_than_its_source(undisturbed, gated, extractive):
    for folder in (undisturbed, gated, extractive):
        for row in rows_of(folder):
            assert (
                len(words(row["summary"])) <= row["article_words"]
                and row["summary"] is not None
            )


def test_what_was_shown_is_said_at_the_end(gated, flags, capsys):
    gate = {
        "min_source_words": 12,
        "fallback": "extractive",
        "fallback_flags": "too_short,unsupported_name,truncated_source",
    }
    assert precis("summarize", output=gated, **{**flags, **gate}) == 0
    said_lines = capsys.readouterr().out.splitlines()
    methods, flagged, fallbacks = (
        manifest_of(gated)[name]
        for name in ("summary_methods", "quality_flags", "fallbacks")
    )
    assert (
        "quality flags: "
        + ", ".join(f"{name} {count}" for name, count in flagged.items())
        in said_lines
    )
    assert (
        "summaries: " + ", ".join(f"{name} {count}" for name, count in methods.items())
        in said_lines
    )
    assert (
        "abstractive summaries held back: "
        + ", ".join(f"{name} {count}" for name, count in fallbacks.items())
        in said_lines
    )


@pytest.mark.parametrize("width", [1, 3])
def test_the_margin_is_there_though_one_summary_is_kept(flags, tmp_path, width):
    corpus = write_jsonl(tmp_path / "c.jsonl", [story(0), story(1)])
    other = {
        "corpus": corpus,
        "n_best": 1,
        "beam_width": width,
        "min_mean_log_prob": 0.0,
    }
    assert precis("summarize", output=tmp_path / "out", **{**flags, **other}) == 0
    for row in rows_of(tmp_path / "out"):
        quality = row["abstractive_quality"]
        assert (quality["beam_margin"] is None) == (width == 1) and math.isfinite(
            quality["mean_log_prob"]
        )
        assert "low_confidence" in quality["flags"]


def test_thresholds_reach_the_flags(tmp_path):
    corpus = write_jsonl(tmp_path / "c.jsonl", [story(0)])
    assert (
        precis(
            "summarize", corpus=corpus, output=tmp_path / "out", min_summary_words=1_000
        )
        == 0
    )
    (row,) = rows_of(tmp_path / "out")
    assert row["quality_flags"] == ["too_short"] == row["extractive_quality"]["flags"]


@pytest.fixture(scope="module")
def keyphrase_bundle(tmp_path_factory):
    pairs = [
        (
            [one.text for one in Article.from_text(found.article).sentences],
            found.highlights,
        )
        for found in map(document, range(60))
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
            [one.text for one in Article.from_text(story(0)["article"]).sentences],
            count,
        )
        found = {
            method: [one for one in row["keyphrases"] if one["method"] == method]
            for method in ("classifier", "frequency")
        }
        assert [
            (one["phrase"], one["score"]) for one in found["classifier"]
        ] == expected and len(expected) == count
        texts = [one.text for one in Article.from_text(story(0)["article"]).sentences]
        assert [one["phrase"] for one in found["frequency"]] == frequent_keyphrases(
            texts, count
        )
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
            "is of the kind abstractive, and keyphrases is asked for here; `precis summarize --bundle` takes it",
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
        [[one.text for one in document] for document in documents]
    )
    for row, found, own in zip(
        rows_of(tmp_path / "out"), documents, scores, strict=True
    ):
        chosen = [one for one in row["extractive"] if one["method"] == "neural"]
        best = sorted(np.argsort(-own, kind="stable")[:3].tolist())
        assert [one["start"] for one in chosen] == [
            found[place].start for place in best
        ]
        assert [one["score"] for one in chosen] == pytest.approx(
            [own[place] for place in best], rel=1e-5
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
        GateConfig(),
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
        match="copy holds model [0-9a-f]{16} now, and this job began with .*; put that model back",
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
    assert "oracle" in {one["method"] for one in first["extractive"]}
    assert {one["method"] for one in second["extractive"]} == {"lead"}
    assert (
        precis(
            "summarize", corpus=corpus, output=tmp_path / "only", extractive="oracle"
        )
        == 0
    )
    first, second = rows_of(tmp_path / "only")
    assert first["summary_method"] == "oracle" and first["quality_flags"] == []
    assert (second["summary"], second["quality_flags"]) == ("", ["empty"])


def test_words_are_counted_only_as_far_as_needed():
    assert (
        has_fewer_words("one two", 3)
        and not has_fewer_words("one two three", 3)
        and not has_fewer_words("", 0)
    )
    assert not has_fewer_words("a" * 500 + " b c", 3) and has_fewer_words(
        "a" * 500 + " b", 3
    )


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
