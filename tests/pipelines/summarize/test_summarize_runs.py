"""Tests of runs of `precis summarize`: what makes another run; a killed one
ends as an undisturbed one.
"""

import importlib.metadata
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.command_line import command_words, results
from support.processes import wait_until
from support.summarize_runs import rows_of, settings_of

from precis.pipelines.corpus.corpus import list_tasks
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.run.job import result_inputs
from precis.pipelines.run.options import result_settings
from precis.pipelines.summarize.summarize import summarize

pytestmark = pytest.mark.usefixtures("one_time")


def test_every_setting_of_the_rows_makes_another_run(corpus, bundle, tmp_path):
    def inputs(clean="standard", language=None, **flags):
        read = CorpusOptions(corpus=corpus, clean=clean, language=language)
        settings = settings_of(**flags)._replace(text=read.text_settings)
        named = {**result_settings([read]), **settings.described}
        found = result_inputs(named, list_tasks(read))
        return json.dumps(found, sort_keys=True)

    changes = {"sentences": 2, "extractive": "lead", "clean": "none"}
    changes |= {"min_source_words": 9, "language": "sv"}
    others = [inputs(**{name: value}) for name, value in changes.items()]
    assert len({inputs(), *others}) == len(changes) + 1
    # Neither how documents are searched nor where the rows go changes a row.
    assert inputs(search_processes=3) == inputs(window_documents=5) == inputs()
    # What is done with long documents does, where a network reads them.
    network = {"bundle": str(bundle)}
    for name, value in (
        ("long_documents", "head"),
        ("merged_length", 2.0),
        ("fallback", "extractive"),
        ("fallback_flags", "empty"),
    ):
        assert inputs(**{name: value}, **network) != inputs(**network)
    # The model does, and not where its bundle lies.
    moved = shutil.copytree(bundle, tmp_path / "moved")
    assert inputs(bundle=str(moved)) == inputs(**network) != inputs()
    assert "output" not in json.loads(inputs())
    # A language is a setting of the rows only if it is given.
    assert settings_of(language="sv").described["language"] == "sv"
    assert "language" not in settings_of().described
    # An instruction is no setting of a network that reads none.
    assert "instruction" not in json.loads(inputs(**network))


def test_settings_name_what_finds_words(monkeypatch):
    """Without the extra, they are as before there was one."""
    here = settings_of()
    version = importlib.metadata.version("icu4py")
    assert here.described["word_breaker"] == f"icu4py {version}"
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "9.9")
    other = settings_of()
    assert other.described["word_breaker"] == "icu4py 9.9"

    def not_installed(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", not_installed)
    without = settings_of()
    assert "word_breaker" not in without.described
    assert len({each.settings_id for each in (here, other, without)}) == 3


@pytest.mark.slow
def test_a_killed_run_ends_as_an_undisturbed_one(bundle, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1600000000")  # Rows without times.
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    # 20 tasks of 10 documents.
    flags = {"corpus": "sample:200", "bundle": bundle, "beam_width": 2}
    flags["task_bytes"] = (16 << 10) * 10
    words = command_words("summarize", output=killed, **flags)
    process = subprocess.Popen(
        [sys.executable, "-m", "precis.pipelines.command_line.cli", *words],
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        receipt = killed / "_tasks" / "summarize" / "00002.json"
        wait_until(receipt.exists, process=process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    receipts = list((killed / "_tasks" / "summarize").glob("0*.json"))
    assert 3 <= len(receipts) < 20 and not (killed / "manifest.json").exists()
    half = killed / "data" / "part-0a1b2c3d-00019.parquet.0a1b2c3d.aside"
    half.write_bytes(b"half a file")
    summarize(output=killed, **flags)
    summarize(output=whole, **flags)
    assert results(killed) == results(whole) and len(rows_of(whole)) == 200
