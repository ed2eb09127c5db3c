"""`precis summarize` with a network: its summaries, the tokens it reads, the processes
that search, and the cost of the search.
"""

import multiprocessing

import pytest
from support.command_line import precis, results, write_jsonl
from support.summarize_runs import (
    MAX_SOURCE_TOKENS,
    SHORT,
    WRITTEN,
    id_of,
    manifest_of,
    rows_of,
)

from precis.model.errors import DataError
from precis.model.extractive.config import SelectionConfig
from precis.model.inference.worker_pool import SearchPool
from precis.model.quality.fallback import FallbackConfig
from precis.model.quality.flags import QualityConfig
from precis.model.search.config import SearchConfig
from precis.model.text.article import Article
from precis.pipelines.beam_runner import pipeline_options
from precis.pipelines.options.summarize import SummarizeOptions
from precis.pipelines.summary_settings import SummarySettings, limit_search_processes
from precis.pipelines.window_summarizer import WindowSummarizer, one_ahead

pytestmark = pytest.mark.usefixtures("one_time")


def without_scores(folder):
    """The rows of a run; scores of other processes may differ in the last digit."""
    ignored = {"abstractive": None, "abstractive_quality": None}
    return [{**row, **ignored} for row in rows_of(folder)]


def summarize(output, **flags):
    """Runs the command and returns the folder of its run."""
    assert precis("summarize", output=output, **flags) == 0
    return output


@pytest.mark.slow
def test_worker_processes_of_beam_change_nothing(undisturbed, flags, tmp_path):
    beam = {"direct_num_workers": 2, "direct_running_mode": "multi_processing"}
    run = summarize(tmp_path / "processes", **flags, **beam)
    assert results(run) == results(undisturbed)


def test_a_worker_refuses_a_bundle_that_was_replaced(bundle, tmp_path):
    options = SummarizeOptions(output=str(tmp_path), bundle=str(bundle))
    concerns = (
        options,
        SelectionConfig(),
        QualityConfig(),
        FallbackConfig(),
        SearchConfig(),
    )
    worker = WindowSummarizer(
        SummarySettings(*concerns, {"model_id": "0" * 16, "decode_id": "d"})
    )
    with pytest.raises(
        DataError,
        match="holds model [0-9a-f]{16} now, and this job began with "
        "0000000000000000; put that model back",
    ):
        worker.load()


def test_the_manifest_and_the_last_line_state_the_cost_of_the_search(
    undisturbed, extractive, flags, capsys
):
    rows = rows_of(undisturbed)
    search = manifest_of(undisturbed)["search"]
    source_tokens = sum(row["seen_tokens"] for row in rows)
    assert search["documents"] == len(rows)
    assert search["source_tokens"] == source_tokens
    # Lengths are padded to 16, 32 or 40, so to less than twice the tokens of these
    # documents.
    assert source_tokens < search["padded_tokens"] < 2 * source_tokens
    padding_share = 1 - source_tokens / search["padded_tokens"]
    assert search["padding_share"] == round(padding_share, 4)
    assert len(rows) <= search["summary_tokens"] <= 8 * len(rows)
    assert search["wall_seconds"] > 0
    assert search["process_seconds"] == pytest.approx(search["wall_seconds"], abs=0.01)
    summarize(undisturbed, **flags)
    lines = capsys.readouterr().out.splitlines()
    (line,) = [line for line in lines if line.startswith("search: ")]
    start = f"search: {len(rows)} documents, {source_tokens} source tokens ("
    assert line.startswith(start)
    assert line.endswith(" tokens/s")
    assert manifest_of(extractive)["search"] is None


@pytest.mark.slow
def test_search_processes_change_no_summary_and_are_gone_afterwards(
    undisturbed, flags, tmp_path, monkeypatch
):
    monkeypatch.setattr("precis.model.inference.bulk_summarizer.POOL_BATCHES", 1)
    submitted = []
    submit = SearchPool.submit

    def count_and_submit(pool, sources):
        submitted.append(sources)
        return submit(pool, sources)

    def fail(pool, future):
        raise DataError("the search failed")

    monkeypatch.setattr(SearchPool, "submit", count_and_submit)
    run = summarize(tmp_path / "pool", search_processes=2, **flags)
    assert without_scores(run) == without_scores(undisturbed)
    assert len(submitted) >= 4
    assert multiprocessing.active_children() == []
    monkeypatch.setattr(SearchPool, "result", fail)
    failing = {"output": tmp_path / "fails", "search_processes": 2, **flags}
    assert precis("summarize", **failing) == 1
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_workers_of_beam_may_have_search_processes(bundle, tmp_path):
    flags = {
        "corpus": "sample:300",  # five batches
        "bundle": bundle,
        "max_summary_tokens": 4,
    }
    beam = {"direct_num_workers": 2, "direct_running_mode": "multi_processing"}
    here = summarize(tmp_path / "here", search_processes=1, **flags)
    workers = summarize(tmp_path / "workers", search_processes=2, **flags, **beam)
    assert without_scores(here) == without_scores(workers)
    assert len(rows_of(here)) == 300


def test_at_most_two_windows_are_searched_at_the_same_time():
    begun = []

    def windows():
        for number in range(4):
            begun.append(number)
            yield number

    last_begun_and_finished = [[begun[-1], number] for number in one_ahead(windows())]
    assert last_begun_and_finished == [[1, 0], [2, 1], [3, 2], [3, 3]]
    assert list(one_ahead([])) == []


@pytest.mark.parametrize(
    ("argv", "asked", "expected"),
    [
        ([], 0, 0),
        (["--runner", "DirectRunner"], 0, 0),
        (
            ["--direct_running_mode", "multi_threading", "--direct_num_workers", "2"],
            0,
            0,
        ),
        (["--direct_running_mode", "multi_processing"], 0, 1),
        (["--direct_running_mode", "multi_processing"], 3, 3),
        (["--runner", "DataflowRunner"], 0, 1),
    ],
)
def test_one_of_several_workers_searches_in_one_process_unless_asked(
    argv, asked, expected
):
    options = SummarizeOptions(output="o", search_processes=asked)
    options = limit_search_processes(options, pipeline_options(argv))
    assert options.search_processes == expected


def scores_of(row):
    return [summary["score"] for summary in row["abstractive"]]


def texts_of(row):
    return [summary["text"] for summary in row["abstractive"]]


def test_another_precision_has_another_decode_id(flags, undisturbed, tmp_path):
    rounded = summarize(tmp_path / "out", precision="mixed_bfloat16", **flags)
    manifest = manifest_of(rounded)
    before = manifest_of(undisturbed)
    assert manifest["decode_id"] != before["decode_id"]
    assert manifest["model_id"] == before["model_id"]
    assert list(map(scores_of, rows_of(rounded))) != list(
        map(scores_of, rows_of(undisturbed))
    )
    assert precis("summarize", output=rounded, **flags) == 2


def test_a_document_alone_has_the_summaries_it_has_among_others(
    undisturbed, flags, tmp_path
):
    together = {row["document_id"]: row for row in rows_of(undisturbed)}
    for number, line in enumerate((WRITTEN[5], WRITTEN[-4])):
        corpus = write_jsonl(tmp_path / f"{number}.jsonl", [line])
        run = summarize(tmp_path / f"{number}", **{**flags, "corpus": corpus})
        (alone,) = rows_of(run)
        row = together[id_of(line)]
        assert texts_of(alone) == texts_of(row)
        assert scores_of(alone) == pytest.approx(scores_of(row), rel=1e-4)


def test_search_flags_reach_the_search(undisturbed, flags, tmp_path):
    changes = {"n_best": 1, "max_summary_tokens": 3, "length_penalty": 0.0}
    summarize(tmp_path, **{**flags, **changes})
    rows = rows_of(tmp_path)
    assert {len(row["abstractive"]) for row in rows} == {1}
    manifest = manifest_of(tmp_path)
    before = manifest_of(undisturbed)
    tokens = manifest["search"]["summary_tokens"]
    assert tokens <= 3 * len(rows) < before["search"]["summary_tokens"]
    assert manifest["model_id"] == before["model_id"]
    assert manifest["decode_id"] != before["decode_id"]
    assert manifest["run_id"] != before["run_id"]


def test_summaries_come_best_first(undisturbed):
    rows = rows_of(undisturbed)
    for row in rows:
        summaries = row["abstractive"]
        ranks = [summary["rank"] for summary in summaries]
        assert ranks == list(range(1, len(summaries) + 1))
        assert row["abstractive_summary"] == summaries[0]["text"]
        assert scores_of(row) == sorted(scores_of(row), reverse=True)
        assert scores_of(row)[0] < 0
        assert len(set(texts_of(row))) == len(summaries)
    assert max(len(row["abstractive"]) for row in rows) == 2


def test_a_row_states_how_many_tokens_the_network_read(undisturbed, tokenizer):
    rows = {row["document_id"]: row for row in rows_of(undisturbed)}
    for line in WRITTEN:
        row = rows[id_of(line)]
        (ids,) = tokenizer.encode([Article.from_text(line["article"]).body])
        assert row["source_tokens"] == len(ids)
        assert row["seen_tokens"] == min(len(ids), MAX_SOURCE_TOKENS)
        assert row["truncated"] is (len(ids) > MAX_SOURCE_TOKENS)
    # The credit line before the story is not read.
    with_credit = Article.from_text("(CNN) -- " + SHORT).content_sha256
    assert rows[with_credit]["source_tokens"] == rows["short"]["source_tokens"]
    assert {row["truncated"] for row in rows.values()} == {False, True}


def test_a_document_of_just_the_networks_length_is_not_truncated(
    tokenizer, bundle, tmp_path
):
    pieces = len(tokenizer.encode(["rain"])[0])
    words = " ".join(["rain"] * (MAX_SOURCE_TOKENS // pieces))
    text = words + "." * (MAX_SOURCE_TOKENS % pieces)
    assert len(tokenizer.encode([text])[0]) == MAX_SOURCE_TOKENS
    lines = [{"article": text}, {"article": text + "."}]
    flags = {
        "corpus": write_jsonl(tmp_path / "c.jsonl", lines),
        "bundle": bundle,
        "beam_width": 1,
        "min_source_words": 0,
    }
    rows = rows_of(summarize(tmp_path / "out", **flags))
    assert [row["truncated"] for row in rows] == [False, True]
    assert [row["seen_tokens"] for row in rows] == [MAX_SOURCE_TOKENS] * 2
