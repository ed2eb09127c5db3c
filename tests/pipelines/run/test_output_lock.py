"""Tests of the lock by which one process at a time owns an output."""

import json
import os
import socket
import subprocess
import sys
import time

import fsspec
import pytest
from support.waiting import wait_until

from precis.model import files
from precis.model.errors import JobError, UsageError
from precis.pipelines.run import output_lock
from precis.pipelines.run.output_lock import own_output

HERE = f"process {os.getpid()} on {socket.gethostname()}"
OWNER = f"{HERE}; it is free when that process"


def lock_path(output):
    return output / "_tasks" / "lock.json"


def write_lock(output):
    """A lock file that no process holds."""
    lock_path(output).parent.mkdir(parents=True, exist_ok=True)
    lock_path(output).write_text('{"host": "far", "pid": 77}')


def test_an_output_that_is_owned_is_refused_and_free_afterwards(tmp_path):
    message = f"^{tmp_path} is in use by {OWNER} ends; wait, or name another --output$"
    with own_output(str(tmp_path)) as check:
        with pytest.raises(UsageError, match=message):
            own_output(str(tmp_path)).__enter__()
        check()
    assert list(tmp_path.iterdir()) == []
    with own_output(str(tmp_path)):
        (tmp_path / "_tasks" / "job.json").write_text("{}")
    assert [path.name for path in (tmp_path / "_tasks").iterdir()] == ["job.json"]


RACE = """
import os, signal, sys, time
from precis.model.errors import UsageError
from precis.pipelines.run.output_lock import own_output
output, start = sys.argv[1], time.monotonic() + 0.2
refusals, refused = os.pipe()
children = []
for _ in range(8):
    child = os.fork()
    if not child:
        signal.alarm(60)  # Two owners would wait for ever.
        while time.monotonic() < start:
            pass
        try:
            with own_output(output):
                for _ in range(7):
                    os.read(refusals, 1)
            os._exit(0)
        except UsageError:
            os.write(refused, b"x")
            os._exit(2)
    children.append(child)
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
"""


@pytest.mark.parametrize("is_stale", [False, True])
def test_of_processes_that_begin_at_once_one_owns_the_output(tmp_path, is_stale):
    if is_stale:
        write_lock(tmp_path)
    command = [sys.executable, "-c", RACE, str(tmp_path)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert sorted(json.loads(output)) == [0] + [2] * 7
    assert not lock_path(tmp_path).exists()


@pytest.mark.parametrize("is_removed", [False, True])
@pytest.mark.parametrize("error", [None, ValueError("it failed")])
def test_a_job_whose_output_was_taken_over_fails(tmp_path, is_removed, error):
    with pytest.raises(JobError, match=f"^{tmp_path} was taken over by another proc"):
        with own_output(str(tmp_path)) as check:
            lock_path(tmp_path).unlink()
            if not is_removed:
                write_lock(tmp_path)
            if error:
                raise error
            check()
            raise AssertionError("it went on")
    assert lock_path(tmp_path).exists() is not is_removed


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "_tasks").touch()  # No lock can be written in it.
    with pytest.raises(UsageError, match="cannot be written: .*; name another --out"):
        own_output(str(tmp_path)).__enter__()


# On an object store.

LOCK = "/locks/run/_tasks/lock.json"


@pytest.fixture
def bucket(monkeypatch):
    monkeypatch.setattr(output_lock, "_SETTLING_SECONDS", 0.0)
    monkeypatch.setattr(output_lock, "_RENEWAL_SECONDS", 0.01)
    fs = fsspec.filesystem("memory")
    yield "memory://locks/run"
    if fs.exists("/locks"):
        fs.rm("/locks", recursive=True)


def write_object(**changes):
    """A lock of a process that runs elsewhere."""
    owner = {"host": "far", "pid": 7, "token": "t", "renewed_at": time.time()}
    content = json.dumps(owner | changes).encode()
    fsspec.filesystem("memory").pipe_file(LOCK, content)


def read_object():
    return json.loads(fsspec.filesystem("memory").cat_file(LOCK))


def test_an_object_store_holds_the_lock_too(bucket):
    message = (
        rf"^{bucket} is in use by {OWNER} ends, or, if it is dead, from "
        r"\d\d:\d\d:\d\d UTC on; wait, or name another --output$"
    )
    with own_output(bucket) as check:
        first = read_object()
        with pytest.raises(UsageError, match=message):
            own_output(bucket).__enter__()
        wait_until(lambda: read_object()["renewed_at"] > first["renewed_at"])
        check()
        assert read_object()["token"] == first["token"]
    assert not fsspec.filesystem("memory").exists(LOCK)


@pytest.mark.parametrize(("age", "is_free"), [(50, False), (61, True)])
def test_a_lock_that_is_not_renewed_is_taken_over(bucket, age, is_free):
    write_object(renewed_at=time.time() - age)
    if is_free:
        with own_output(bucket):
            assert read_object()["pid"] == os.getpid()
        return
    with pytest.raises(UsageError, match="is in use by process 7 on far"):
        own_output(bucket).__enter__()
    assert read_object()["token"] == "t"


@pytest.mark.parametrize("is_removed", [False, True])
def test_a_job_that_lost_its_lock_on_an_object_store_fails(bucket, is_removed):
    fs = fsspec.filesystem("memory")
    with pytest.raises(JobError, match=f"^{bucket} was taken over"):
        with own_output(bucket) as check:
            fs.rm(LOCK) if is_removed else write_object()
            # The owner looks before it renews, and leaves the lock to the other one.
            time.sleep(0.1)
            check()
            raise AssertionError("it went on")
    assert fs.exists(LOCK) is not is_removed


def test_a_store_that_is_down_for_the_moment_loses_no_output(bucket, monkeypatch):
    with own_output(bucket) as check:
        renewed_at = read_object()["renewed_at"]
        with monkeypatch.context() as patch:
            tried = []

            def fail(*_):
                tried.append(1)
                raise OSError(5, "the network is down")

            patch.setattr(files.ObjectStore, "write", fail)
            wait_until(lambda: len(tried) > 3)
        wait_until(lambda: read_object()["renewed_at"] > renewed_at)
        check()
        assert read_object()["pid"] == os.getpid()


def test_of_two_that_take_over_a_lock_the_last_one_owns_it(bucket, monkeypatch):
    write_object(renewed_at=1.0)
    other = {"token": "other"}
    monkeypatch.setattr(output_lock.time, "sleep", lambda _: write_object(**other))
    with pytest.raises(UsageError, match="in use by process 7 on far"):
        own_output(bucket).__enter__()
