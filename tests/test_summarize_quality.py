"""Tests of `precis summarize`: quality, the text to show, and short documents."""

import math

import pytest
from support.command_line import precis, write_jsonl
from support.summarize_runs import SHORT, WRITTEN, id_of, manifest_of, rows_of, story

from precis.model.quality.flags import FLAGS, QualityConfig
from precis.model.quality.measures import measure, read_source
from precis.model.text.article import Article
from precis.model.text.words import words
from precis.pipelines.summary_rows import (
    has_fewer_words,
)

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
        quality = row["abstractive_quality"]
        log_prob, margin = quality.pop("mean_log_prob"), quality.pop("beam_margin")
        expected = measure(
            row["abstractive_summary"],
            source,
            QualityConfig(),
            mean_log_prob=log_prob,
            is_truncated=row["truncated"],
        )
        assert quality == expected._asdict() and log_prob < 0 and margin > 0
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
    assert rows["marks"]["summary"] == "?! … --"
    assert rows["marks"]["quality_flags"] == ["empty", "short_source"]
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
    fallback_flag_names = (
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
        flags = [
            name
            for name in row["abstractive_quality"]["flags"]
            if name in fallback_flag_names
        ]
        for name in flags:
            reasons[name] = reasons.get(name, 0) + 1
        method_and_column = (
            ("frequency", "extractive") if flags else ("abstractive", "abstractive")
        )
        assert (row["summary_method"], row["summary"]) == (
            method_and_column[0],
            row[f"{method_and_column[1]}_summary"],
        )
        assert row["quality_flags"] == row[f"{method_and_column[1]}_quality"]["flags"]
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
    shown_and_longer = [
        (
            row["summary_method"],
            "longer_than_source" in row["abstractive_quality"]["flags"],
        )
        for row in rows_of(undisturbed)
    ]
    assert {method for method, is_longer in shown_and_longer if is_longer} == {
        "frequency"
    }
    assert {method for method, is_longer in shown_and_longer if not is_longer} == {
        "abstractive"
    }
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


def test_words_are_counted_only_as_far_as_needed():
    assert (
        has_fewer_words("one two", 3)
        and not has_fewer_words("one two three", 3)
        and not has_fewer_words("", 0)
    )
    assert not has_fewer_words("a" * 500 + " b c", 3) and has_fewer_words(
        "a" * 500 + " b", 3
    )
