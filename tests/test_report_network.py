"""The report about a run of a network, by commands: heat maps, training curves, search
cost, flat and partitioned files, two runs.
"""

import re
from pathlib import Path

import pytest
from support.command_line import exit_code
from support.command_line import precis as command
from support.report_runs import documents_of

pytestmark = pytest.mark.slow

PREPARE = {
    "corpus": "sample:200",
    "vocabulary_size": 1500,
    "max_source_tokens": 512,
    "max_target_tokens": 32,
}
TRAIN = {
    "network": "tiny",
    "width": 16,
    "heads": 2,
    "feed_forward": 32,
    "steps": 4,
    "batch_tokens": 2048,
    "warmup_steps": 4,
    "checkpoint_steps": 4,
    "validation_steps": 2,
    "validation_documents": 4,
}
SUMMARIZE = {
    "corpus": "sample:200",
    "split": "validation",
    "beam_width": 2,
    "n_best": 2,
    "max_summary_tokens": 12,
    "min_summary_tokens": 6,
    "extractive": "lead,frequency",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("network")
    bundle = folder / "bundle"
    assert command("prepare", output=folder / "records", **PREPARE) == 0
    assert command("train", records=folder / "records", output=bundle, **TRAIN) == 0
    nested = {**SUMMARIZE, "bundle": bundle, "output": folder / "nested"}
    flat = {**nested, "output": folder / "flat", "partition_by": "split", "flat": True}
    assert command("summarize", **nested) == 0
    assert command("summarize", **flat, length_penalty=0.5) == 0
    for name in ("nested", "flat"):
        assert command("evaluate", input=folder / name, resamples=20) == 0
    return folder


def page_of(folder: Path, run: str, capsys, **flags) -> str:
    words = [f"--{name}={value}" for name, value in flags.items()]
    assert exit_code("report", str(folder / run), *words) == 0
    path = folder / f"{run}-report.html"
    assert capsys.readouterr().out.splitlines()[-1] == f"next: open {path} in a browser"
    return path.read_text(encoding="utf-8")


def test_the_page_shows_what_the_network_read_and_how_it_was_trained(folder, capsys):
    page = page_of(folder, "nested", capsys, attention_documents=2)
    heat_maps = re.findall(r'<table class="heat">(.*?)</table>', page, re.DOTALL)
    assert len(heat_maps) == 2
    for heat_map in heat_maps:
        assert "##" not in heat_map and "▁" not in heat_map
        levels = re.findall(r'class="level-(\d)"', heat_map)
        assert set(levels) <= set("01234") and len(set(levels)) > 1
    assert "network, 4 steps" in page
    assert "validation loss" in page
    assert "summary tokens a second" in page
    documents = documents_of(page)
    # Equal candidates of a document are written once.
    document = next(each for each in documents if len(each["candidates"]) == 2)
    assert [each["rank"] for each in document["candidates"]] == [1, 2]
    assert document["candidates"][0]["score"] >= document["candidates"][1]["score"]
    assert "1 passage, whole" in dict(document["facts"])["read by the network"]
    orders = [line["concern"] for line in documents]
    assert orders == sorted(orders, reverse=True)


def test_a_flat_and_partitioned_run_has_the_same_page(folder, capsys):
    nested = documents_of(page_of(folder, "nested", capsys, attention_documents=0))
    page = page_of(
        folder, "flat", capsys, attention_documents=0, compare=folder / "nested"
    )
    flat = documents_of(page)
    by_id = {document["id"]: document for document in nested}
    for document in flat:
        twin = by_id[document["id"]]
        for name in ("split", "reference", "extractive", "source"):
            assert document[name] == twin[name], name
        assert document["other"]["lines"] == twin["shown"]["lines"]
    assert "<td>0.5</td><td>1.0</td>" in page
    assert "--attention_documents is 0" in page


def test_a_bundle_that_is_gone_costs_its_pictures_alone(folder, capsys):
    (folder / "bundle").rename(folder / "moved")
    try:
        page = page_of(folder, "nested", capsys)
    finally:
        (folder / "moved").rename(folder / "bundle")
    assert f"Not shown: {folder}/bundle" in page
    assert "No curves: the run has no bundle, or the folder of its training" in page
    assert documents_of(page)
