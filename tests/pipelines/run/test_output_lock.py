"""Tests of the lock by which one process at a time owns an output."""

import json
import os
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import fsspec
import psutil
import pytest

from precis.model import files
from precis.model.errors import JobError, UsageError
from precis.pipelines.run.output_lock import own_output

HERE = f"process {os.getpid()} on {socket.gethostname()}"
OWNER = f"{HERE}; wait until it"


def lock_path(output):
    return output / "_tasks" / "lock.json"


def write_lock(output):
    """A lock file that no process holds."""
    lock_path(output).parent.mkdir(parents=True, exist_ok=True)
    lock_path(output).write_text('{"host": "far", "pid": 77}')


def test_an_output_that_is_owned_is_refused_and_free_afterwards(tmp_path):
    message = f"^{tmp_path} is in use by {OWNER} ends, or name another --output$"
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
    message = f"^{tmp_path} was taken over by another process, .*; let the other"
    with pytest.raises(JobError, match=message):
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
def bucket():
    fs = fsspec.filesystem("memory")
    yield "memory://locks/run"
    if fs.exists("/locks"):
        fs.rm("/locks", recursive=True)


def write_object(machine="far", pid=7, began=1.0):
    """A lock of a process that runs elsewhere, or was killed there."""
    owner = {"host": "far", "machine": machine, "pid": pid, "began": began}
    owner |= {"since": "2026-11-29T12:00:00+00:00", "token": "t"}
    content = json.dumps(owner).encode()
    fsspec.filesystem("memory").pipe_file(LOCK, content)


def test_an_object_store_holds_the_lock_too(bucket):
    fs = fsspec.filesystem("memory")
    since = rf"{HERE} since 20[-0-9]+T[:0-9]+\+00:00"
    way_out = rf"\(if it was killed, remove memory:/{LOCK}\); wait until it ends, or na"
    message = rf"^{bucket} is in use by {since} {way_out}me another --output$"
    with own_output(bucket) as check:
        with pytest.raises(UsageError, match=message):
            own_output(bucket).__enter__()
        check()
        assert fs.exists(LOCK)
    assert not fs.exists(LOCK)


def test_of_three_writers_of_an_object_store_one_owns_the_output(bucket):
    refused = threading.Semaphore(0)

    def write(number):
        try:
            with own_output(bucket):
                for _ in range(2):
                    assert refused.acquire(timeout=60)
                return "owned"
        except UsageError:
            refused.release()
            return "refused"

    with ThreadPoolExecutor(3) as threads:
        ends = sorted(threads.map(write, range(3)))
    assert ends == ["owned", "refused", "refused"]


def test_a_lock_is_free_when_it_is_removed_as_the_error_says(bucket):
    write_object()
    with pytest.raises(UsageError, match="in use by process 7 on far since") as raised:
        own_output(bucket).__enter__()
    files.remove(str(raised.value).split("remove ")[1].split(")")[0])
    with own_output(bucket) as check:
        check()


def test_the_lock_of_a_process_that_was_killed_here_is_free(bucket):
    process = subprocess.Popen(["true"])
    process.wait()
    with own_output(bucket):
        here = json.loads(fsspec.filesystem("memory").cat_file(LOCK))["machine"]
    # The second had the number that this process has now, as in a restarted container.
    for pid in (process.pid, os.getpid()):
        write_object(here, pid)
        with own_output(bucket) as check:
            check()
    parent = os.getppid()
    for machine, began in ((here, psutil.Process(parent).create_time()), ("far", 1.0)):
        write_object(machine, parent, began)
        with pytest.raises(UsageError, match=f"in use by process {parent} on "):
            own_output(bucket).__enter__()


@pytest.mark.parametrize("is_removed", [False, True])
def test_a_job_that_lost_its_lock_on_an_object_store_fails(bucket, is_removed):
    fs = fsspec.filesystem("memory")
    with pytest.raises(JobError, match=f"^{bucket} was taken over"):
        with own_output(bucket) as check:
            fs.rm(LOCK) if is_removed else write_object()
            check()
            raise AssertionError("it went on")
    assert fs.exists(LOCK) is not is_removed


def test_an_answer_that_is_lost_loses_no_output(bucket, monkeypatch):
    real = files.ObjectStore.create

    def create(*arguments):
        real(*arguments)
        return real(*arguments)

    monkeypatch.setattr(files.ObjectStore, "create", create)
    with own_output(bucket) as check:
        check()


def test_a_job_that_fails_leaves_no_unfinished_file(tmp_path):
    with pytest.raises(ValueError, match="it failed"), own_output(str(tmp_path)):
        (tmp_path / "a.parquet.0.aside").touch()  # Of a worker that was killed.
        raise ValueError("it failed")
    assert list(tmp_path.iterdir()) == []
