"""Ten faults, each seeded for real, and what `precis doctor` says of a whole command
line that meets it. Nothing is left behind.
"""

import shutil
import subprocess

import pytest
from support.command_line import contents, write_jsonl
from support.doctor_runs import (
    diagnose,
    fill_disk,
    hide_module,
    install_metadata,
    small_disk,
    the_problem,
    write_machine,
)
from support.processes import closed_port
from support.summarize_runs import story

from precis.model.errors import PrecisError
from precis.pipelines.doctor import machine
from precis.pipelines.summarize.summarize import summarize

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    """A folder with a corpus, in which commands run."""
    write_jsonl(tmp_path / "news.jsonl", map(story, range(12)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def check(capsys, workplace):
    """A function that runs the doctor over `precis summarize` and returns its only
    problem; the folder is as it was.
    """

    def run(*more, corpus="jsonl:news.jsonl", output="out"):
        before = contents(workplace)
        argv = ("summarize", "--corpus", corpus, "--output", str(output), *more)
        code, findings = diagnose(capsys, *argv)
        assert code == 1
        assert contents(workplace) == before
        return the_problem(findings)

    return run


def test_without_a_fault_there_is_no_problem(capsys, workplace):
    argv = ("summarize", "--corpus", "jsonl:news.jsonl", "--output", "out")
    code, findings = diagnose(capsys, *argv)
    assert (code, {finding.level for finding in findings}) == (0, {"ok"})
    assert list(contents(workplace)) == ["news.jsonl"]


def test_1_a_missing_extra(check, monkeypatch):
    hide_module(monkeypatch, "apache_beam")
    problem = check()
    assert problem[1:] == (
        "packages",
        "apache-beam of extra beam cannot be imported",
        "pip install 'precis[beam]'",
    )


def test_2_a_package_of_a_wrong_version(check, tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("site")
    install_metadata(folder, "pyarrow", "14.0.2")
    monkeypatch.syspath_prepend(folder)
    problem = check()
    assert problem[1:] == (
        "packages",
        "pyarrow is 14.0.2, and precis works with >=25",
        "pip install 'pyarrow>=25'",
    )


def test_3_a_read_only_output(check, tmp_path_factory):
    with small_disk(tmp_path_factory.mktemp("mounted"), size="64k") as folder:
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        problem = check(output=folder / "out")
    assert problem.subject == "output" and "Read-only file system" in problem.found
    assert problem.advice == "name another --output"


def test_4_a_full_disk(check, tmp_path_factory):
    with small_disk(tmp_path_factory.mktemp("mounted"), size="64k") as folder:
        fill_disk(folder)
        problem = check(output=folder / "out")
    assert problem.subject == "output" and "No space left on device" in problem.found
    assert problem.advice == "make room and run the same command again"


def test_4_a_disk_with_too_little_room_for_the_result(check, tmp_path_factory):
    """It has room for what the trial of the output writes, and not for the rows."""
    lines = [story(number) for number in range(600)]
    corpus = write_jsonl(tmp_path_factory.mktemp("large") / "news.jsonl", lines)
    with small_disk(tmp_path_factory.mktemp("mounted"), size="512k") as folder:
        problem = check(corpus=corpus, output=folder / "out")
    assert problem.subject == "disk" and "the result takes about" in problem.found
    assert problem.advice == "make room, or name an --output on another disk"


def test_5_a_field_that_the_corpus_does_not_have(check):
    problem = check("--article_field", "body")
    assert problem.subject == "corpus" and "'body'" in problem.found
    assert "--article_field" in problem.found + problem.advice


def test_6_an_edited_bundle(check, bundle, workplace):
    folder = shutil.copytree(bundle, workplace / "bundle")
    config = folder / "config.json"
    config.write_text(config.read_text().replace('"heads": 2', '"heads": 4'))
    problem = check("--bundle", "bundle")
    assert problem.subject == "bundle"
    assert problem.found.startswith("bundle: config.json: ")
    assert "its checksum differs from manifest.json's" in problem.found
    assert problem.advice == "copy the bundle again or train it again"


def test_7_an_unreachable_engine(check):
    with closed_port() as port:
        address = f"127.0.0.1:{port}"
        problem = check("--runner", "FlinkRunner", "--flink_master", address)
    assert problem.subject == "engine"
    assert f"--flink_master {address}: no Flink job manager" in problem.found
    assert problem.advice.startswith("start the cluster, or give the address")


def test_8_no_credentials(check, monkeypatch, tmp_path_factory):
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "STORAGE_EMULATOR_HOST"):
        monkeypatch.delenv(name, raising=False)
    home = str(tmp_path_factory.mktemp("home"))
    monkeypatch.setenv("HOME", home)
    monkeypatch.setenv("CLOUDSDK_CONFIG", home)
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    problem = check(output="gs://bucket/out")
    assert problem.subject == "credentials"
    assert problem.found == "there are no credentials for gs://"
    assert "gcloud auth application-default login" in problem.advice


def test_9_too_little_memory_for_the_workers(check, monkeypatch, tmp_path_factory):
    """A container of 1 GB, as the files of its control group say."""
    root = write_machine(
        tmp_path_factory.mktemp("machine"), free_kb=15_000_000, limit="1000000000"
    )
    read_memory = machine.read_memory
    monkeypatch.setattr(machine, "read_memory", lambda: read_memory(root))
    problem = check("--workers", "12", "--task_bytes", "100")
    assert problem.subject == "memory"
    assert problem.found.startswith("12 processes of ")
    assert "(limit: cgroup), enough for " in problem.found
    assert problem.advice.startswith("give --workers ")


def test_10_a_stale_partial_run(check, workplace, monkeypatch):
    """A run of other settings was killed when it had begun."""

    def die(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("precis.pipelines.summarize.summarize.run_pipeline", die)
    with pytest.raises((KeyboardInterrupt, PrecisError)):
        summarize(corpus="jsonl:news.jsonl", output="out", sentences=5)
    assert (workplace / "out" / "_tasks" / "job.json").exists()
    problem = check()
    assert problem.subject == "output"
    assert "holds an unfinished job with other settings" in problem.found
    assert "sentences is 5 there and 0 here" in problem.found
    assert problem.advice == (
        "finish that one, name another --output, or remove that folder"
    )
