"""Tests of which steps of `precis run` count as finished."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.command_line import exit_code

from precis.model.errors import Interrupted, UsageError
from precis.pipelines.command_line.commands import COMMANDS
from precis.pipelines.options.run import RunOptions
from precis.pipelines.plan import receipts, run_steps
from precis.pipelines.plan.receipts import fingerprint_files, is_finished
from precis.pipelines.plan.run_steps import describe_plan
from precis.pipelines.plan.steps import Step

FINGERPRINT = receipts.fingerprint


@pytest.fixture
def folder(tmp_path, monkeypatch) -> str:
    """A folder of a job, in which two steps have what they read and wrote."""
    monkeypatch.chdir(tmp_path)
    for name in ("news/1.jsonl", "job/records/a", "job/records/b/c", "job/bundle/w"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(name)
    return "job"


def step(*words: str, name: str = "train", **fields) -> Step:
    """`train` of the job, or with other fields another step."""
    values = {"output": "job/bundle", "inputs": ("job/records",), **fields}
    return Step(name, "job.yaml:3", "train", words, **values)


PREPARE = step(name="prepare", inputs=("news/*.jsonl",), output="job/records")


def finish(folder: str, *steps: Step) -> None:
    for each in steps:
        receipts.write_receipt(folder, each, FINGERPRINT(each))


def touch(path: str) -> None:
    os.utime(path, ns=(0, 1_700_000_000_000_000_000))


def test_a_step_is_finished_with_its_flags_and_files(folder):
    assert not is_finished(folder, step("--steps", "4"))
    finish(folder, step("--steps", "4"))
    assert is_finished(folder, step("--steps", "4"))
    assert not is_finished(folder, step("--steps", "5"))
    assert not is_finished(folder, step("--steps", "4", name="other"))


@pytest.mark.parametrize(
    "change",
    [
        lambda: Path("job/records/b/d").touch(),
        lambda: Path("job/records/a").unlink(),
        lambda: Path("job/bundle/w").write_text("longer than before"),
        lambda: touch("job/records/b/c"),
        lambda: touch("job/bundle/w"),
        lambda: Path("job/bundle/w").unlink(),
        lambda: Path("job/_steps/train.json").write_text("{}"),
    ],
)
def test_a_change_of_what_it_read_or_wrote_runs_a_step_again(folder, change):
    finish(folder, step())
    change()
    assert not is_finished(folder, step())


@pytest.mark.parametrize("output", ["job/records/pages", "job/records/page.html"])
def test_what_a_step_writes_among_its_inputs_is_no_change_of_them(folder, output):
    page = step(name="report", inputs=("job/records",), output=output)
    read = FINGERPRINT(page)
    path = Path(output, "1.html") if output.endswith("pages") else Path(output)
    path.parent.mkdir(exist_ok=True)
    path.touch()
    assert FINGERPRINT(page) == read


def test_another_version_of_precis_looks_at_a_step_again(folder, monkeypatch):
    finish(folder, step())
    monkeypatch.setattr(receipts.importlib.metadata, "version", lambda _: "9")
    assert not is_finished(folder, step())


def test_a_corpus_counts_by_its_files(folder):
    finish(folder, PREPARE)
    assert is_finished(folder, PREPARE)
    Path("news/2.jsonl").touch()
    assert not is_finished(folder, PREPARE)


def test_the_output_of_a_step_is_no_input_of_it(folder):
    nightly = step(inputs=("job",))
    before = FINGERPRINT(nightly)
    touch("job/bundle/w")
    assert FINGERPRINT(nightly) == before
    touch("job/records/a")
    assert FINGERPRINT(nightly) != before


def test_a_lock_is_no_part_of_a_folder(folder):
    before = fingerprint_files("job/bundle")
    Path("job/bundle/_tasks").mkdir()
    Path("job/bundle/_tasks/lock.json").touch()
    assert fingerprint_files("job/bundle") == before
    assert fingerprint_files("job/none") == fingerprint_files("none/*") == ""


@pytest.mark.parametrize("name", ["nlp_tasks", "_tasks"])
def test_only_a_folder_within_what_is_read_holds_a_lock(folder, name):
    """A corpus may lie below a folder of such a name."""
    Path(name).mkdir()
    Path(name, "own_tasks").mkdir()
    Path(name, "own_tasks", "1.jsonl").touch()
    before = fingerprint_files(f"{name}/own_tasks")
    assert before
    assert fingerprint_files(name)
    assert fingerprint_files(f"{name}/own_tasks/*.jsonl")
    assert fingerprint_files(f"{name}/own_tasks/1.jsonl")
    Path(name, "own_tasks", "2.jsonl").touch()
    assert fingerprint_files(f"{name}/own_tasks") != before


def test_a_step_without_an_output_always_runs(folder):
    verify = step(output="")
    finish(folder, verify)
    assert not is_finished(folder, verify)


def test_what_is_printed_of_a_plan(folder):
    finish(folder, PREPARE, step())
    done = ["# prepare: finished before", "precis train"]
    assert describe_plan(folder, [PREPARE, step()]) == [
        *done,
        *("# train: finished before", "precis train"),
    ]
    touch("news/1.jsonl")
    assert describe_plan(folder, [PREPARE, step()]) == [
        *("# prepare: to be run", "precis train"),
        *("# train: finished before; looked at again after prepare", "precis train"),
    ]


JOB = """\
folder: job
steps:
- verify: {folder: none}
- name: second
  digest: {run: job}
"""


def test_the_exit_code_of_a_step_that_fails_is_that_of_the_job(folder, capfd):
    Path("job.yaml").write_text(JOB)
    assert exit_code("run", "job.yaml") == 2
    lines = capfd.readouterr().err.splitlines()
    assert lines[0] == "precis run: step 1 of 2, verify: precis verify none"
    assert lines[1].startswith("precis verify: none ")
    assert lines[2:] == [
        "precis run: step 1 of 2, verify (job.yaml:3) ended with exit code 2; the "
        "steps before it are kept, and the same command goes on with this one"
    ]
    assert not Path("job/_tasks").exists()


def test_the_messages_of_a_job_and_its_steps_are_json_lines(folder, capfd):
    Path("job.yaml").write_text(JOB)
    assert exit_code("run", "job.yaml", "--progress", "json") == 2
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [(line["command"], line["state"]) for line in lines] == [
        ("run", "message"),
        ("verify", "failed"),
        ("run", "failed"),
    ]
    assert lines[0]["message"].endswith("step 1 of 2, verify: precis verify none")


def test_a_quiet_job_has_quiet_steps(folder, capfd, monkeypatch):
    monkeypatch.setenv("PRECIS_PROGRESS", "json")
    Path("job.yaml").write_text("folder: job\nsteps:\n- digest: {run: none}")
    assert exit_code("run", "job.yaml", "--quiet") == 2
    first, last = capfd.readouterr().err.splitlines()
    assert first.startswith("precis digest: none holds no run: ")
    assert last.startswith("precis run: step 1 of 1, digest (job.yaml:3) ended with ")


def test_the_steps_of_a_job_and_quiet_commands_suggest_nothing(
    folder, extractive, capfd
):
    flags = {"run": str(extractive), "for": "duckdb", "output": "sql"}
    job = {"folder": "job", "steps": [{"loaders": flags}]}
    Path("job.yaml").write_text(json.dumps(job))
    assert exit_code("run", "job.yaml") == 0
    assert capfd.readouterr().out.splitlines()[0] == "wrote sql"
    words = ("loaders", str(extractive), "--for", "duckdb", "--output", "sql")
    outputs = []
    for more in ((), ("--quiet",)):
        assert exit_code(*words, *more) == 0
        outputs.append(capfd.readouterr().out.splitlines())
    (wrote, following), quiet = outputs
    assert quiet == [wrote] == ["wrote sql"]
    assert following.startswith("next: ")


@pytest.mark.skipif(sys.platform != "linux", reason="nothing tells it elsewhere")
def test_a_step_ends_whose_job_is_gone_before_it_begins(folder):
    module = "precis.pipelines.command_line.step_program"
    gone = subprocess.Popen(["true"])
    gone.wait()
    ends = [
        subprocess.run([sys.executable, "-m", module, str(pid), "digest", "none"])
        for pid in (gone.pid, os.getpid())
    ]
    assert [end.returncode for end in ends] == [-signal.SIGTERM, 2]


def run_once(monkeypatch, *, code: int, number: int = 0) -> None:
    """Runs a job of one step whose process ends with a code, after a signal perhaps."""
    text = "folder: job\nsteps:\n- train: {records: job/records, output: job/bundle}\n"
    Path("job.yaml").write_text(text)
    ending = SimpleNamespace(signal=number)
    patched = SimpleNamespace(installed=lambda: ending)
    monkeypatch.setattr(run_steps, "interruption", patched)
    monkeypatch.setattr(run_steps, "run_step", lambda command, words: code)
    run_steps.run_steps(RunOptions(job="job.yaml"), COMMANDS)


def test_a_step_that_was_killed_is_named(folder, monkeypatch):
    message = r"step 1 of 1, train \(job.yaml:3\) was ended by SIGKILL, most often"
    with pytest.raises(run_steps.StepFailed, match=message) as caught:
        run_once(monkeypatch, code=137)
    assert caught.value.exit_code == 137
    assert not Path("job/_steps").exists()


@pytest.mark.parametrize(("code", "receipts"), [(143, []), (0, ["train.json"])])
def test_a_signal_ends_the_job_behind_the_step(folder, monkeypatch, code, receipts):
    with pytest.raises(Interrupted, match="step 1 of 1, train has ended; what is "):
        run_once(monkeypatch, code=code, number=15)
    assert [path.name for path in Path("job/_steps").glob("*")] == receipts


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        ({"from_step": "second"}, ["second"]),
        ({"only_step": "verify"}, ["verify"]),
        ({"only_step": "second"}, ["second"]),
    ],
)
def test_some_of_the_steps_are_chosen(folder, capsys, flags, names):
    Path("job.yaml").write_text(JOB)
    given = [word for name, value in flags.items() for word in (f"--{name}", value)]
    assert exit_code("run", "job.yaml", "--dry_run", *given) == 0
    shown = capsys.readouterr().out.splitlines()[::2]
    assert shown == [f"# {name}: to be run" for name in names]


def test_a_step_that_is_not_there_is_refused(folder):
    Path("job.yaml").write_text(JOB)
    options = RunOptions(job="job.yaml", only_step="secnd")
    message = "--only_step secnd: job.yaml has no such step; did you mean second?"
    with pytest.raises(UsageError, match=message):
        run_steps.run_steps(options, COMMANDS)
