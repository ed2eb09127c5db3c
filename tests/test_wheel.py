"""The wheel in a fresh environment, beside a project with folders of the same names."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.slow


def run(*command: object, cwd: Path, **variables: str) -> str:
    environment = {**os.environ, **variables}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy of the tracked files, as a release is."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    names = run("git", "ls-files", cwd=ROOT).splitlines()
    for name in names:
        if (ROOT / name).is_file():
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    flags = ("--wheel", "--no-isolation", "--outdir", folder)
    run(sys.executable, "-m", "build", *flags, source, cwd=folder)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def scripts(wheel, tmp_path_factory) -> Path:
    """The script folder of an environment that holds the wheel.

    The dependencies are those of this environment, reached through a path file; the
    editable installation of this checkout is not among them, because path files of a
    folder that is reached in this way are not read.
    """
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    (packages,) = folder.glob("lib/python*/site-packages")
    dependencies = sysconfig.get_path("purelib")
    (packages / "dependencies.pth").write_text(f"{dependencies}\n")
    pip = (sys.executable, "-m", "pip", "--python", folder / "bin" / "python")
    flags = ("install", "--no-deps", "--no-index", "--ignore-installed", wheel)
    run(*pip, *flags, cwd=folder)
    return folder / "bin"


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """A user's project with packages called model and pipelines."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("model", "pipelines"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(f"OWNER = 'the user: {name}'\n")
    lines = [
        {"id": str(number), "article": f"Rain fell on day {number}. It was cold."}
        for number in range(20)
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "news.jsonl").write_text(text)
    return folder


def test_the_wheel_has_one_top_level_package(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = {name.split("/")[0] for name in archive.namelist()}
        modules = set(archive.namelist())
    assert sorted(name for name in names if not name.endswith("dist-info")) == [
        "precis"
    ]
    for name in (
        "precis/__init__.py",
        "precis/model/search/beam.py",
        "precis/pipelines/command_line/cli.py",
        "precis/pipelines/corpus/sample/articles.jsonl",
        "precis/pipelines/corpus/sample/stories.json",
    ):
        assert name in modules


def test_a_job_runs_beside_packages_of_the_same_names(scripts, project):
    flags = ("--corpus", "jsonl:news.jsonl", "--output", "summaries")
    run(scripts / "precis", "summarize", *flags, cwd=project)
    manifest = json.loads((project / "summaries" / "manifest.json").read_text())
    assert manifest["counts"]["written"] == 20


def test_the_project_imports_its_own_packages_and_ours(scripts, project):
    code = (
        "import model, pipelines, precis, precis.model.files;"
        "import precis.pipelines.command_line.cli;"
        "print(model.OWNER, '|', pipelines.OWNER, '|', precis.model.__file__)"
    )
    output = run(scripts / "python", "-c", code, cwd=project)
    model, pipelines, installed = output.strip().split(" | ")
    assert (model, pipelines) == ("the user: model", "the user: pipelines")
    assert Path(installed).is_relative_to(scripts.parent)
