"""How a process ends at a signal, with small programs in place of commands."""

import os
import signal
import threading
from pathlib import Path

import pytest
from support.signalled import Ended, end_by_signal

from precis.pipelines.run import interruption

INSTALL = """
import logging, os, psutil, signal, subprocess, sys, threading, time
from precis.pipelines.run import interruption

def write(name):
    open(f"{sys.argv[1]}/{name}", "w").close()

def wait_for_a_signal():
    write("ready")
    time.sleep(600)

def make_noise():
    # What fails because of a signal: a thread, a library, an object that goes.
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
    logging.error("noise")
    type("Noise", (), {"__del__": lambda _: 1 / 0})()

def wait():
    while True:
        try:
            # The signal may come as soon as the file is there.
            write("ready")
            time.sleep(60)
        except BaseException:
            make_noise()

def install():
    ending = interruption.Ending("precis x", "go on with: y", "all is kept")
    ending.install()
    return ending
"""
KEPT = "all is kept; go on with: y"


def end(
    tmp_path: Path, code: str, *numbers: signal.Signals, again: str = "ready"
) -> Ended:
    """Runs a program until it is ready and sends it a signal, or two: the second when
    the program has written the file `again`.
    """
    out = tmp_path / "out"
    out.mkdir()
    *first, last = numbers or (signal.SIGINT,)

    def is_time(pid: int) -> bool:
        if first and (out / "ready").exists():
            os.kill(pid, first.pop())
        return not first and (out / again).exists()

    run = {"folder": tmp_path / "process", "program": ("-c", INSTALL + code)}
    return end_by_signal([out], last, is_time, to_group=False, **run)


@pytest.mark.parametrize("number", interruption.SIGNALS)
def test_a_program_that_does_not_stop_is_ended_with_one_line(tmp_path, number):
    code = "install().grace_seconds = 0.05\nwait()"
    ended = end(tmp_path, code, number)
    assert ended.code == 128 + number
    assert ended.lines == [f"precis x: stopped by {number.name}; {KEPT}"]
    assert ended.left == []


def test_a_program_that_gives_back_what_it_holds_ends_by_itself(tmp_path):
    code = """
ending = install()
ending.grace_seconds = 600
try:
    wait_for_a_signal()
except interruption.Stopped:
    write("given back")
    make_noise()
    ending.end("one half is kept")
"""
    ended = end(tmp_path, code)
    assert (tmp_path / "out" / "given back").exists()
    line = "precis x: stopped by SIGINT; one half is kept; go on with: y"
    assert ended.lines == [line]


TREE = """
from precis.model.unfinished_files import begin_file
install()
MIDDLE = "import subprocess, sys, time; subprocess.Popen(sys.argv[1:]); time.sleep(600)"
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
out = sys.argv[1]
with (
    interruption.at_once(),
    interruption.at_end(lambda: os.rename(out + "/lock", out + "/released")),
    interruption.at_end(lambda: 1 / 0),
    interruption.at_end(lambda: os.kill(child.pid, 0), is_first=True),
    begin_file(out + "/part.aside"),
):
    open(out + "/lock", "w").close()
    open(out + "/part", "w").close()
    child = subprocess.Popen([sys.executable, "-c", MIDDLE, *SLEEP])
    while len(psutil.Process().children(recursive=True)) < 2:
        time.sleep(0.01)
    wait()
"""


def test_processes_locks_and_files_that_are_not_finished_are_gone(tmp_path):
    ended = end(tmp_path, TREE, signal.SIGTERM)
    assert (ended.code, ended.left) == (143, [])
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["part", "ready", "released"]
    assert ended.lines == [f"precis x: stopped by SIGTERM; {KEPT}"]


def test_an_ignored_signal_stays_ignored(tmp_path):
    code = """
signal.signal(signal.SIGINT, signal.SIG_IGN)
install()
with interruption.at_once():
    wait()
"""
    ended = end(tmp_path, code, signal.SIGINT, signal.SIGTERM)
    assert ended.code == 143


def test_what_saves_its_state_is_asked_and_not_interrupted(tmp_path):
    code = """
ending = install()
with interruption.saving() as is_stopped:
    assert not is_stopped()
    write("ready")
    while not is_stopped():
        time.sleep(0.01)
ending.end("the state is saved")
"""
    ended = end(tmp_path, code)
    line = "precis x: stopped by SIGINT; the state is saved; go on with: y"
    assert (ended.code, ended.lines) == (130, [line])


def test_a_command_that_is_done_keeps_its_exit_code(tmp_path):
    ended = end(tmp_path, "install().finish(1)\nwait()")
    assert (ended.code, ended.lines, ended.left) == (1, [], [])


def test_a_forked_process_has_its_signals_to_itself(tmp_path):
    code = """
install().grace_seconds = 0.05
reader, writer = os.pipe()
pid = os.fork()
if not pid:
    os.write(writer, b"x")
    time.sleep(600)
os.read(reader, 1)
os.kill(pid, signal.SIGTERM)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGTERM
wait()
"""
    assert end(tmp_path, code).code == 130


def test_a_python_program_keeps_its_handlers():
    before = [signal.getsignal(number) for number in interruption.SIGNALS]
    threads = threading.active_count()
    with (
        interruption.at_once(),
        interruption.at_end(lambda: None),
        interruption.saving() as is_stopped,
    ):
        assert not is_stopped() and interruption.installed() is None
        assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
        assert threading.active_count() == threads
    assert before == [signal.getsignal(number) for number in interruption.SIGNALS]
