"""Tests of examples/nightly/nightly.sh, as the crontab beside it starts it."""

import fcntl
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.command_line import write_jsonl
from support.incremental_runs import line

FOLDER = Path(__file__).parents[2] / "examples" / "nightly"
CRONTAB = (FOLDER / "crontab").read_text()


def crontab(data: Path) -> tuple[dict[str, str], str]:
    """The variables of the crontab and its command, with other paths."""
    lines = [line for line in CRONTAB.splitlines() if line and line[0] != "#"]
    variables = dict(each.split("=", 1) for each in lines[:-1])
    times, command = re.fullmatch(r"((?:\S+ ){5})(\S.*)", lines[-1]).groups()
    assert times == "17 2 * * * " and "%" not in command
    variables["PATH"] = f"{Path(sys.executable).parent}:{variables['PATH']}"
    for name, value in variables.items():
        variables[name] = value.replace("/data/", f"{data}/").replace(".gz", "")
    return variables, command.replace("/opt/precis/examples/nightly", str(FOLDER))


def start(data: Path, name: str, **variables: str) -> subprocess.CompletedProcess:
    """Runs the command of the crontab as cron does, with a name for the night."""
    from_crontab, command = crontab(data)
    environment = {"HOME": os.environ["HOME"], **from_crontab, **variables}
    environment = {name: value for name, value in environment.items() if value}
    words = ["/bin/sh", "-c", f"{command} {name}"]
    how = {"env": environment, "capture_output": True, "timeout": 600}
    return subprocess.run(words, text=True, **how)


def counts(run: Path) -> dict[str, int]:
    """What became of the documents, without zeros."""
    manifest = json.loads((run / "manifest.json").read_bytes())
    return {name: count for name, count in manifest["counts"].items() if count}


@pytest.mark.slow
def test_nights_summarize_what_is_new_and_publish_it(tmp_path):
    write_jsonl(tmp_path / "news/1.jsonl", [line(1), line(2)])
    first = start(tmp_path, "a")
    assert (first.returncode, first.stdout, first.stderr) == (0, "", "")
    published = tmp_path / "nightly.published"
    assert counts(published)["written"] == 2
    # A second start of the same night, with nothing new, and one with a new file.
    assert start(tmp_path, "a").returncode == 0
    write_jsonl(tmp_path / "news/2.jsonl", [line(3)])
    again = start(tmp_path, "a")
    assert again.returncode == 2 and "name another --output" in again.stderr
    assert counts(published)["written"] == 2
    # The next night, with another file.
    write_jsonl(tmp_path / "news/3.jsonl", [line(4), line(5)])
    last = start(tmp_path, "b")
    assert (last.returncode, last.stdout, last.stderr) == (0, "", "")
    assert published.resolve() == tmp_path / "nightly" / "b"
    assert (counts(published)["written"], counts(published)["reused"]) == (3, 2)
    assert read_table(tmp_path) == [f"d00{number}" for number in range(1, 6)]


def read_table(data: Path) -> list[str]:
    """The ids in the table that the crontab names."""
    from pyiceberg.catalog import load_catalog

    uri = f"sqlite:///{data}/warehouse/catalog.db"
    table = load_catalog("precis", type="sql", uri=uri).load_table("news.summaries")
    return sorted(table.scan().to_arrow()["document_id"].to_pylist())


@pytest.mark.slow
def test_a_night_that_fails_says_why_and_leaves_what_is_published(tmp_path):
    write_jsonl(tmp_path / "news/1.jsonl", [line(1)])
    assert start(tmp_path, "a", TABLE="").returncode == 0
    write_jsonl(tmp_path / "news/2.jsonl", [line(2), *[b"{"] * 9])
    failed = start(tmp_path, "b", TABLE="")
    assert (failed.returncode, failed.stdout) == (1, "")
    lines = failed.stderr.splitlines()
    log = tmp_path / "nightly.logs" / "b.log"
    assert lines[0] == f"nightly: b ended with exit code 1; the end of {log}:"
    assert any(each.startswith("precis summarize: 9 of 11 ") for each in lines)
    assert (tmp_path / "nightly.published").resolve() == tmp_path / "nightly" / "a"


def test_one_start_at_a_time_works(tmp_path):
    with open(tmp_path / "nightly.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = start(tmp_path, "a")
    assert second.returncode == 75
    assert second.stderr == (
        f"nightly: the start before is still at work ({tmp_path}/nightly.lock); this "
        "one ends\n"
    )
    assert list((tmp_path / "nightly").iterdir()) == []
