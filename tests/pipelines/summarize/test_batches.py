"""Tests of summaries whose requests a server answers in batches."""

import pytest
from support.batch_server import BatchServer
from support.command_line import exit_code, precis, write_jsonl
from support.summarize_runs import manifest_of, rows_of

LONG = {"text": "This story " + "goes on and on and " * 5 + "ends."}


@pytest.fixture
def flags(tmp_path):
    """Ten stories in three tasks, and a run of them."""
    rain = "Rain fell on the coast all day. " * 5
    records = [
        {"id": f"d{n}", "article": f"Story {n} begins. {rain}"} for n in range(10)
    ]
    corpus = write_jsonl(tmp_path / "stories.jsonl", records)
    flags = {"corpus": corpus, "output": tmp_path / "run", "request_timeout": 1.0}
    return {**flags, "max_words": 9, "sentences": 1, "task_bytes": 800}


def test_a_command_asks_in_batches_until_every_document_has_an_answer(
    flags, tmp_path, capfd
):
    faults = {
        **{
            1: [LONG, {"text": "So it goes."}],
            2: [500, 503],
            3: ["expired", "missing"],
        },
        **{4: [400], 5: [500, 500, 500], 6: [LONG, 500]},
    }
    calls = {"POST files": [429, 429], "POST batches": ["cut"], "GET batches": [503]}
    server = BatchServer(faults, calls=calls, statuses=("completed", "expired"))
    with server.serve() as bundle:
        assert precis("summarize", bundle=bundle, max_failed_share=0.3, **flags) == 0
    said = capfd.readouterr()
    rows = {row["document_id"]: row for row in rows_of(tmp_path / "run")}
    assert {*rows} == {f"d{n}" for n in (0, 1, 2, 3, 6, 7, 8, 9)}
    assert server.asked == {
        **dict.fromkeys((0, 4, 7, 8, 9), 1),
        **{1: 2, 2: 3, 3: 3, 5: 3, 6: 3},
    }
    assert rows["d1"]["summary"] == "So it goes."
    assert rows["d1"]["written_tokens"] == 10 and rows["d1"]["prompt_tokens"] == 80
    manifest = manifest_of(tmp_path / "run")
    assert manifest["bundle"] == bundle and manifest["batches"] == [*server.batches]
    assert manifest["failures"] == {"search/http_500": 1, "search/refused": 1}
    assert " is expired; its requests without an answer are submitted" in said.err
    assert exit_code("verify", str(tmp_path / "run")) == 0
    assert not [*tmp_path.rglob("*batches*")]
