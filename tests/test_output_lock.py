"""Tests of the lock by which one process at a time owns an output."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import fsspec
import pytest
from support.command_line import error_lines, precis
from support.waiting import wait_until

from precis.model import files
from precis.model.errors import JobError, UsageError
from precis.pipelines.run import lock_file, output_lock, process_identity
from precis.pipelines.run.lock_file import Owner
from precis.pipelines.run.output_lock import own_output


def lock_path(output):
    return output / "_tasks" / "lock.json"


def write_lock(output, **changes):
    """A lock of a process that runs elsewhere."""
    lock_path(output).parent.mkdir(parents=True, exist_ok=True)
    owner = Owner("far", 77, "other", "5", "token", time.time())._replace(**changes)
    lock_path(output).write_text(json.dumps(owner._asdict()))


def read_lock(output):
    return json.loads(lock_path(output).read_bytes())


def test_an_output_that_is_owned_is_refused_and_free_afterwards(tmp_path):
    with own_output(str(tmp_path)) as ownership:
        assert read_lock(tmp_path)["pid"] == os.getpid()
        with pytest.raises(
            UsageError,
            match=rf"^{tmp_path} is in use by process {os.getpid()} on "
            rf"{socket.gethostname()}; it is free when that process ends, or, if it is "
            r"dead, from \d\d:\d\d:\d\d UTC on; wait, or name another --output$",
        ):
            with own_output(str(tmp_path)):
                pass
        ownership.check()
    assert list(tmp_path.iterdir()) == []
    with own_output(str(tmp_path)):
        (tmp_path / "_tasks" / "job.json").write_text("{}")
    assert [path.name for path in (tmp_path / "_tasks").iterdir()] == ["job.json"]


RACE = """
import os, sys, time
from precis.model.errors import UsageError
from precis.pipelines.run.output_lock import own_output
output, start = sys.argv[1], time.monotonic() + 0.2
children = []
for _ in range(8):
    child = os.fork()
    if not child:
        while time.monotonic() < start:
            pass
        try:
            with own_output(output):
                time.sleep(1)
            os._exit(0)
        except UsageError:
            os._exit(2)
    children.append(child)
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
"""


@pytest.mark.parametrize("is_stale", [False, True])
def test_of_processes_that_begin_at_once_one_owns_the_output(tmp_path, is_stale):
    if is_stale:
        write_lock(tmp_path, renewed_at=1.0)
    command = [sys.executable, "-c", RACE, str(tmp_path)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert sorted(json.loads(output)) == [0] + [2] * 7
    assert not lock_path(tmp_path).exists()


@pytest.mark.slow
def test_a_second_command_is_refused_until_the_first_is_dead(tmp_path, capsys):
    output = tmp_path / "run"
    flags = {"corpus": "sample:60", "extractive": "lead", "output": output}
    arguments = [f"--{name}={value}" for name, value in flags.items()]
    command = [
        sys.executable,
        "-m",
        "precis.pipelines.command_line.cli",
        "summarize",
        *arguments,
    ]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: lock_path(output).exists() and read_lock_of(output))
        process.send_signal(signal.SIGSTOP)
        assert precis("summarize", **flags) == 2
        (line,) = error_lines(capsys.readouterr().err, "summarize")
        assert f"{output} is in use by process {process.pid} on " in line
        # It stays among the processes until its parent has waited for it.
        process.kill()
        wait_until(lambda: process_identity.process_start(process.pid) is None)
        with own_output(str(output)):
            assert read_lock(output)["pid"] == os.getpid()
    finally:
        process.kill()
        process.wait()


def read_lock_of(output):
    """Whether the lock is written to its end."""
    try:
        return bool(read_lock(output))
    except ValueError:
        return False


HERE = {"machine": process_identity.machine_name(), "pid": os.getpid()}
START = process_identity.process_start(os.getpid())


@pytest.mark.parametrize(
    ("changes", "is_free"),
    [
        ({}, False),
        ({"renewed_at": time.time() - 61}, True),
        ({**HERE, "process_start": START}, False),
        # Another process has its pid now.
        ({**HERE, "process_start": "1"}, True),
        ({**HERE, "process_start": ""}, False),
        ({**HERE, "pid": 2**22 + 1}, True),
        # A container has the same names but pids of its own.
        ({**HERE, "machine": "other", "pid": 2**22 + 1}, False),
    ],
)
def test_the_lock_of_a_dead_process_is_taken_over(tmp_path, changes, is_free):
    write_lock(tmp_path, **changes)
    if is_free:
        with own_output(str(tmp_path)):
            assert read_lock(tmp_path)["token"] != "token"
        return
    with pytest.raises(UsageError, match="is in use by process"):
        with own_output(str(tmp_path)):
            pass
    assert read_lock(tmp_path)["token"] == "token"


def test_a_process_of_another_user_runs(monkeypatch):
    def refuse(pid, number):
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert process_identity.process_start(os.getpid()) == START != ""
    assert process_identity.process_start(2**22 + 1) == ""


def test_a_lock_that_was_never_written_is_as_old_as_its_file(tmp_path):
    path = lock_path(tmp_path)
    path.parent.mkdir()
    path.touch()
    with pytest.raises(UsageError, match="in use by process 0 on another machine"):
        with own_output(str(tmp_path)):
            pass
    os.utime(path, (1, 1))
    with own_output(str(tmp_path)):
        assert read_lock(tmp_path)["pid"] == os.getpid()


def test_the_owner_renews_its_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(output_lock, "_RENEWAL_SECONDS", 0.01)
    with own_output(str(tmp_path)) as ownership:
        first = read_lock(tmp_path)
        wait_until(lambda: read_lock(tmp_path)["renewed_at"] > first["renewed_at"])
        assert read_lock(tmp_path)["token"] == first["token"]
        ownership.check()


@pytest.mark.parametrize("is_removed", [False, True])
def test_a_job_whose_output_was_taken_over_stops(tmp_path, monkeypatch, is_removed):
    monkeypatch.setattr(output_lock, "_RENEWAL_SECONDS", 0.01)
    with pytest.raises(JobError, match=f"^{tmp_path} was taken over by another proc"):
        with own_output(str(tmp_path)):
            if is_removed:
                lock_path(tmp_path).unlink()
            else:
                write_lock(tmp_path)
            threading.Event().wait(60)
            raise AssertionError("it went on")
    assert lock_path(tmp_path).exists() is not is_removed


def test_a_job_in_a_further_thread_fails_at_its_next_check(tmp_path, monkeypatch):
    monkeypatch.setattr(output_lock, "_RENEWAL_SECONDS", 0.01)
    errors = []

    def work():
        try:
            with own_output(str(tmp_path)) as ownership:
                write_lock(tmp_path)
                wait_until(lambda: ownership._is_lost)
                ownership.check()
                errors.append("it went on")
        except JobError as error:
            errors.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    (error,) = errors
    assert "was taken over by another process" in error


DEAF = """
import json, signal, sys, threading
from precis.pipelines.run import lock_file
from precis.pipelines.run import output_lock
from precis.pipelines.run import process_identity
output_lock._RENEWAL_SECONDS = output_lock._GRACE_SECONDS = 0.01
signal.signal(signal.SIGINT, signal.SIG_IGN)
with output_lock.own_output(sys.argv[1]):
    open(sys.argv[1] + "/_tasks/lock.json", "w").write("{}")
    threading.Event().wait(60)
"""


def test_a_job_that_does_not_stop_is_ended(tmp_path):
    command = [sys.executable, "-c", DEAF, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 1
    assert re.fullmatch(
        f"precis: {tmp_path} was taken over by .*; this job has stopped, .*\n",
        ended.stderr,
    )


COMMAND = """
import sys, threading
from precis.pipelines.run import interruption
from precis.pipelines.run import output_lock
output_lock._RENEWAL_SECONDS = 0.01
interruption.install("precis x", kept="", resume="")
with output_lock.own_output(sys.argv[1]):
    open(sys.argv[1] + "/_tasks/lock.json", "w").write("{}")
    threading.Event().wait(60)
"""


def test_a_command_that_lost_its_output_is_ended_at_once(tmp_path):
    command = [sys.executable, "-c", COMMAND, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 1
    assert re.fullmatch(
        f"precis x: {tmp_path} was taken over by .*; this job has stopped, .*\n",
        ended.stderr,
    )
    # It is the lock of another process.
    assert lock_path(tmp_path).read_text() == "{}"


def test_a_disk_that_is_full_for_the_moment_does_not_lose_the_output(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(output_lock, "_RENEWAL_SECONDS", 0.01)
    tried = threading.Semaphore(0)

    def fail(*_):
        tried.release()
        raise OSError(28, "No space left on device")

    with own_output(str(tmp_path)) as ownership:
        monkeypatch.setattr(output_lock, "exchange_lock", fail)
        for _ in range(3):
            tried.acquire()
        ownership.check()
        monkeypatch.undo()
    monkeypatch.setattr(output_lock, "_RENEWAL_SECONDS", 0.01)
    with pytest.raises(JobError, match="or could not be renewed; this job has stopped"):
        with own_output(str(tmp_path)):
            monkeypatch.setattr(output_lock, "LEASE_SECONDS", 0.0)
            monkeypatch.setattr(output_lock, "exchange_lock", fail)
            threading.Event().wait(60)


def test_a_finished_result_may_be_read_only_and_others_may_not(tmp_path):
    (tmp_path / "_tasks").touch()  # No lock can be written in it.
    with pytest.raises(UsageError, match="cannot be written: .*; name another --out"):
        with own_output(str(tmp_path)):
            pass
    (tmp_path / "_SUCCESS").touch()
    with own_output(str(tmp_path)) as ownership:
        ownership.check()


@pytest.fixture
def bucket(monkeypatch):
    monkeypatch.setattr(lock_file, "_SETTLING_SECONDS", 0.0)
    fs = fsspec.filesystem("memory")
    yield "memory://locks/run"
    if fs.exists("/locks"):
        fs.rm("/locks", recursive=True)


def test_an_object_store_holds_the_lock_too(bucket, monkeypatch):
    monkeypatch.setattr(output_lock, "_RENEWAL_SECONDS", 0.01)
    fs = fsspec.filesystem("memory")
    path = "/locks/run/_tasks/lock.json"
    with own_output(bucket):
        first = json.loads(fs.cat_file(path))
        with pytest.raises(UsageError, match=f"{bucket} is in use by process"):
            with own_output(bucket):
                pass
        wait_until(
            lambda: json.loads(fs.cat_file(path))["renewed_at"] > first["renewed_at"]
        )
    assert not fs.exists(path)
    stale = Owner("far", 7, "other", "5", "token", 1.0)
    fs.pipe_file(path, json.dumps(stale._asdict()).encode())
    with pytest.raises(JobError, match=f"{bucket} was taken over"):
        with own_output(bucket):
            assert json.loads(fs.cat_file(path))["token"] != "token"
            fs.pipe_file(path, json.dumps(stale._asdict()).encode())
            threading.Event().wait(60)


def test_of_two_that_create_a_lock_on_an_object_store_one_does(bucket):
    path = files.join(bucket, "_tasks", "lock.json")
    first, second = (Owner("far", 7, "other", "5", token) for token in "ab")
    assert lock_file.create_lock(path, first)
    assert not lock_file.create_lock(path, second)
    # Another attempt of the first, whose answer was lost.
    assert lock_file.create_lock(path, first)


def test_of_two_that_take_over_a_lock_on_an_object_store_the_last_one_owns_it(
    bucket, monkeypatch
):
    fs = fsspec.filesystem("memory")
    stale = Owner("far", 6, "other", "5", "stale", 1.0)
    fs.pipe_file("/locks/run/_tasks/lock.json", json.dumps(stale._asdict()).encode())
    other = Owner("far", 7, "other", "5", "token", time.time())

    def write_other(seconds):
        content = json.dumps(other._asdict()).encode()
        fs.pipe_file("/locks/run/_tasks/lock.json", content)

    monkeypatch.setattr(output_lock.time, "sleep", write_other)
    with pytest.raises(UsageError, match="in use by process 7 on far"):
        with own_output(bucket):
            pass
