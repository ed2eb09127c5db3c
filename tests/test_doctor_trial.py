"""Tests of the trial of `precis doctor`: ten documents through the job's own pipeline,
in a fresh process.
"""

import os
import sys
import threading
from pathlib import Path

import apache_beam as beam
import pytest
from support.command_line import contents, write_jsonl
from support.doctor_runs import diagnose, request_of, run_check, the_problem
from support.summarize_runs import story

import precis
from precis.pipelines.doctor import trial
from precis.pipelines.doctor.fresh_process import Ended, run_module
from precis.pipelines.doctor.sample import check_corpus
from precis.pipelines.doctor.trial import try_documents
from precis.pipelines.doctor.trial_process import peak_bytes
from precis.pipelines.summarize import summarize


@pytest.fixture(scope="module")
def news(tmp_path_factory):
    path = tmp_path_factory.mktemp("news") / "news.jsonl"
    return write_jsonl(path, map(story, range(30)))


def sample_of(request):
    return run_check(check_corpus(request))[1]


def try_all(request, sample):
    return run_check(try_documents(request, sample))


def write_module(folder, monkeypatch, code):
    """A module `tried` that a fresh process can run."""
    Path(folder, "tried.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(folder))


def test_a_process_that_ends_well_gives_its_output(tmp_path, monkeypatch):
    write_module(tmp_path, monkeypatch, "import sys; print(sys.argv[1:])")
    ended = run_module("tried", "a", "b", seconds=60)
    assert (ended.stdout, ended.reason) == ("['a', 'b']\n", "")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import os; os.kill(os.getpid(), 9)", "ended by SIGKILL, most often because"),
        ("import os; os.abort()", "it was ended by SIGABRT"),
        ("raise ValueError('why')", "ValueError: why"),
        ("import time; time.sleep(60)", "it did not end within 1 seconds"),
    ],
)
def test_a_process_that_fails_says_why(code, reason, tmp_path, monkeypatch):
    write_module(tmp_path, monkeypatch, code)
    assert reason in run_module("tried", seconds=1 if "sleep" in code else 60).reason


def test_the_peak_of_a_process_is_its_own(tmp_path, monkeypatch):
    """A large parent does not count: its child is another program."""
    large = bytearray(os.urandom(1)) * (300 << 20)
    assert peak_bytes() > len(large)
    code = (
        "from precis.pipelines.doctor.trial_process import peak_bytes\n"
        "print(peak_bytes())"
    )
    write_module(tmp_path, monkeypatch, code)
    assert int(run_module("tried", seconds=60).stdout) < 200 << 20


@pytest.mark.slow
def test_what_cannot_be_serialised_for_a_worker_is_found(news, monkeypatch):
    """Beam serialises what a pipeline holds before it starts anything."""
    from precis.pipelines.doctor.findings import checked

    def build(pipeline, *arguments, **keywords):
        lock = threading.Lock()
        _ = pipeline | beam.Create([1]) | beam.Map(lambda item: (item, lock))

    monkeypatch.setattr(summarize, "add_steps", build)
    request = request_of("summarize", corpus=news, output="out")
    findings = checked("trial", try_documents(request, sample_of(request)))
    assert "lock" in the_problem(findings).found


def test_a_vocabulary_needs_a_training_document(news):
    flags = {"corpus": news, "validation_share": 0, "test_share": 1}
    request = request_of("prepare", output="out", **flags)
    findings, measured = try_all(request, sample_of(request))
    assert measured is None
    assert [finding.level for finding in findings] == ["note"]
    assert "no vocabulary can be learned" in findings[0].found


def test_a_run_without_references_cannot_be_scored(tmp_path):
    lines = [{"article": story(0)["article"]}]
    corpus = write_jsonl(tmp_path / "a.jsonl", lines)
    precis.summarize(corpus=corpus, output=tmp_path / "run")
    request = request_of("evaluate", input=str(tmp_path / "run"))
    with pytest.raises(Exception, match="no row of .* has a reference summary; run "):
        list(try_documents(request, None))
    request = request_of("evaluate", input=str(tmp_path / "run"), baseline="leed")
    with pytest.raises(Exception, match="there is no system 'leed'"):
        list(try_documents(request, None))


@pytest.mark.slow
def test_a_process_that_dies_in_the_trial_is_a_problem(news, tmp_path, monkeypatch):
    """As it does where memory runs out."""
    write_module(tmp_path, monkeypatch, "import os; os.kill(os.getpid(), 9)")
    real = trial.run_module
    monkeypatch.setattr(
        trial, "run_module", lambda module, *rest, seconds: real("tried", seconds=60)
    )
    request = request_of("summarize", corpus=news, output="out")
    findings, measured = try_all(request, sample_of(request))
    assert measured is None
    assert "it was ended by SIGKILL" in the_problem(findings).found


@pytest.mark.slow
def test_what_only_fails_on_a_worker_fails_in_the_trial(
    news, bundle, tmp_path, monkeypatch
):
    """The bundle is whole here, and the workers' Python lacks a package of it."""
    Path(tmp_path, "sitecustomize.py").write_text(
        "import sys\nsys.modules['safetensors'] = None\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    request = request_of("summarize", corpus=news, output="out", bundle=str(bundle))
    findings, measured = try_all(request, sample_of(request))
    assert measured is None
    problem = the_problem(findings)
    assert problem.found.startswith("in a fresh process: ")
    assert "safetensors" in problem.found


@pytest.mark.slow
def test_documents_that_fail_on_the_worker_are_a_warning(tmp_path, bundle):
    """The long one is refused, as the flags want it."""
    lines = [story(number) for number in range(3)]
    lines.append({"id": "short", "article": "Rain fell on Monday."})
    corpus = write_jsonl(tmp_path / "a.jsonl", lines)
    flags = {"bundle": str(bundle), "long_documents": "reject", "min_source_words": 0}
    request = request_of("summarize", corpus=corpus, output="out", **flags)
    (finding,), measured = try_all(request, sample_of(request))
    assert finding.level == "warning"
    assert finding.found.endswith("failed 3, written 1 (encode/too_long 3)")
    assert "--max_failed_share 0.01" in finding.advice
    assert measured.peak_bytes > 300 << 20  # TensorFlow alone takes that.


@pytest.mark.slow
def test_each_job_is_tried_and_nothing_is_left_behind(
    news, bundle, tmp_path, monkeypatch, capsys
):
    """`prepare`, `summarize` with a network and `evaluate` in one folder."""
    monkeypatch.chdir(tmp_path)
    code, findings = diagnose(
        capsys, "prepare", "--corpus", news, "--output", "records"
    )
    assert (code, [each for each in findings if each.level != "ok"]) == (0, [])
    network = ("--bundle", str(bundle), "--long_documents", "head")
    argv = ("summarize", "--corpus", news, "--output", "run", *network)
    code, findings = diagnose(capsys, *argv, "--search_processes", "1")
    assert (code, [each for each in findings if each.level != "ok"]) == (0, [])
    subjects = [finding.subject for finding in findings]
    assert subjects == [
        *("python", "packages", "cores", "memory", "accelerator", "output", "bundle"),
        *("engine", "corpus", "corpus", "output", "trial", "memory", "disk"),
    ]
    assert "written 10" in findings[11].found
    assert not list(tmp_path.iterdir())
    precis.summarize(corpus=news, output="run")
    before = contents(tmp_path)
    code, findings = diagnose(capsys, "evaluate", "--input", "run")
    assert (code, [each for each in findings if each.level != "ok"]) == (0, [])
    (trial,) = [finding for finding in findings if finding.subject == "trial"]
    assert "rows with a reference scored in a fresh process" in trial.found
    assert contents(tmp_path) == before


@pytest.mark.slow
def test_the_estimate_of_the_result_is_that_of_a_run(news, tmp_path):
    request = request_of("summarize", corpus=news, output=str(tmp_path / "run"))
    sample = sample_of(request)
    _, measured = try_all(request, sample)
    precis.summarize(corpus=news, output=tmp_path / "run")
    written = sum(path.stat().st_size for path in tmp_path.glob("run/data/*"))
    estimated = sample.documents * measured.document_bytes
    assert 0.3 * written < estimated < 3 * written


def test_this_interpreter_is_the_one_of_fresh_processes(tmp_path, monkeypatch):
    write_module(tmp_path, monkeypatch, "import sys; print(sys.executable)")
    assert run_module("tried", seconds=60).stdout.strip() == sys.executable


def test_a_picture_is_drawn_into_a_folder(tmp_path, bundle, capsys, monkeypatch):
    """The commands without a trial are checked for what they read and write."""
    picture = tmp_path / "picture.png"
    picture.write_bytes(b"old")
    (tmp_path / "text.txt").write_text("Rain.")
    monkeypatch.setattr(
        "precis.pipelines.doctor.accelerator.run_module",
        lambda *_, seconds: Ended("", "illegal instruction"),
    )
    argv = ("attention", "--bundle", str(bundle), "--text", "text.txt")
    code, findings = diagnose(capsys, *argv, "--output", str(picture))
    assert code == 1
    problem = the_problem(findings)
    assert problem.found == "TensorFlow does not start: illegal instruction"
    assert problem.advice.startswith("pip install --force-reinstall 'precis[network]'")
    found = [finding.found for finding in findings if finding.subject == "output"]
    assert found == [f"{tmp_path} can be written"]
    assert picture.read_bytes() == b"old"


def test_an_evaluation_of_a_pattern_names_its_output(capsys):
    code, findings = diagnose(capsys, "evaluate", "--input", "runs/*.parquet")
    assert code == 1
    assert findings[4].found == (
        "--output is needed where --input is a pattern of files"
    )
