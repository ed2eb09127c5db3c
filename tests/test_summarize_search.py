"""Tests of `precis summarize` with a network: candidates, what it read, processes that
search, and what that cost.
"""

import multiprocessing

import pytest
from command_line import precis, results, write_jsonl
from summarize_runs import (
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
from precis.model.quality.fallback import GateConfig
from precis.model.quality.flags import QualityConfig
from precis.model.search.config import SearchConfig
from precis.model.text.article import Article
from precis.pipelines.beam_runner import pipeline_options
from precis.pipelines.corpus.source import CorpusOptions
from precis.pipelines.options import SummarizeOptions
from precis.pipelines.summarize import _without_processes_of_workers
from precis.pipelines.summarize_task import SummarizeTask, _one_ahead
from precis.pipelines.summary_rows import Settings

pytestmark = pytest.mark.usefixtures("one_time")


@pytest.mark.slow
def test_processes_change_nothing(undisturbed, flags, tmp_path):
    beam = {"direct_num_workers": 2, "direct_running_mode": "multi_processing"}
    assert precis("summarize", output=tmp_path / "processes", **flags, **beam) == 0
    assert results(tmp_path / "processes") == results(undisturbed)


def test_rows_never_name_a_model_that_did_not_write_them(flags, bundle, tmp_path):
    options = SummarizeOptions(output=str(tmp_path), bundle=str(bundle))
    concerns = (
        CorpusOptions(corpus=flags["corpus"]),
        options,
        SelectionConfig(),
        QualityConfig(),
        GateConfig(),
        SearchConfig(),
    )
    worker = SummarizeTask(
        Settings(*concerns, {"model_id": "0" * 16, "decode_id": "d"}), job=None
    )
    with pytest.raises(
        DataError,
        match="holds model [0-9a-f]{16} now, and this job began with 0000000000000000; put that model back",
    ):
        worker.setup()


def test_the_run_says_what_the_search_cost(undisturbed, extractive, flags, capsys):
    rows, search = rows_of(undisturbed), manifest_of(undisturbed)["search"]
    seen = sum(row["seen_tokens"] for row in rows)
    assert (search["documents"], search["source_tokens"]) == (len(rows), seen)
    # Lengths are padded to 16, 32 or 40, so to less than twice the tokens of these
    # documents.
    assert seen < search["padded_tokens"] < 2 * seen and search[
        "padding_share"
    ] == round(1 - seen / search["padded_tokens"], 4)
    assert len(rows) <= search["summary_tokens"] <= 8 * len(rows)
    assert (
        search["process_seconds"] == pytest.approx(search["wall_seconds"], abs=0.01)
        and search["wall_seconds"] > 0
    )
    assert precis("summarize", output=undisturbed, **flags) == 0
    (line,) = [
        line
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("search: ")
    ]
    assert line.startswith(
        f"search: {len(rows)} documents, {seen} source tokens ("
    ) and line.endswith(" tokens/s")
    assert manifest_of(extractive)["search"] is None


@pytest.mark.slow
def test_search_processes_change_no_summary_and_are_gone_afterwards(
    undisturbed, flags, tmp_path, monkeypatch
):
    monkeypatch.setattr("precis.model.inference.bulk.POOL_BATCHES", 1)
    begun = []
    monkeypatch.setattr(
        SearchPool,
        "submit",
        lambda pool, sources, submit=SearchPool.submit: (
            begun.append(1) or submit(pool, sources)
        ),
    )
    assert (
        precis("summarize", output=tmp_path / "pool", search_processes=2, **flags) == 0
    )
    ignored = {
        "abstractive": None,
        "abstractive_quality": None,
    }  # scores may differ in the last digit
    assert [{**row, **ignored} for row in rows_of(tmp_path / "pool")] == [
        {**row, **ignored} for row in rows_of(undisturbed)
    ]
    assert len(begun) >= 4 and multiprocessing.active_children() == []
    with monkeypatch.context() as patch:
        patch.setattr(
            SearchPool,
            "result",
            lambda *_: (_ for _ in ()).throw(DataError("the search failed")),
        )
        assert (
            precis("summarize", output=tmp_path / "fails", search_processes=2, **flags)
            == 1
        )
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_workers_of_beam_may_have_search_processes(bundle, tmp_path):
    flags = {
        "corpus": "sample:300",
        "bundle": bundle,
        "max_summary_tokens": 4,
    }  # five batches
    beam = {"direct_num_workers": 2, "direct_running_mode": "multi_processing"}
    assert (
        precis("summarize", output=tmp_path / "here", search_processes=1, **flags) == 0
    )
    assert (
        precis(
            "summarize",
            output=tmp_path / "workers",
            search_processes=2,
            **flags,
            **beam,
        )
        == 0
    )
    ignored = {
        "abstractive": None,
        "abstractive_quality": None,
    }  # scores may differ in the last digit
    here, workers = (
        [{**row, **ignored} for row in rows_of(tmp_path / name)]
        for name in ("here", "workers")
    )
    assert here == workers and len(here) == 300


def test_two_windows_at_most_are_on_their_way():
    made, open_windows = [], []

    def windows():
        for number in range(4):
            made.append(number)
            yield number

    for number in _one_ahead(windows()):
        open_windows.append([made[-1], number])
    assert (
        open_windows == [[1, 0], [2, 1], [3, 2], [3, 3]] and list(_one_ahead([])) == []
    )


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
def test_workers_that_are_many_search_in_one_process_each_unless_asked(
    argv, asked, expected
):
    options = SummarizeOptions(output="o", search_processes=asked)
    assert (
        _without_processes_of_workers(options, pipeline_options(argv)).search_processes
        == expected
    )


def test_the_precision_is_told_by_the_decode_id(flags, undisturbed, tmp_path):
    assert (
        precis(
            "summarize", output=tmp_path / "out", precision="mixed_bfloat16", **flags
        )
        == 0
    )
    found, before = manifest_of(tmp_path / "out"), manifest_of(undisturbed)
    assert (
        found["decode_id"] != before["decode_id"]
        and found["model_id"] == before["model_id"]
    )
    scores = [
        [[item["score"] for item in row["abstractive"]] for row in rows_of(folder)]
        for folder in (tmp_path / "out", undisturbed)
    ]
    assert scores[0] != scores[1]
    assert precis("summarize", output=tmp_path / "out", **flags) == 2


def test_neighbours_change_nothing(undisturbed, flags, tmp_path):
    together = {row["document_id"]: row for row in rows_of(undisturbed)}
    for number, line in enumerate((WRITTEN[5], WRITTEN[-4])):
        corpus = write_jsonl(tmp_path / f"{number}.jsonl", [line])
        assert (
            precis(
                "summarize",
                output=tmp_path / f"{number}",
                **{**flags, "corpus": corpus},
            )
            == 0
        )
        (alone,) = rows_of(tmp_path / f"{number}")
        row = together[id_of(line)]
        assert [item["text"] for item in alone["abstractive"]] == [
            item["text"] for item in row["abstractive"]
        ]
        assert [item["score"] for item in alone["abstractive"]] == pytest.approx(
            [item["score"] for item in row["abstractive"]], rel=1e-4
        )


def test_search_flags_reach_the_search(undisturbed, flags, tmp_path):
    other = {**flags, "n_best": 1, "max_summary_tokens": 3, "length_penalty": 0.0}
    assert precis("summarize", output=tmp_path, **other) == 0
    found = rows_of(tmp_path)
    assert {len(row["abstractive"]) for row in found} == {1}
    written = [
        manifest_of(folder)["search"]["summary_tokens"]
        for folder in (tmp_path, undisturbed)
    ]
    assert written[0] <= 3 * len(found) < written[1]
    ids = [
        {
            name: manifest_of(folder)[name]
            for name in ("model_id", "decode_id", "run_id")
        }
        for folder in (undisturbed, tmp_path)
    ]
    assert ids[0]["model_id"] == ids[1]["model_id"]
    assert (
        ids[0]["decode_id"] != ids[1]["decode_id"]
        and ids[0]["run_id"] != ids[1]["run_id"]
    )


def test_candidates_come_best_first(undisturbed):
    lists = [row["abstractive"] for row in rows_of(undisturbed)]
    for row, candidates in zip(rows_of(undisturbed), lists, strict=True):
        assert [item["rank"] for item in candidates] == list(
            range(1, len(candidates) + 1)
        )
        assert row["abstractive_summary"] == candidates[0]["text"]
        assert sorted((item["score"] for item in candidates), reverse=True) == [
            item["score"] for item in candidates
        ]
        assert (
            len({item["text"] for item in candidates}) == len(candidates)
            and candidates[0]["score"] < 0
        )
    assert max(map(len, lists)) == 2


def test_what_the_network_did_not_see_is_told(undisturbed, tokenizer):
    rows = {row["document_id"]: row for row in rows_of(undisturbed)}
    for line in WRITTEN:
        row, length = (
            rows[id_of(line)],
            len(tokenizer.encode([Article.from_text(line["article"]).body])[0]),
        )
        assert (row["source_tokens"], row["seen_tokens"]) == (
            length,
            min(length, MAX_SOURCE_TOKENS),
        )
        assert row["truncated"] is (length > MAX_SOURCE_TOKENS)
    # The credit line before the story is not read.
    assert (
        rows[Article.from_text("(CNN) -- " + SHORT).content_sha256]["source_tokens"]
        == rows["short"]["source_tokens"]
    )
    assert {row["truncated"] for row in rows.values()} == {False, True}


def test_a_document_of_just_the_networks_length_is_not_truncated(
    tokenizer, bundle, tmp_path
):
    pieces = len(tokenizer.encode(["rain"])[0])
    text = " ".join(["rain"] * (MAX_SOURCE_TOKENS // pieces)) + "." * (
        MAX_SOURCE_TOKENS % pieces
    )
    assert len(tokenizer.encode([text])[0]) == MAX_SOURCE_TOKENS
    lines = [{"article": text}, {"article": text + "."}]
    flags = {
        "corpus": write_jsonl(tmp_path / "c.jsonl", lines),
        "bundle": bundle,
        "beam_width": 1,
        "min_source_words": 0,
    }
    assert precis("summarize", output=tmp_path / "out", **flags) == 0
    assert [row["truncated"] for row in rows_of(tmp_path / "out")] == [False, True]
    assert [row["seen_tokens"] for row in rows_of(tmp_path / "out")] == [
        MAX_SOURCE_TOKENS
    ] * 2
