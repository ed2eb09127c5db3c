"""Tests of search processes that start before there is anything to search."""

import multiprocessing
import shutil
import threading

import pytest
from support.summarize_runs import settings_of

from precis.model.errors import DataError
from precis.pipelines.summarizing.window_summarizer import WindowSummarizer


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
