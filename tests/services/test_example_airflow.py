"""Test of examples/nightly/airflow_dag.py: Airflow runs it.

Airflow pins other versions of common packages, so it has an environment of its own,
build/airflow-VERSION, which is made once.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.command_line import write_jsonl
from support.incremental_runs import line

pytestmark = pytest.mark.services

ROOT = Path(__file__).parents[2]
DAG_FILE = ROOT / "examples" / "nightly" / "airflow_dag.py"
AIRFLOW_VERSION = "3.3.2"


class Airflow:
    """An installation of Airflow with a folder of DAGs."""

    def __init__(self, programs: Path, home: Path) -> None:
        self._programs = programs
        self._environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        }

    def run(self, program: str, *arguments: str) -> str:
        """What a program of the installation prints on stdout."""
        done = subprocess.run(
            [self._programs / program, *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def list(self, *words: str) -> list[dict]:
        """What `airflow` lists, which prints its log on stdout too."""
        lines = self.run("airflow", *words, "--output", "json").splitlines()
        begin = next(n for n, each in enumerate(lines) if each.startswith("["))
        return json.loads("\n".join(lines[begin:]))


def install(folder: Path) -> None:
    """Makes an environment with Airflow, unless it is there."""
    mark = folder / ".installed"
    if mark.exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, timeout=300)
    python = folder / "bin" / "python"
    requirement = f"apache-airflow=={AIRFLOW_VERSION}"
    places = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    uv = shutil.which("uv", path=places)
    installer = [uv, "pip", "install", "--python", python]
    if not uv:
        installer = [python, "-m", "pip", "install"]
    subprocess.run([*installer, "--quiet", requirement], check=True, timeout=1800)
    mark.touch()


@pytest.fixture(scope="module")
def airflow(tmp_path_factory) -> Airflow:
    environment = ROOT / "build" / f"airflow-{AIRFLOW_VERSION}"
    install(environment)
    home = tmp_path_factory.mktemp("airflow")
    (home / "dags").mkdir()
    shutil.copy(DAG_FILE, home / "dags")
    return Airflow(environment / "bin", home)


def test_airflow_runs_the_dag(airflow, tmp_path):
    write_jsonl(tmp_path / "news/1.jsonl", [line(1), line(2)])
    conf = {"corpus": f"jsonl:{tmp_path}/news/*.jsonl", "runs": f"{tmp_path}/nightly"}
    airflow.run("airflow", "db", "migrate")
    airflow.run("airflow", "dags", "reserialize")
    given = ("--conf", json.dumps(conf))
    airflow.run("airflow", "dags", "test", "precis_nightly", *given)
    (run,) = airflow.list("dags", "list-runs", "precis_nightly")
    states = airflow.list(
        "tasks", "states-for-dag-run", "precis_nightly", run["run_id"]
    )
    # Without a table nothing is loaded.
    assert {each["task_id"]: each["state"] for each in states} == {
        "summarize": "success",
        "verify": "success",
        "load": "skipped",
        "publish": "success",
    }
    published = tmp_path / "nightly.published"
    manifest = json.loads((published / "manifest.json").read_bytes())
    assert manifest["counts"]["written"] == 2
    assert [published.resolve()] == list((tmp_path / "nightly").iterdir())
