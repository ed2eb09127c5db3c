"""Tests of how stages are shown: live, as plain lines, as JSON, or not at all."""

import json
import os
import re
import sys
import threading

import pytest
from support.terminal import Terminal

from precis.model.progress.counters import FOLDER_VARIABLE, Counts, count
from precis.model.progress.stages import Stage, say, stage, stages
from precis.pipelines.run import job_progress
from precis.pipelines.run.job_progress import (
    DONE,
    FAILED,
    complain,
    current_display,
    measure_stages,
    plain_line,
    shown,
    steady_rate,
)
from precis.pipelines.run.options import VARIABLE, ProgressOptions

RUNNING = Counts(documents=8_640, size=43, started=105.0, first=105.0, ended=112.2)
ENCODE = Stage(name="encode", size=100)


@pytest.fixture(autouse=True)
def no_display(monkeypatch):
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("TERM", "xterm")


TRAIN = Stage(name="train", total=100, unit="steps", note="loss 2.5")
ABOUT = Stage(name="train", total=900, is_total_estimated=True, unit="steps")
SELECT = Stage(name="select", total=1, unit="tasks")
SEARCH = Stage(name="summarize", total=1_500, first_note="compiling the search")
ELSEWHERE = Stage(name="summarize", first_note="running on the engine")
BEGUN = Counts(started=112.0, ended=112.0)
MORE = RUNNING._replace(earlier_documents=4_000)
NOTED = RUNNING._replace(tokens=72_000, dead_letters=1, flagged=1_200)
SLOW = Counts(documents=3, size=1, started=1.0, first=1.0, ended=101.0)
STEPS = Counts(20, earlier_documents=30, started=94.4, first=94.4, ended=114.4)
SEARCHED = Counts(documents=15, started=100.0, first=100.0, ended=115.0)
STATES = [
    (ENCODE, Counts()),
    (ENCODE, BEGUN),
    (ENCODE, RUNNING),
    (ENCODE, MORE._replace(size=63)),
    (ENCODE, Counts(earlier_documents=4_000, size=20)),
    (ENCODE, SLOW),
    (ENCODE, RUNNING._replace(size=100)),
    (ENCODE, NOTED),
    (TRAIN, STEPS),
    (ABOUT, Counts(documents=90, started=100.0, first=100.0, ended=114.4)),
    (Stage(name="validate"), Counts()),
    (SELECT, BEGUN),
    (SEARCH, BEGUN),
    (SEARCH, SEARCHED),
    (ELSEWHERE, Counts()),
    (ENCODE, MORE._replace(dead_letters=2), DONE),
    (ENCODE, Counts(), DONE),
    (ENCODE, RUNNING, FAILED),
]
WHOLE = "encode   43%  8,640 / about 20,100 documents  1,200/s  0:07 left"
LINES = f"""\
encode  starting  0:14
encode  0:14
{WHOLE}
encode   63%  12,640 / about 20,100 documents  1,200/s  0:04 left
encode   20%  4,000 / about 20,000 documents  0:14
encode    1%  3 / about 300 documents  0.03/s  2:44:46 left
encode  100%  8,640 documents  1,200/s  finishing  0:14
{WHOLE}  10,000 tokens/s  1 dead letter  1,200 flagged
train   50%  50 / 100 steps  1/s  0:50 left  loss 2.5
train   10%  90 / about 900 steps  6.2/s  2:09 left
validate  0:14
select    0%  0 / 1 task  0:14
summarize    0%  0:14  compiling the search
summarize    1%  15 / 1,500 documents  1/s  24:45 left
summarize  0:14  running on the engine
encode  12,640 documents  1,200/s  0:14  2 dead letters
encode  0:14
encode  stopped  8,640 / about 20,100 documents  1,200/s  0:14
"""


def test_the_line_of_a_stage():
    for (job, counts, *state), line in zip(STATES, LINES.splitlines(), strict=True):
        name = state[0] if state else ""
        measured = measure_stages(job, counts, now=114.4, began=100.0, state=name)
        assert plain_line(measured) == line
        (bar,) = job_progress._table([measured]).columns[1].cells
        share = bar.percentage_completed  # None is a bar that only moves.
        shown_share = [] if share is None or name else [f"{share:.0f}%"]
        assert re.findall("[0-9]+%", line) == shown_share


def test_the_first_documents_and_what_compiles_for_them_say_nothing_of_the_rate():
    counts = Counts(documents=100, started=10.0, first=50.0, ended=58.0)
    assert steady_rate(Counts()) is None
    assert steady_rate(counts._replace(first_documents=20)) == 80 / 8
    for first in (60, 100):
        assert steady_rate(counts._replace(first_documents=first)) == 100 / 48
    with shown("x"):
        assert current_display().rate is None
        with stage("scan", total=9) as scan:
            scan.advance(4)
            threading.Event().wait(0.05)
            scan.advance(5)
        assert 1 < current_display().rate < 5 / 0.05


def test_a_pipe_gets_a_line_at_the_start_then_some_and_the_totals(monkeypatch, capsys):
    monkeypatch.setitem(job_progress._SECONDS, "plain", 0.2)
    with shown("x"), stages([Stage(name="scan", size=200)]):
        folder = os.environ[FOLDER_VARIABLE]
        count()
        threading.Event().wait(0.1)
        count(documents=1_000, size=50)
        threading.Event().wait(0.4)
        count(size=150)
    assert FOLDER_VARIABLE not in os.environ and not os.path.exists(folder)
    first, second, *_, last = capsys.readouterr().err.split("\n")[:-1]
    assert first == "scan  starting"
    assert second.startswith("scan   25%  1,000 / about 4,000 documents  ")
    assert last.startswith("scan  1,000 documents  ") and last.endswith("/s  0:00")


def test_json_is_an_object_a_line_messages_and_errors_included(capsys):
    options = ProgressOptions(progress="json")
    with shown("evaluate", options):
        with stage("evaluate", total=4, unit="rows") as rows:
            rows.advance(3)
            rows.note = "almost"
            say("precis evaluate: warning: x")
        complain("precis evaluate: it failed")
    first, message, last, error = map(json.loads, capsys.readouterr().err.splitlines())
    assert first["state"] == "starting" and first["documents"] == 0
    assert {line["command"] for line in (first, message, last, error)} == {"evaluate"}
    assert message["message"] == "precis evaluate: warning: x"
    assert (last["state"], last["documents"], last["total"]) == (DONE, 3, 4)
    assert (last["unit"], last["note"]) == ("rows", "almost")
    assert (error["state"], error["message"]) == (FAILED, "precis evaluate: it failed")
    assert set(first) == {
        *("time", "command", "stage", "state", "documents", "total", "unit", "rate"),
        *("is_total_estimated", "seconds", "seconds_left", "tokens", "note"),
        *("tokens_per_second", "dead_letters", "flagged"),
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"progress": "none"}, "a warning\nan error\n"),
        ({"quiet": True}, "an error\n"),
        ({"quiet": True, "progress": "json"}, "an error\n"),
    ],
)
def test_a_quiet_command_says_what_went_wrong(options, said, capsys):
    with shown("prepare", ProgressOptions(**options)), stage("scan", total=1):
        say("a warning")
        complain("an error")
    assert capsys.readouterr().err == said


def test_a_stage_that_fails_is_stopped_and_the_error_goes_on(monkeypatch, capsys):
    running = threading.active_count()
    with pytest.raises(ValueError, match="no"), shown("x"), stage("scan", total=3):
        folder = os.environ[FOLDER_VARIABLE]
        raise ValueError("no")
    assert FOLDER_VARIABLE not in os.environ and not os.path.exists(folder)
    assert threading.active_count() == running
    assert capsys.readouterr().err == "scan  starting\nscan  stopped  0:00\n"


@pytest.mark.parametrize(
    ("options", "variable", "terminal", "verbose", "mode"),
    [
        ({}, "", True, False, "live"),
        ({}, "", True, True, "plain"),
        ({}, "json", True, False, "json"),
        ({"progress": "none"}, "json", True, False, "none"),
        ({"progress": "live"}, "", False, True, "live"),
    ],
)
def test_the_mode(options, variable, terminal, verbose, mode, monkeypatch):
    """It follows the flag, the variable and the terminal."""
    monkeypatch.setenv(VARIABLE, variable)
    chosen = ProgressOptions(**options)
    assert chosen.mode(is_terminal=terminal, is_verbose=verbose) == mode


def test_a_terminal_keeps_ended_stages_and_shows_its_cursor_again(monkeypatch):
    with Terminal(columns=80) as terminal:
        monkeypatch.setattr(sys, "stderr", terminal.file)
        with shown("x"):
            with stage("loading Beam", is_brief=True):
                pass
            with stages([Stage(name="scan", size=200)]):
                print("a library says this", file=sys.stderr)
                say("precis: warning: this")
                count()
                count(documents=7, size=200, dead_letters=1)
            with pytest.raises(ValueError, match="no"), stage("train", total=9) as two:
                two.advance(4)
                raise ValueError("no")
        assert sys.stderr is terminal.file
        monkeypatch.undo()
        written = terminal.read()
    assert written.count("\x1b[?25l") == written.count("\x1b[?25h") == 3
    said = Terminal.without_codes(written)
    assert "a library says this\r\n" in said and "precis: warning: this\r\n" in said
    assert "scan  7 documents" in said and "1 dead letter" in said
    assert "train  stopped  4 / 9 documents" in said
