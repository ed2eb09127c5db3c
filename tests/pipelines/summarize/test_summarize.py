"""Tests of `precis summarize`: what the rows of three whole runs say, and that order
and number hold.
"""

import shutil
from collections import Counter

import pytest
from support.command_line import precis
from support.shared_networks import eagerly
from support.summarize_runs import WRITTEN, id_of, manifest_of, rows_of

from precis.model.errors import UsageError
from precis.model.quality.measures import measure, read_source
from precis.model.text.article import Article
from precis.model.text.words import words
from precis.pipelines.engines.beam_runner import pipeline_options
from precis.pipelines.summarize.summarize import summarize, with_search_processes
from precis.pipelines.summarize.summary_settings import read_settings

READ_COLUMNS = """
    source_tokens seen_tokens seen_ratio chunks abstractive_method truncated
    abstractive_summary abstractive abstractive_quality prompt_tokens written_tokens
""".split()
NETWORK_COLUMNS = (*READ_COLUMNS, "model_id", "decode_id")
# What is shown depends on whether there is an abstractive summary.
SHOWN_COLUMNS = ("summary", "summary_method", "quality_flags")
HELD_BACK = "too_short,unsupported_name,truncated_source"
GATE = {"min_source_words": 12, "fallback": "extractive", "fallback_flags": HELD_BACK}


@pytest.fixture(scope="module")
def gated(flags, tmp_path_factory):
    """A run with a fallback, short documents, and another search."""
    folder = tmp_path_factory.mktemp("gated") / "run"
    search = {"n_best": 1, "max_summary_tokens": 3, "length_penalty": 0.0}
    with eagerly():  # Three steps do not pay for a graph.
        summarize(output=folder, **{**flags, **GATE, **search})
    return folder


def test_without_a_bundle_the_columns_of_the_network_are_null(extractive, undisturbed):
    for row, network in zip(rows_of(extractive), rows_of(undisturbed), strict=True):
        assert all(row[name] is None for name in NETWORK_COLUMNS)
        assert all(network[name] is not None for name in NETWORK_COLUMNS)
        # Without a network the built-in selector chooses.
        other = {name for name in row if name.startswith("extractive")}
        other |= {"other_quality", "expected_rouge2", "run_id", "settings_id"}
        same = set(row) - {*NETWORK_COLUMNS, *SHOWN_COLUMNS, *other}
        assert all(row[name] == network[name] for name in same)
    manifest = manifest_of(extractive)
    assert all(manifest[name] is None for name in ("bundle", "model_id", "decode_id"))
    assert manifest["counts"]["truncated"] == 0 and manifest["search"] is None


def test_search_flags_reach_the_search(undisturbed, gated):
    """Three tokens at most, and one summary of a document."""
    written = [row for row in rows_of(gated) if row["abstractive"]]
    assert {len(row["abstractive"]) for row in written} == {1}
    manifest, before = manifest_of(gated), manifest_of(undisturbed)
    assert manifest["search"]["summary_tokens"] <= 3 * len(written)
    assert before["search"]["summary_tokens"] > 3 * len(rows_of(undisturbed))
    assert manifest["decode_id"] != before["decode_id"]
    # The margin is there though one summary is kept.
    margins = [row["abstractive_quality"]["beam_margin"] for row in written]
    assert all(margin > 0 for margin in margins)


@pytest.mark.usefixtures("one_time")
def test_a_finished_run_is_left_alone_and_says_what_it_made(
    undisturbed, flags, tmp_path, capsys
):
    undisturbed = shutil.copytree(undisturbed, tmp_path / "run")
    before = {path: path.stat().st_mtime_ns for path in undisturbed.rglob("*")}
    assert precis("summarize", output=undisturbed, **flags) == 0
    assert {path: path.stat().st_mtime_ns for path in undisturbed.rglob("*")} == before
    printed, manifest = capsys.readouterr(), manifest_of(undisturbed)
    said = printed.out.splitlines()
    assert any(f"written {len(WRITTEN) - 1}" in line for line in said)
    for start, name in (
        (f"rows: {len(WRITTEN)}; ", "summary_methods"),
        ("quality flags: ", "quality_flags"),
        ("abstractive summaries not shown: ", "fallbacks"),
    ):
        counts = ", ".join(f"{key} {count}" for key, count in manifest[name].items())
        assert start + counts in said
    new = [row for row in rows_of(undisturbed) if row["duplicate_of"] is None]
    tokens = sum(row["seen_tokens"] for row in new)
    search = f"search: {len(new)} documents, {len(new)} passages, {tokens} source tok"
    assert any(line.startswith(search) for line in said)
    with pytest.raises(UsageError, match="holds a finished result with other settings"):
        summarize(output=undisturbed, **{**flags, "n_best": 1})


def test_one_of_several_workers_searches_in_one_process_unless_asked():
    elsewhere = ["--runner", "DataflowRunner"]
    for argv, asked, expected in (([], 0, 0), (elsewhere, 0, 1), (elsewhere, 3, 3)):
        settings = read_settings({"search_processes": asked})
        settings = with_search_processes(settings, pipeline_options(argv))
        assert settings.options.search_processes == expected


# --- Quality, and the text to show.


def test_qualities_are_those_of_the_texts_of_the_row(undisturbed):
    """From the article that was written and the texts that came back; the measures
    themselves have tests of their own.
    """
    for row, line in zip(rows_of(undisturbed), WRITTEN, strict=True):
        source = read_source(Article.from_text(line["article"]))
        expected = measure(row["extractive_summary"], source)
        assert row["extractive_quality"] == expected._asdict()
        if row["article_words"] >= 3:  # it copies
            assert expected.coverage == 1.0
            assert set(expected.flags) <= {"barely_shorter", "repeated"}
        quality = row["abstractive_quality"]
        log_prob, margin = quality.pop("mean_log_prob"), quality.pop("beam_margin")
        assert quality.pop("support_score") is row["support_score"] is None
        assert quality.pop("line_confidence") is row["expected_rouge2"] is None
        searched = {"unfinished": "unfinished" in quality["flags"]}
        searched["truncated_source"] = row["truncated"]
        searched["low_confidence"] = log_prob < -2
        expected = measure(row["abstractive_summary"], source, **searched)
        assert quality == expected._asdict() and log_prob < 0
        first, *others = [summary["score"] for summary in row["abstractive"]]
        assert 0 <= margin  # rounded
        assert not others or margin <= first - others[0] + 1e-3 * abs(first)


def test_a_document_that_is_short_is_its_own_summary_and_no_network_reads_it(gated):
    rows = {row["document_id"]: row for row in rows_of(gated)}
    short = [id_of(line) for line in WRITTEN if len(words(line["article"])) < 12]
    assert len(short) >= 8 and rows["short"]["article_words"] == 12
    for name, row in rows.items():
        is_short = name in short
        assert (row["summary_method"] == "source") == is_short
        assert ("short_source" in row["quality_flags"]) == is_short
        assert all((row[column] is None) == is_short for column in READ_COLUMNS)
        assert row["model_id"] is not None and row["extractive_quality"] is not None
    assert rows["03 words"]["summary"] == "rain rain rain fell ."
    assert rows["03 words"]["quality_flags"] == ["short_source"]
    read = len(rows_of(gated)) - len(short) - 1
    assert manifest_of(gated)["search"]["documents"] == read


def test_the_manifest_counts_what_is_shown_and_what_was_held_back(gated):
    held_back_for = {*HELD_BACK.split(","), "longer_than_source"}
    reasons, methods, shown_flags = Counter(), Counter(), Counter()
    for row in rows_of(gated):
        methods[row["summary_method"]] += 1
        shown_flags.update(row["quality_flags"])
        if row["abstractive_quality"] is not None:
            flags = held_back_for & {*row["abstractive_quality"]["flags"]}
            reasons.update(flags)
            assert row["summary_method"] == ("frequency" if flags else "abstractive")
    manifest = manifest_of(gated)
    assert manifest["fallbacks"] == reasons and manifest["summary_methods"] == methods
    assert manifest["quality_flags"] == shown_flags != {}
    assert {"frequency", "source"} <= set(methods) and len(reasons) > 1
