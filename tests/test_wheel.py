"""The wheel in fresh environments: one for each extra alone, which every command is
tried in, and beside a project with folders of the same names.
"""

import concurrent.futures
import functools
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from support import read_table
from support.command_line import write_jsonl
from support.small_checkpoint import write_checkpoint, write_tokenizer

import precis
from precis.pipelines.command_line.commands import COMMANDS

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.slow

TABLE = read_table("wheel_commands")
# What each extra brings.
BRINGS = {extra: {*brought} for extra, brought in TABLE["extras"].items()}
SERVER = "openai://127.0.0.1:9/v1#model"
# A port on which nothing listens.
STORES = {
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    "STORAGE_EMULATOR_HOST": "http://127.0.0.1:9",
}
HELP = """
import sys
from precis.pipelines.command_line.cli import main
for command in sys.argv[1:]:
    try:
        assert main([command, "--help"]) == 0, command
    except SystemExit as error:
        assert not error.code, command
"""


def start(*command: object, cwd: Path, **variables: str) -> CompletedProcess[str]:
    environment = {**os.environ, **variables}
    # Else each command would compile all modules anew.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    place = {"cwd": cwd, "env": environment, "timeout": 600}
    words = [str(part) for part in command]
    return subprocess.run(words, capture_output=True, text=True, **place)


def run(*command: object, cwd: Path, **variables: str) -> str:
    done = start(*command, cwd=cwd, **variables)
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
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, source / name)
    flags = ("--wheel", "--no-isolation", "--outdir", folder)
    run(sys.executable, "-m", "build", *flags, source, cwd=folder)
    (path,) = folder.glob("*.whl")
    return path


def install(folder: Path, wheel: Path, extra: str) -> Path:
    """Makes an environment with the wheel and an extra; its folder of scripts."""
    uv = Path(sys.executable).with_name("uv")
    python = folder / "bin" / "python"
    installer: Sequence[object]
    if uv.exists():
        run(uv, "venv", "--python", sys.executable, folder, cwd=wheel.parent)
        installer = (uv, "pip", "install", "--python", python)
    else:
        venv.create(folder, with_pip=True)
        installer = (python, "-m", "pip", "install")
    wanted = f"precis-corpus[{extra}]" if extra else "precis-corpus"
    run(*installer, f"{wanted} @ {wheel.as_uri()}", cwd=wheel.parent)
    return folder / "bin"


@pytest.fixture(params=list(BRINGS))
def environment(request, wheel, tmp_path) -> Iterator[tuple[str, Path]]:
    """An extra, and the scripts of an environment that has it alone."""
    folder = tmp_path / "environment"
    yield request.param, install(folder, wheel, request.param)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def results(bundle, tmp_path_factory) -> Path:
    """A result of each kind that a command reads. The run is that of a network, so that
    a report looks for its bundle.
    """
    folder = tmp_path_factory.mktemp("results")
    article = "Rain fell on Oslo on Monday. It was cold. The trams stopped."
    (folder / "article.txt").write_text(article)
    (folder / "page.html").write_text(f"<html><p>{article}</p></html>")
    kinds = "WARC-Type: conversion\r\nContent-Type: text/plain"
    headers = f"{kinds}\r\nContent-Length: {len(article)}"
    (folder / "pages.warc").write_text(f"WARC/1.0\r\n{headers}\r\n\r\n{article}")
    shutil.copytree(bundle, folder / "bundle")
    prepared = {"vocabulary_size": 400, "oracle_sentences": 3, "workers": 1}
    precis.prepare(corpus="sample:60", output=folder / "records", **prepared)
    lines = [{"id": str(n), "article": article, "highlights": "Rain."} for n in (1, 2)]
    corpus = write_jsonl(folder / "news.jsonl", lines)
    flags = {"bundle": folder / "bundle", "min_source_words": 1}
    precis.summarize(corpus=corpus, output=folder / "summaries", **flags)
    (folder / "checkpoint").mkdir()
    write_checkpoint(folder / "checkpoint")
    write_tokenizer(folder / "checkpoint")
    checkpoint = folder / "checkpoint"
    precis.import_checkpoint(checkpoint=checkpoint, output=folder / "imported")
    return folder


def test_the_wheel_has_one_top_level_package(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = {name.split("/")[0] for name in archive.namelist()}
        modules = set(archive.namelist())
    packages = [name for name in names if not name.endswith("dist-info")]
    assert packages == ["precis"]
    sample = "pipelines/corpus/sample/articles.jsonl"
    for name in ("__init__.py", "pipelines/command_line/cli.py", sample):
        assert f"precis/{name}" in modules


def test_every_extra_and_every_command_is_tried(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith("dist-info/METADATA"))
        offered = re.findall(r"Provides-Extra: (\w+)", archive.read(name).decode())
    assert set(offered) - {"all"} == set(BRINGS) - {""}
    assert {line.split()[0] for line in TABLE["lines"]} == {"--help", *COMMANDS}


def check_line(line: str, extra: str, scripts: Path, results: Path, out: Path) -> str:
    """Runs a command line, and says what is wrong with its end; "" if nothing is."""
    needed = {*TABLE["lines"][line]}
    words = line.replace("OUT", str(out)).replace("SERVER", SERVER).split()
    done = start(scripts / "precis", *words, cwd=results, **STORES)
    error = done.stderr.strip().rpartition("\n")[2]
    shown = f"precis {line}: exit code {done.returncode}: {done.stdout}{done.stderr}"
    if needed <= BRINGS[extra]:
        refused = TABLE["refused"].items()
        end = next((text for part, text in refused if part in line), "")
        is_right = end in error and done.returncode if end else not done.returncode
        return "" if is_right else shown
    named = re.search(r"pip install 'precis-corpus\[(\w+)\]'$", error)
    if done.returncode != 2 or "Traceback" in done.stderr or named is None:
        return shown
    return "" if BRINGS[named[1]] & needed - BRINGS[extra] else shown


def test_each_extra_alone_does_what_the_docs_say(environment, results, tmp_path):
    """A command works, or names an extra that it needs and that is not there. A line is
    tried without any extra, and with each that brings what it needs; `doctor`, which
    says what is there, and the help of all commands with every one.
    """
    extra, scripts = environment
    run(scripts / "python", "-c", HELP, *COMMANDS, cwd=results)
    lines = TABLE["lines"].items()
    tried = [line for line, needed in lines if not extra or BRINGS[extra] & {*needed}]
    tried += ["doctor"] * bool(extra)
    place = {"extra": extra, "scripts": scripts, "results": results}
    check = functools.partial(check_line, **place, out=tmp_path / "out")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert list(filter(None, pool.map(check, tried))) == []
