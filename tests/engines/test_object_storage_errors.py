"""Tests of what commands say of `gs://`: faults in one line, and no secrets."""

import json
import os
import re
import subprocess
import sys

import pytest
from support.command_line import write_jsonl
from support.fault_proxy import Faults, fault_proxy
from support.gcs_emulator import gcs_emulator
from support.object_stores import files_with
from support.processes import closed_port

from precis.model import files

pytestmark = pytest.mark.engines

SECRET = "hunter2hunter2"


@pytest.fixture
def gcs(monkeypatch):
    """The endpoint of an emulator with empty buckets, at which `gs://` leads."""
    with gcs_emulator(buckets=["news", "secrets"]) as endpoint:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", endpoint)
        yield endpoint


# Runs each command of a list and shows its exit code and what it says.
_COMMANDS = """
import contextlib, io, json, os, sys
from precis.pipelines.command_line.cli import main
results = []
for arguments, variables in json.load(sys.stdin):
    os.environ.update(variables)
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        code = main(arguments)
    results.append((code, shown.getvalue()))
print(json.dumps(results))
"""


def run_commands(*commands, **variables):
    """Exit codes and outputs of commands, each with variables for it and those after
    it, and what the process says beside them.
    """
    result = subprocess.run(
        [sys.executable, "-c", _COMMANDS],
        input=json.dumps(commands),
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1]), result.stderr


def test_what_is_wrong_with_a_store_is_said_in_one_line(gcs, tmp_path):
    summary = ["summarize", "--corpus", "sample:9", "--output"]
    of_corpus = ["summarize", "--output", str(tmp_path / "out"), "--corpus"]
    with fault_proxy(gcs, Faults(forbidden=True)) as proxy, closed_port() as port:
        refused = {"STORAGE_EMULATOR_HOST": proxy.endpoint}
        dead = {"STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{port}"}
        results, beside = run_commands(
            ([*summary, "gs://nobucket/run"], {}),
            ([*of_corpus, "jsonl:gs://nobucket/*.jsonl"], {}),
            ([*of_corpus, "jsonl:gs://news/in/nothing-*.jsonl"], {}),
            (["verify", "gs://news/nothing"], {}),
            ([*summary, "gs://news/run"], refused),
            ([*of_corpus, "jsonl:gs://news/*"], refused),
            ([*summary, "gs://news/run"], dead),
        )
    expected = [
        (2, "gs://nobucket/run cannot be written: .* or no bucket nobucket; check the"),
        (1, r"gs://nobucket/\*.jsonl: .* or no bucket nobucket; check the name or cr"),
        (2, "no file matches gs://news/in/nothing-.*check the path"),
        (2, "gs://news/nothing"),
        (2, "gs://news/run cannot be written: .*no permission .*docs/ENGINES.md"),
        (2, r"gs://news/\*: no permission .*docs/ENGINES.md"),
        (2, f"127.0.0.1:{port} cannot be reached"),
    ]
    for (code, shown), (expected_code, words) in zip(results, expected, strict=True):
        (line,) = shown.strip().splitlines()
        assert re.search(words, line) and code == expected_code, line
    assert "Traceback" not in beside


def test_no_secret_is_written_or_shown(gcs, tmp_path):
    """Credentials in the environment, in files and in paths."""
    (tmp_path / "key.json").write_text(json.dumps({"private_key": SECRET}))
    corpus = write_jsonl(
        tmp_path / "news.jsonl", [{"id": "a", "article": "One two. Three."}]
    )
    signed = f"jsonl:https://h/x.jsonl?X-Goog-Signature={SECRET}"
    for output, more in (("run", []), ("run2", ["--verbose"])):
        begin = ["summarize", *more, "--corpus"]
        paths = (
            (corpus, f"gs://secrets/{output}"),
            (corpus, f"gs://user:{SECRET}@secrets/run3"),
            (corpus, "gs://nobucket/run4"),
            (signed, "gs://secrets/run5"),
        )
        results, beside = run_commands(
            *(([*begin, source, "--output", to], {}) for source, to in paths),
            AWS_SECRET_ACCESS_KEY=SECRET,
            GOOGLE_APPLICATION_CREDENTIALS=str(tmp_path / "key.json"),
        )
        assert [code for code, _ in results] == [0, 2, 2, 2]
        assert SECRET not in beside + "".join(shown for _, shown in results)
    assert files_with("gs://secrets/", SECRET) == []
    assert set(files.list_folder("gs://secrets")) == {"run", "run2"}
