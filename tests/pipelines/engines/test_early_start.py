"""Tests of what starts before Beam is imported."""

import pytest

from precis.pipelines.engines import early_start
from precis.pipelines.engines.early_start import LEAST_BYTES, TASK_IMPORTS, start_early


@pytest.mark.parametrize(
    ("corpus", "workers", "cores", "starts"),
    [
        ("text:{}/large.txt", 0, 2, True),
        ("text:{}/l*.txt", 0, 2, True),
        ("text:{}/folder", 0, 2, True),
        ("text:{}/small.txt,text:{}/large.txt", 0, 2, True),
        ("text:{}/large.txt", 0, 1, False),
        ("text:{}/large.txt", 1, 2, False),
        ("text:{}/small.txt", 0, 2, False),
        ("text:{}/small.txt", 2, 1, True),
        ("text:{}/none.txt", 0, 2, False),
        ("text:gs://bucket/large.txt", 0, 2, False),
        ("sample:9", 0, 2, False),
    ],
)
def test_only_a_large_corpus_starts_the_fork_server(
    corpus, workers, cores, starts, tmp_path, monkeypatch
):
    (tmp_path / "folder").mkdir()
    (tmp_path / "small.txt").write_bytes(b"x" * (LEAST_BYTES - 1))
    for name in ("large.txt", "folder/a.txt"):
        (tmp_path / name).write_bytes(b"x" * LEAST_BYTES)
    started = []
    monkeypatch.setattr(early_start, "start_fork_server", started.append)
    monkeypatch.setattr(early_start, "usable_cores", lambda: cores)
    start_early(corpus.format(tmp_path, tmp_path), workers)
    assert started == [TASK_IMPORTS] * starts
