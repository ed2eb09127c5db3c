"""`precis run` with real steps: stopped and killed, and with the same result."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support.command_line import contents, results
from support.signalled import PROGRAM, end_by_signal, processes_of
from support.waiting import wait_until

pytestmark = pytest.mark.slow

JOB = {
    "folder": "job",
    "vars": {"corpus": "sample:120"},
    "steps": [
        {
            "prepare": {
                "corpus": "${corpus}",
                "output": "${folder}/records",
                "vocabulary_size": 600,
                "max_source_tokens": 64,
                "max_target_tokens": 16,
            }
        },
        {
            "train": {
                "records": "${folder}/records",
                "output": "${folder}/bundle",
                "network": "tiny",
                "width": 16,
                "heads": 2,
                "feed_forward": 32,
                "steps": 60,
                "batch_tokens": 512,
                "warmup_steps": 4,
                "checkpoint_steps": 3,
                "validation_steps": 60,
                "validation_documents": 4,
            }
        },
        {
            "summarize": {
                "corpus": "${corpus}",
                "bundle": "${folder}/bundle",
                "output": "${folder}/summaries",
                "task_bytes": 400_000,
                "beam_width": 2,
                "max_summary_tokens": 12,
                "workers": 1,
            }
        },
        {
            "evaluate": {
                "input": "${folder}/summaries",
                "output": "${folder}/scores",
                "resamples": 20,
            }
        },
    ],
}


@pytest.fixture(autouse=True)
def one_time(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")


def place(folder: Path) -> Path:
    """A folder with the job file."""
    folder.mkdir()
    (folder / "job.yaml").write_text(yaml.safe_dump(JOB))
    return folder


def run(folder: Path, *flags: str, code: int = 0) -> list[str]:
    """The lines of `precis run` itself on stderr."""
    done = subprocess.run(
        [sys.executable, "-m", PROGRAM, "run", "job.yaml", *flags],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return [line for line in done.stderr.splitlines() if line.startswith("precis run")]


def outcomes(lines: list[str]) -> list[str]:
    """`prepare done` and so on; the lines that a step begins with are left out."""
    ends = [line.rpartition(", ")[2] for line in lines if "precis " not in line[8:]]
    return [end.partition(" in ")[0].replace(":", "") for end in ends]


def written(folder: Path) -> dict[str, object]:
    """What the steps wrote, without times and the logs of the training."""
    job = folder / "job"
    bundle = contents(job / "bundle")
    return {
        "records": contents(job / "records"),
        "bundle": {k: v for k, v in bundle.items() if not k.startswith("training/")},
        "summaries": results(job / "summaries"),
        "scores": contents(job / "scores"),
    }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Path:
    folder = place(tmp_path_factory.mktemp("job") / "undisturbed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        lines = run(folder)
    assert outcomes(lines) == [
        "prepare done",
        "train done",
        "summarize done",
        "evaluate done",
    ]
    return folder


def exists(folder: Path, pattern: str):
    return lambda _: any((folder / "job").glob(pattern))


def test_a_finished_job_is_left_as_it_is(undisturbed):
    before = contents(undisturbed)
    names = ("prepare", "train", "summarize", "evaluate")
    assert outcomes(run(undisturbed)) == [f"{name} finished before" for name in names]
    assert contents(undisturbed) == before


def test_a_job_that_is_killed_and_stopped_ends_with_the_same_result(
    undisturbed, tmp_path
):
    folder = place(tmp_path / "disturbed")
    # Killed within the training, which is told so and saves its step.
    killed = end_by_signal(
        ["run", "job.yaml"],
        signal.SIGKILL,
        exists(folder, "bundle/training/checkpoints/step-*"),
        folder=tmp_path / "killed",
        to_group=False,
        cwd=folder,
    )
    assert killed.code == -signal.SIGKILL
    assert [path.name for path in (folder / "job/_steps").iterdir()] == ["prepare.json"]
    wait_until(lambda: not processes_of(tmp_path / "killed"), "the step to end")

    # Stopped within the summaries, as Ctrl-C does it.
    stopped = end_by_signal(
        ["run", "job.yaml"],
        signal.SIGINT,
        exists(folder, "summaries/_tasks/job.json"),
        folder=tmp_path / "stopped",
        cwd=folder,
    )
    assert (stopped.code, stopped.left) == (130, [])
    assert stopped.lines[-1] == (
        "precis run: stopped by SIGINT; step 3 of 4, summarize has ended; what is "
        "finished is kept; go on with: precis run job.yaml"
    )
    assert any(
        line.startswith("precis summarize: stopped by SIGINT; what is finished is kept")
        for line in stopped.lines
    )
    assert not (folder / "job/_tasks").exists()

    assert outcomes(run(folder)) == [
        "prepare finished before",
        "train finished before",
        "summarize done",
        "evaluate done",
    ]
    assert written(folder) == written(undisturbed)


def test_a_changed_step_is_refused_by_its_command_or_made_again(undisturbed, tmp_path):
    folder = tmp_path / "changed"
    subprocess.run(["cp", "-a", undisturbed, folder], check=True)
    # The same corpus by another name is another job, which prepare refuses.
    lines = run(folder, "--vars", "corpus=sample:121", code=2)
    assert lines[-1].startswith(
        "precis run: step 1 of 4, prepare (job.yaml:3) ended with exit code 2; "
    )
    # Scores are made again with other flags.
    job = json.loads(json.dumps(JOB))
    job["steps"][3]["evaluate"]["resamples"] = 30
    (folder / "job.yaml").write_text(yaml.safe_dump(job))
    lines = run(folder, "--from_step", "summarize")
    assert outcomes(lines) == ["summarize finished before", "evaluate done"]
    scores = json.loads((folder / "job/scores/rouge.json").read_bytes())
    assert scores["provenance"]["flags"]["resamples"] == 30


def test_a_python_program_that_is_interrupted_ends_its_step(tmp_path):
    folder = place(tmp_path / "program")
    code = "import precis; precis.run(job='job.yaml', vars=['corpus=sample:4000'])"
    ended = end_by_signal(
        [],
        signal.SIGINT,
        exists(folder, "records/_tasks/job.json"),
        folder=tmp_path / "process",
        to_group=False,
        program=("-c", code),
        cwd=folder,
    )
    assert ended.code == -signal.SIGINT
    assert [name for name in ended.left if not name.startswith("precis-")] == []
    lines = [line for line in ended.lines if line.startswith("precis prepare: ")]
    assert len(lines) == 1 and "stopped by SIGTERM" in lines[0]
    assert os.listdir(folder / "job") == ["records"]
