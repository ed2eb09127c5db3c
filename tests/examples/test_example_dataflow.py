"""Tests of examples/dataflow/launch.sh: what it would start is what precis and Beam
read of its flags.

`precis` is a program here that notes its words; its parsers read them afterwards.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from precis.pipelines.command_line.commands import COMMANDS
from precis.pipelines.command_line.parser import read_arguments
from precis.pipelines.run.options import read_flags

EXAMPLE = Path(__file__).parents[2] / "examples" / "dataflow" / "launch.sh"
NOTE = """\
#!{python}
import json, sys
with open("{words}", "a") as file:
    print(json.dumps(sys.argv[1:]), file=file)
sys.exit(sys.argv[1] == "doctor" and "--fail" in sys.argv)
"""
SETTINGS = {"PROJECT": "project-1", "REGION": "europe-west4", "BUCKET": "news-bucket"}


@pytest.fixture
def launch(tmp_path):
    """Runs the script; the exit code, stderr, and the words of each command."""
    program, words = tmp_path / "bin" / "precis", tmp_path / "words"
    program.parent.mkdir()
    program.write_text(NOTE.format(python=sys.executable, words=words))
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"

    def run(*arguments: str, **variables: str):
        how = {"env": {"PATH": path, **variables}, "capture_output": True}
        done = subprocess.run([EXAMPLE, *arguments], text=True, timeout=60, **how)
        lines = words.read_text().splitlines() if words.exists() else []
        return done.returncode, done.stderr, [json.loads(line) for line in lines]

    return run


def read_summarize(words: list[str]):
    """The options of `precis summarize` and those of Beam."""
    from precis.pipelines.engines.beam_runner import pipeline_options

    command = COMMANDS["summarize"]
    assert words[0] == "summarize"
    given = read_arguments("summarize", command, words[1:])
    read_flags(command.option_groups, given.flags)
    return given.flags, pipeline_options(given.beam_args).get_all_options()


def test_the_job_is_checked_and_then_started(launch):
    variables = {**SETTINGS, "BUNDLE": "gs://news-bucket/bundle", "WORKERS": "3"}
    code, _, commands = launch("nov-23", "--beam_width", "6", **variables)
    assert code == 0
    doctor, summarize = commands
    assert doctor == ["doctor", *summarize]
    flags, options = read_summarize(summarize)
    assert flags == {
        "corpus": "jsonl:gs://news-bucket/news/*.jsonl.gz",
        "output": "gs://news-bucket/runs/nov-23",
        "bundle": "gs://news-bucket/bundle",
        "beam_width": 6,
    }
    image = "europe-west4-docker.pkg.dev/project-1/images/precis:cpu"
    expected = {"runner": "DataflowRunner", "job_name": "precis-nov-23"}
    expected |= {"project": "project-1", "region": "europe-west4"}
    expected |= {"temp_location": "gs://news-bucket/tmp", "sdk_container_image": image}
    expected |= {"machine_type": "e2-standard-4", "max_num_workers": 3}
    expected["number_of_worker_harness_threads"] = 1
    assert {name: options[name] for name in expected} == expected


def test_without_a_name_the_run_has_that_of_the_day(launch):
    _, _, commands = launch("--num_workers", "2", **SETTINGS)
    flags, options = read_summarize(commands[1])
    assert "bundle" not in flags
    prefix, _, date = flags["output"].rpartition("/")
    assert prefix == "gs://news-bucket/runs"
    assert len(date) == 10 and options["job_name"] == f"precis-{date}"
    assert options["num_workers"] == 2


def test_nothing_starts_where_the_doctor_has_a_problem(launch):
    code, _, commands = launch("a", "--fail", **SETTINGS)
    assert code == 1
    assert [words[0] for words in commands] == ["doctor"]
