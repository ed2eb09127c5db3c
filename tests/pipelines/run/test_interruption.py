"""How a command ends at a signal, with small programs in place of commands."""

import itertools
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.signalled import Ended, end_by_signal

from precis.pipelines.run import interruption

SIGNALS = (signal.SIGINT, signal.SIGTERM)
# A command that goes on where it was stopped.
NAME = "prepare"
BEGIN = """
import contextlib, ctypes, os, psutil, signal, subprocess, sys, threading, time
from precis.model.errors import Interrupted
from precis.pipelines.run import interruption

out, name = sys.argv[1:]

def write(file):
    open(f"{out}/{file}", "w").close()

def wait_for_a_signal():
    write("ready")
    time.sleep(600)

def become_command():
    interruption.become_command([name])

@contextlib.contextmanager
def ended():
    try:
        yield
    except Interrupted as stop:
        print(interruption.stopped_line([name], stop), file=sys.stderr, flush=True)
        interruption.kill_processes_below()
        os._exit(stop.exit_code)
"""
KEPT = "finished work is kept; continue with: precis prepare"


def end(tmp_path: Path, code: str, *numbers: signal.Signals) -> Ended:
    """Runs a program until it is ready and sends it a signal, or two."""
    out = tmp_path / "out"
    out.mkdir()
    *first, last = numbers or (signal.SIGINT,)

    def is_time(pid: int) -> bool:
        if first and (out / "ready").exists():
            os.kill(pid, first.pop())
        return not first and (out / "ready").exists()

    run = {"folder": tmp_path / "process", "program": ("-c", BEGIN + code)}
    return end_by_signal([out, NAME], last, is_time, to_group=False, **run)


TREE = """
from precis.model.files import write_aside
become_command()
MIDDLE = "import subprocess, sys, time; subprocess.Popen(sys.argv[1:]); time.sleep(600)"
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]

@contextlib.contextmanager
def lock():
    write("lock")
    try:
        yield
    finally:
        os.rename(out + "/lock", out + "/released")

with ended(), lock(), write_aside(out + "/unfinished"):
    write("part")
    subprocess.Popen([sys.executable, "-c", MIDDLE, *SLEEP])
    while len(psutil.Process().children(recursive=True)) < 2:
        time.sleep(0.01)
    wait_for_a_signal()
"""


@pytest.mark.parametrize("number", SIGNALS)
def test_processes_locks_and_files_that_are_not_finished_are_gone(tmp_path, number):
    ended = end(tmp_path, TREE, number)
    assert (ended.code, ended.left) == (128 + number, [])
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["part", "ready", "released"]
    assert ended.lines == [f"precis prepare: stopped by {number.name}; {KEPT}"]


# A call in C that does not end, with the lock of Python held, and a process below: it
# waits for a mutex that it has.
IN_C = """
become_command()
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
write("ready")
mutex = ctypes.create_string_buffer(64)
with ended():
    for _ in range(2):
        ctypes.PyDLL(None).pthread_mutex_lock(mutex)
"""
# What catches any exception and goes on.
STUBBORN = """
become_command()
while True:
    with contextlib.suppress(BaseException):
        wait_for_a_signal()
"""
CODES = (IN_C, STUBBORN)


def test_commands_that_do_not_answer_are_killed_with_one_line(tmp_path):
    """All at the same time, as each is waited for."""

    def of(case: tuple[str, signal.Signals]) -> Ended:
        code, number = case
        folder = tmp_path / f"{CODES.index(code)}-{number}"
        folder.mkdir()
        return end(folder, code, number)

    cases = [*itertools.product(CODES, SIGNALS)]
    with ThreadPoolExecutor(len(cases)) as threads:
        for (_, number), ended in zip(cases, threads.map(of, cases), strict=True):
            assert (ended.code, ended.left) == (128 + number, [])
            assert ended.lines == [f"precis prepare: stopped by {number.name}; {KEPT}"]
            assert 4 < ended.seconds


def test_a_command_that_somebody_kills_says_so(tmp_path):
    code = "become_command()\nwrite('ready')\nos.kill(os.getpid(), signal.SIGKILL)"
    ended = end(tmp_path, f"{code}", signal.SIGCONT)
    assert (ended.code, ended.left) == (137, [])
    assert ended.lines == [f"precis prepare: stopped by SIGKILL; {KEPT}"]


def test_a_command_ends_with_the_process_that_waits_for_it(tmp_path):
    ended = end(tmp_path, "become_command()\nwait_for_a_signal()", signal.SIGKILL)
    (folder,) = ended.left  # No process is left, but its temporary files.
    assert ended.code == -signal.SIGKILL and folder.startswith("precis-")


def test_an_ignored_signal_stays_ignored(tmp_path):
    code = """
signal.signal(signal.SIGINT, signal.SIG_IGN)
become_command()
with ended():
    wait_for_a_signal()
"""
    ended = end(tmp_path, code, signal.SIGINT, signal.SIGTERM)
    assert ended.code == 143


def test_what_saves_its_state_is_asked_and_not_interrupted(tmp_path):
    code = """
become_command()
with ended(), interruption.saving() as is_stopped:
    assert not is_stopped()
    write("ready")
    while not is_stopped():
        time.sleep(0.01)
    raise Interrupted("the state is saved")
"""
    ended = end(tmp_path, code)
    again = KEPT.partition("; ")[2]
    line = f"precis prepare: stopped by SIGINT; the state is saved; {again}"
    assert (ended.code, ended.lines) == (130, [line])


def test_the_exit_code_of_a_command_that_is_done_is_passed_on(tmp_path):
    code = "become_command()\nwrite('ready')\ntime.sleep(1)\nsys.exit(2)"
    ended = end(tmp_path, code, signal.SIGCONT)
    assert (ended.code, ended.lines, ended.left) == (2, [], [])


def test_a_python_program_keeps_its_handlers():
    before = [signal.getsignal(number) for number in range(1, 30)]
    threads = threading.active_count()
    with interruption.saving() as is_stopped:
        assert not is_stopped()
        assert before == [signal.getsignal(number) for number in range(1, 30)]
        assert threading.active_count() == threads
