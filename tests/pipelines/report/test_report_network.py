"""The report about a run of a network, by commands: order, search cost, flat and
partitioned files.
"""

from pathlib import Path

import pytest
from support.command_line import exit_code
from support.command_line import precis as command
from support.report_runs import documents_of

pytestmark = pytest.mark.slow

PREPARE = {"vocabulary_size": 1500, "max_source_tokens": 512, "max_target_tokens": 32}
TRAIN = {
    **{"network": "tiny", "width": 16, "heads": 2, "feed_forward": 32, "steps": 4},
    **{"batch_tokens": 2048, "warmup_steps": 4, "validation_documents": 4},
}
SUMMARIZE = {
    **{"corpus": "sample:200", "split": "validation", "extractive": "lead,frequency"},
    **{"beam_width": 2, "n_best": 2, "max_summary_tokens": 12, "min_summary_tokens": 6},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("network")
    bundle = folder / "bundle"
    records = {"corpus": "sample:200", "output": folder / "records"}
    assert command("prepare", **records, **PREPARE) == 0
    assert command("train", records=folder / "records", output=bundle, **TRAIN) == 0
    nested = {**SUMMARIZE, "bundle": bundle, "output": folder / "nested"}
    flat = {**nested, "output": folder / "flat", "partition_by": "split", "flat": True}
    assert command("summarize", **nested) == 0
    assert command("summarize", **flat, length_penalty=0.5) == 0
    for name in ("nested", "flat"):
        assert command("evaluate", input=folder / name, resamples=20) == 0
    return folder


def page_of(folder: Path, run: str, capsys) -> str:
    assert exit_code("report", str(folder / run)) == 0
    path = folder / f"{run}-report.html"
    assert capsys.readouterr().out.splitlines()[-1] == f"next: open {path} in a browser"
    return path.read_text(encoding="utf-8")


def test_the_page_shows_how_the_network_wrote(folder, capsys):
    page = page_of(folder, "nested", capsys)
    assert "summary_tokens_per_second" in page
    documents = documents_of(page)
    # Equal candidates of a document are written once.
    document = next(each for each in documents if len(each["candidates"]) == 2)
    assert [each["rank"] for each in document["candidates"]] == [1, 2]
    assert document["candidates"][0]["score"] >= document["candidates"][1]["score"]
    assert "1 passage, whole" in dict(document["facts"])["read by the network"]
    order = [round(line["log_prob"], 1) for line in documents if line["log_prob"]]
    assert order == sorted(order)
    reason = f"log-probability {documents[0]['log_prob']:.2f} a token"
    assert documents[0]["reason"].startswith(reason)


def test_a_flat_and_partitioned_run_has_the_same_page(folder, capsys):
    nested = documents_of(page_of(folder, "nested", capsys))
    flat = {each["id"]: each for each in documents_of(page_of(folder, "flat", capsys))}
    assert len(nested) == len(flat)
    for document in nested:
        twin = flat[document["id"]]
        for name in ("split", "reference", "extractive", "source"):
            assert document[name] == twin[name], name
