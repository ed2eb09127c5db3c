"""Tests of what `precis doctor` says of an output: its disk, its owner, what lies in
it.
"""

import json
import os
import stat
import subprocess
import sys

import pytest
from support.command_line import contents
from support.disk_faults import full_disk
from support.doctor_runs import (
    diagnose,
    fill_disk,
    problems,
    request_of,
    small_disk,
    the_problem,
)

from precis.model import files
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import list_tasks
from precis.pipelines.doctor.output import (
    check_bundle_place,
    check_job,
    check_owner,
)
from precis.pipelines.doctor.place import (
    check_place,
    check_room,
    check_temporary_folder,
)
from precis.pipelines.run.output_lock import own_output
from precis.pipelines.summarize.summarize import summarize


def job_findings(output, *, command="summarize", corpus="sample:20", **flags):
    request = request_of(command, corpus=corpus, output=str(output), **flags)
    tasks = list_tasks(request.options(CorpusOptions))
    return list(check_job(request, tasks))


def level_and_text(findings):
    (finding,) = findings
    return finding.level, finding.found


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    summarize(corpus="sample:20", output=folder)
    return folder


def copied(folder, to):
    for name, content in contents(folder).items():
        files.write_bytes(str(to / name), content)
    return to


# Where it is written.


def test_an_output_that_can_be_written_is_left_as_it_was(tmp_path):
    output = tmp_path / "a" / "b"
    (finding,) = check_place(str(output))
    assert finding == ("ok", "output", f"{output} can be written", "")
    assert not list(tmp_path.iterdir())
    output.mkdir(parents=True)
    (output / "kept").write_text("x")
    assert [each.level for each in check_place(str(output))] == ["ok"]
    assert contents(output) == {"kept": b"x"}


def test_an_output_below_a_file_is_a_problem(tmp_path):
    (tmp_path / "file").write_text("x")
    for name in ("file", "file/out"):
        problem = the_problem(check_place(str(tmp_path / name)))
        assert problem.subject == "output"
        assert f"{tmp_path / name} cannot be written: " in problem.found
        assert "File exists" in problem.found or "Not a directory" in problem.found
        assert problem.advice == "name another --output"


def test_a_read_only_output_is_a_problem(tmp_path):
    with small_disk(tmp_path / "disk", size="64k") as folder:
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        problem = the_problem(check_place(str(folder / "out")))
    assert "Read-only file system" in problem.found
    assert problem.advice == "name another --output"


@pytest.mark.slow
def test_an_output_without_permission_is_a_problem(tmp_path):
    """In a process of another user, where this one may do everything."""
    for folder in (tmp_path, *tmp_path.parents[:-1]):
        folder.chmod(folder.stat().st_mode | stat.S_IXOTH | stat.S_IROTH)
    (tmp_path / "closed").mkdir(mode=0o555)
    code = (
        "import os, sys\n"
        "from precis.pipelines.doctor.place import check_place\n"
        "if os.getuid() == 0:\n"
        "    os.setuid(65534)\n"
        "print(*[each.found + '|' + each.advice for each in check_place(sys.argv[1])])"
    )
    output = str(tmp_path / "closed" / "out")
    done = subprocess.run(
        [sys.executable, "-c", code, output], capture_output=True, text=True
    )
    found, advice = done.stdout.strip().split("|")
    assert found.startswith(f"{output} cannot be written: ")
    assert "Permission denied" in found
    assert advice == "name another --output"


def test_a_full_disk_is_a_problem(tmp_path):
    with small_disk(tmp_path / "disk", size="64k") as folder:
        fill_disk(folder)
        problem = the_problem(check_place(str(folder / "out")))
        assert os.listdir(folder) == ["other.bin"]
    assert "No space left on device" in problem.found
    assert problem.advice == "make room and run the same command again"


def test_a_disk_that_becomes_full_while_the_probe_is_written_is_a_problem(tmp_path):
    for first in range(3):
        with full_disk(first):
            problem = the_problem(check_place(str(tmp_path)))
        assert "No space left on device" in problem.found
        assert problem.advice.startswith("make room")
    assert not list(tmp_path.iterdir())


def room_findings(folder, **keywords):
    (finding,) = check_room(str(folder), **keywords)
    return finding


def test_the_room_is_compared_with_the_result(tmp_path):
    """Pieces and parts lie there together."""
    with small_disk(tmp_path / "disk", size="1m") as folder:
        sizes = {100e3: "ok", 300e3: "warning", 600e3: "problem"}
        found = {
            size: room_findings(folder / "out", estimated_bytes=size) for size in sizes
        }
        unknown = room_findings(folder, estimated_bytes=None)
    assert {size: finding.level for size, finding in found.items()} == sizes
    assert "the result takes about 600 KB, and 1.2 MB while" in found[600e3].found
    assert found[600e3].advice == "make room, or name an --output on another disk"
    assert unknown[0] == "warning" and unknown.advice.startswith("make room")
    assert room_findings(tmp_path, estimated_bytes=None)[0] == "ok"
    remote = room_findings("memory://bucket/out", estimated_bytes=5e6)
    assert remote[:3] == ("note", "disk", "the result takes about 5 MB")


def test_next_to_no_room_for_temporary_files_is_a_warning(tmp_path, monkeypatch):
    assert list(check_temporary_folder()) == []
    with small_disk(tmp_path / "disk", size="64k") as folder:
        monkeypatch.setattr("tempfile.tempdir", str(folder))
        (finding,) = check_temporary_folder()
    assert finding.level == "warning" and "TMPDIR" in finding.advice


def test_no_folder_for_temporary_files_is_a_problem(monkeypatch):
    def refuse():
        raise FileNotFoundError("No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr("tempfile.gettempdir", refuse)
    problem = the_problem(check_temporary_folder())
    assert "No usable temporary directory" in problem.found


# Whose it is.


def test_an_output_that_another_process_owns_is_a_problem(tmp_path):
    output = str(tmp_path / "out")
    assert list(check_owner(output)) == []
    with own_output(output):
        lock = contents(output)
        with pytest.raises(Exception, match="is in use by process") as raised:
            list(check_owner(output))
        assert f"process {os.getpid()} on " in str(raised.value)
        assert "wait, or name another --output" in str(raised.value)
        assert contents(output) == lock


def test_the_lock_of_a_dead_process_is_no_problem(tmp_path):
    path = tmp_path / "_tasks" / "lock.json"
    path.parent.mkdir()
    path.write_text('{"host": "here", "pid": 1}')
    assert list(check_owner(str(tmp_path))) == []
    assert path.exists()


# What lies in it.


def test_a_new_output_holds_no_job(tmp_path):
    for command in ("summarize", "prepare"):
        level, text = level_and_text(job_findings(tmp_path / "out", command=command))
        assert (level, text) == ("ok", f"no job lies in {tmp_path / 'out'}")
    assert not list(tmp_path.iterdir())


def test_a_stale_partial_run_with_other_settings_is_refused(finished, tmp_path):
    unfinished(finished, tmp_path)
    before = contents(tmp_path)
    with pytest.raises(Exception, match="holds an unfinished job with other") as raised:
        job_findings(tmp_path, extractive="lead")
    assert "extractive is 'frequency,lead' there and 'lead' here" in str(raised.value)
    assert str(raised.value).endswith(
        "; finish that one, name another --output, or remove that folder"
    )
    assert contents(tmp_path) == before


def unfinished(finished, folder):
    """What the same job leaves in a folder when it is killed after its first step."""
    request = request_of("summarize", corpus="sample:20", output=str(folder))
    from precis.pipelines.doctor.trial import read_summary_settings
    from precis.pipelines.flags.flags import recorded_flags
    from precis.pipelines.run.job import open_job
    from precis.pipelines.summarize.summarize import run_inputs

    tasks = list_tasks(request.options(CorpusOptions))
    inputs = run_inputs(
        recorded_flags(request.concerns), read_summary_settings(request), tasks
    )
    open_job(str(folder), kind="summaries", inputs=inputs, tasks=len(tasks))
    (folder / "_tasks" / "scan").mkdir()
    (folder / "_tasks" / "scan" / "00000.json").write_text("{}")


def test_an_unfinished_run_of_the_same_job_goes_on(finished, tmp_path):
    unfinished(finished, tmp_path)
    before = contents(tmp_path)
    level, text = level_and_text(job_findings(tmp_path))
    assert level == "note"
    assert "not finished, with 1 receipts of tasks; it goes on" in text
    assert contents(tmp_path) == before


def test_the_finished_result_of_the_same_job_is_a_note(finished):
    level, text = level_and_text(job_findings(finished))
    assert level == "note" and "holds the finished result of this very job" in text


def test_a_damaged_result_of_the_same_job_is_a_warning(finished, tmp_path):
    folder = copied(finished, tmp_path)
    (part,) = folder.glob("data/*.parquet")
    part.write_bytes(part.read_bytes()[:-1])
    before = contents(folder)
    level, text = level_and_text(job_findings(folder))
    assert level == "warning" and f"data/{part.name} of it is damaged" in text
    assert contents(folder) == before


def test_a_finished_result_of_another_job_is_refused_unless_it_is_reused(finished):
    with pytest.raises(Exception, match="holds the finished result of another job"):
        job_findings(finished, sentences=1)
    level, text = level_and_text(
        job_findings(finished, sentences=1, reuse=str(finished))
    )
    assert level == "note" and "which the new one replaces" in text


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("x")
    with pytest.raises(Exception, match="is not empty and no job of precis began it"):
        job_findings(tmp_path)


def test_a_training_is_kept_from_a_bundle_of_another_kind(tmp_path):
    flags = {"records": "r", "output": str(tmp_path)}
    request = request_of("train-extractor", **flags)
    assert not problems(check_bundle_place(request))
    (tmp_path / "training").mkdir()
    (finding,) = check_bundle_place(request)
    assert finding.level == "note" and "holds the state of a training" in finding.found
    manifest = {"kind": "abstractive", "sha256": {}, "model_id": "x"}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(Exception, match="holds a bundle of the kind abstractive"):
        list(check_bundle_place(request))


def test_a_run_that_is_read_must_be_there(finished, tmp_path, capsys):
    report = ("report", str(finished), "--output", str(tmp_path / "new" / "page.html"))
    code, findings = diagnose(capsys, *report)
    found = [finding.found for finding in findings if finding.subject == "run"]
    assert code == 0 and len(found) == 1 and found[0].endswith(" with 20 rows")
    for words in (
        ("loaders", "none", "--for", "duckdb"),
        (*report, "--compare", "none"),
    ):
        code, findings = diagnose(capsys, *words)
        problem = the_problem(findings)
        assert (code, problem.subject) == (1, "run")
        assert problem.found == "none holds no run: manifest.json is not there"
        assert problem.advice == "give the --output of `precis summarize`"
    assert not list(tmp_path.iterdir())
