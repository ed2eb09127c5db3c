"""The log of losses: appended to, cut at the checkpoint that a training goes on from,
and never short of a line that was saved.
"""

import json
import os
import uuid
from pathlib import Path

import fsspec
import pytest

from precis.model import files
from precis.model.errors import DataError
from precis.model.training.loss_log import (
    LossLog,
    add_validation,
    read_log,
    save_log,
)


def add(log: LossLog, *steps: int) -> None:
    log.reports.extend({"step": step, "loss": step / 3} for step in steps)


def lines_of(*steps: int) -> bytes:
    rows = [{"step": step, "loss": step / 3} for step in steps]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.fixture
def written(monkeypatch) -> list[bytes]:
    """The contents that were published as whole files."""
    contents = []
    publish = files.write_bytes

    def write_bytes(path, content):
        contents.append(content)
        publish(path, content)

    monkeypatch.setattr(files, "write_bytes", write_bytes)
    return contents


def saved(folder: Path, *steps: int) -> LossLog:
    log = LossLog(path=str(folder / "losses.jsonl"))
    add(log, *steps)
    save_log(log)
    return log


def test_a_save_appends_the_new_lines_and_leaves_the_others(tmp_path, written):
    log = saved(tmp_path, 1, 2, 3)
    path = Path(log.path)
    assert written == [lines_of(1, 2, 3)]
    before = path.stat()
    # The same length as the old lines, so that a save that writes them again shows.
    path.write_bytes(b"x" * before.st_size)
    add(log, 4, 5)
    save_log(log)
    save_log(log)
    assert path.read_bytes() == b"x" * before.st_size + lines_of(4, 5)
    assert path.stat().st_ino == before.st_ino and len(written) == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["losses.jsonl"]


def test_a_resumed_log_is_the_file_up_to_the_step_of_the_checkpoint(tmp_path, written):
    path = saved(tmp_path, 1, 2, 3, 4).path
    log = read_log(path, last_step=2)
    assert [report["step"] for report in log.reports] == [1, 2]
    assert Path(path).read_bytes() == lines_of(1, 2, 3, 4)  # reading changes nothing
    add(log, 3)
    save_log(log)
    assert Path(path).read_bytes() == lines_of(1, 2, 3) and len(written) == 1


def test_half_a_line_behind_the_checkpoint_is_cut_away(tmp_path):
    path = Path(saved(tmp_path, 1, 2).path)
    path.write_bytes(lines_of(1, 2) + b'{"step": 3, "lo')
    log = read_log(str(path), last_step=2)
    add(log, 3)
    save_log(log)
    assert path.read_bytes() == lines_of(1, 2, 3)


@pytest.mark.parametrize("line", [b"[1]", b"{", b"{}", b"\xff"])
def test_a_damaged_line_is_refused(line, tmp_path):
    path = tmp_path / "losses.jsonl"
    path.write_bytes(line + b"\n")
    with pytest.raises(
        DataError, match=r"losses.jsonl: damaged \(.*\); take another --output"
    ):
        read_log(str(path), last_step=1)


def test_without_a_checkpoint_the_file_of_another_training_is_replaced(tmp_path):
    path = Path(saved(tmp_path, 1, 2, 3).path)
    log = read_log(str(path), last_step=0)
    assert log == LossLog(path=str(path))
    add(log, 1)
    save_log(log)
    assert path.read_bytes() == lines_of(1)


def test_a_validation_of_a_saved_step_is_published_as_a_whole_file(tmp_path, written):
    log = saved(tmp_path, 1, 2)
    before = os.stat(log.path).st_ino
    add_validation(log, {"loss": 0.5})
    save_log(log)
    rows = [json.loads(line) for line in Path(log.path).read_bytes().splitlines()]
    assert rows == [
        {"step": 1, "loss": 1 / 3},
        {"step": 2, "loss": 2 / 3, "validation": {"loss": 0.5}},
    ]
    # Written aside and renamed: at no moment is the line of step 2 missing.
    assert len(written) == 2 and os.stat(log.path).st_ino != before
    add(log, 3)
    save_log(log)
    assert Path(log.path).read_bytes().endswith(b"}}\n" + lines_of(3))
    assert len(written) == 2


def test_a_validation_of_a_new_step_is_appended(tmp_path, written):
    log = saved(tmp_path, 1)
    add(log, 2)
    add_validation(log, {"loss": 0.5})
    save_log(log)
    assert len(written) == 1 and len(Path(log.path).read_bytes().splitlines()) == 2


@pytest.mark.parametrize("content", [None, b"", lines_of(1)])
def test_a_file_that_lost_lines_is_written_again(tmp_path, content):
    log = saved(tmp_path, 1, 2)
    path = Path(log.path)
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    add(log, 3)
    save_log(log)
    assert path.read_bytes() == lines_of(1, 2, 3)


def test_on_an_object_store_the_file_is_written_whole(written):
    path = f"memory://bucket-{uuid.uuid4().hex}/losses.jsonl"
    log = LossLog(path=path)
    add(log, 1)
    save_log(log)
    log = read_log(path, last_step=1)
    add(log, 2)
    save_log(log)
    assert written == [lines_of(1), lines_of(1, 2)]
    assert fsspec.filesystem("memory").cat(path) == lines_of(1, 2)
