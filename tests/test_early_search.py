"""Tests of search processes that start before there is anything to search."""

import multiprocessing
import os
import shutil
import tempfile
import threading
from multiprocessing.context import SpawnProcess

import pytest
from support.summarize_runs import settings_of

from precis.model.errors import DataError
from precis.model.inference.fork_server import search_context
from precis.pipelines.summarize.window_summarizer import WindowSummarizer


def test_a_bundle_that_is_damaged_meanwhile_ends_them(bundle, tmp_path):
    copy = shutil.copytree(bundle, tmp_path / "bundle")
    settings = settings_of(bundle=str(copy), search_processes=2)
    (copy / "config.json").write_text("{")
    summarizer = WindowSummarizer(settings, starts_early=True)
    before = set(threading.enumerate())
    with pytest.raises(DataError, match=r"config\.json"):
        summarizer.load()
    # Each process has a thread that waits for it.
    assert set(threading.enumerate()) == before
    assert multiprocessing.active_children() == []


def test_they_are_not_forked_where_the_path_of_temporary_files_is_long(
    tmp_path, monkeypatch
):
    folder = tmp_path / ("temporary files " * 6)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    process = search_context().Process(target=os.getpid)
    process.start()
    process.join()
    assert process.exitcode == 0 and isinstance(process, SpawnProcess)
