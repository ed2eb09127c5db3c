"""How a process ends at a signal, with small programs in place of commands."""

import os
import signal
import threading
from pathlib import Path

import pytest
from support.signalled import Ended, end_by_signal

from precis.model import files, unfinished_files
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
    # What fails because of a signal: a thread, a library, a program below.
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
    logging.error("noise")
    subprocess.run(["sh", "-c", "echo noise >&2"])

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
    ended = end(tmp_path, "install()\nwait_for_a_signal()", number)
    assert ended.code == 128 + number
    assert ended.lines == [f"precis x: stopped by {number.name}; {KEPT}"]
    assert ended.left == []


TREE = """
from precis.model.files import write_aside
install()
MIDDLE = "import subprocess, sys, time; subprocess.Popen(sys.argv[1:]); time.sleep(600)"
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
out = sys.argv[1]
with (
    interruption.at_end(lambda: os.rename(out + "/lock", out + "/released")),
    interruption.at_end(make_noise),
    interruption.at_end(lambda: 1 / 0),
    interruption.at_end(lambda: os.kill(child.pid, 0)),
    write_aside(out + "/unfinished"),
):
    open(out + "/lock", "w").close()
    open(out + "/part", "w").close()
    child = subprocess.Popen([sys.executable, "-c", MIDDLE, *SLEEP])
    while len(psutil.Process().children(recursive=True)) < 2:
        time.sleep(0.01)
    wait_for_a_signal()
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
wait_for_a_signal()
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
    ended = end(tmp_path, "install().finish(1)\nwait_for_a_signal()")
    assert (ended.code, ended.lines, ended.left) == (1, [], [])


def test_a_state_that_is_not_saved_in_time_is_not_waited_for(tmp_path):
    code = "install()\nwith interruption.saving():\n    wait_for_a_signal()"
    ended = end(tmp_path, code, signal.SIGTERM)
    assert (ended.code, ended.left) == (143, [])
    assert ended.lines[0].startswith("precis x: stopped by SIGTERM; not saved in time")


def test_a_python_program_keeps_its_handlers():
    before = [signal.getsignal(number) for number in interruption.SIGNALS]
    threads = threading.active_count()
    with (
        interruption.at_end(lambda: None),
        interruption.saving() as is_stopped,
    ):
        assert not is_stopped() and interruption.installed() is None
        assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
        assert threading.active_count() == threads
    assert before == [signal.getsignal(number) for number in interruption.SIGNALS]


def test_no_file_is_begun_after_the_unfinished_ones_are_removed(tmp_path):
    late = threading.Thread(target=files.write_bytes, args=(f"{tmp_path}/b", b"late"))
    with pytest.raises(FileNotFoundError), files.write_aside(f"{tmp_path}/a"):
        interruption._remove_unfinished_files()
        try:
            late.start()
            late.join(0.5)
            assert late.is_alive() and not [*tmp_path.iterdir()]
        finally:  # Only the end of a process keeps it.
            unfinished_files.beginning.release()
    late.join()
    assert [path.name for path in tmp_path.iterdir()] == ["b"]
