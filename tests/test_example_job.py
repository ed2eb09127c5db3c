"""Tests of examples/job.yaml, and of the index of the examples."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import precis

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
JOB = EXAMPLES / "job.yaml"


def test_the_job_has_five_steps_that_are_accepted():
    lines = precis.run(job=JOB, dry_run=True)
    assert list(lines) == ["prepare", "train", "summarize", "evaluate", "report"]
    assert lines["summarize"].endswith(
        "--extractive lead,frequency,lexrank --supported numbers,names"
    )


@pytest.mark.slow
def test_the_job_runs_to_its_scores(tmp_path):
    words = ["--vars", "corpus=sample:200", "--vars", "training_steps=4"]
    program = [sys.executable, "-m", "precis.pipelines.command_line.cli"]
    done = subprocess.run(
        [*program, "run", str(JOB), *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    *_, steps, wrote, following = done.stdout.splitlines()
    assert steps == "steps: 5 done, 0 finished before"
    assert wrote == "wrote runs/job/report.html"
    assert following == "next: precis verify runs/job/summaries"
    assert b"</html>" in (tmp_path / "runs/job/report.html").read_bytes()
    scores = json.loads((tmp_path / "runs/job/scores/rouge.json").read_bytes())
    assert {"lead-3", "lexrank", "abstractive"} <= {
        system["system"] for system in scores["systems"]
    }


def test_the_page_shows_a_job_that_is_accepted(tmp_path):
    page = (ROOT / "docs" / "JOBS.md").read_text()
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "job.yaml").write_text(text)
    shown = precis.run(job=tmp_path / "job.yaml", dry_run=True)
    whole = precis.run(job=JOB, dry_run=True)
    assert list(shown) == list(whole)
    assert yaml.safe_load(text)["vars"] == yaml.safe_load(JOB.read_text())["vars"]


def test_the_index_names_every_example_and_its_test():
    page = (EXAMPLES / "README.md").read_text()
    linked = {target for target in re.findall(r"\]\(([^)]+)\)", page)}
    files = {
        path.relative_to(EXAMPLES).as_posix()
        for path in EXAMPLES.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files - {"README.md"} <= linked
    assert all((EXAMPLES / target).exists() for target in linked)
    tests = re.findall(r"`(tests/\S+\.py)`", page)
    assert len(tests) == len(set(tests)) == 8
    assert all((ROOT / test).exists() for test in tests)


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.sh")), ids=lambda p: p.name)
def test_a_script_is_executable_and_stops_at_the_first_error(path):
    assert path.stat().st_mode & 0o111
    assert subprocess.run(["bash", "-n", path]).returncode == 0
    assert "\nset -euo pipefail\n" in path.read_text()


def test_python_examples_import_no_inner_modules():
    notebook = json.loads((EXAMPLES / "notebook.ipynb").read_text())
    sources = ["".join(cell["source"]) for cell in notebook["cells"]]
    sources += [path.read_text() for path in EXAMPLES.rglob("*.py")]
    modules = {
        name for text in sources for name in re.findall(r"\bprecis(?:\.\w+)+", text)
    }
    inner = ("precis.model", "precis.pipelines")
    assert "precis.transforms" in modules
    assert not [name for name in modules if name.startswith(inner)]
