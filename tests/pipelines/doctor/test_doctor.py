"""Tests of `precis doctor`: its command line, and faults that are seeded for real.
Nothing is left behind.
"""

import importlib.metadata

import pytest
from support.chat_server import ChatServer
from support.command_line import contents, exit_code, write_jsonl
from support.processes import closed_port
from support.summarize_runs import story

import precis
from precis.model.errors import DataError, UsageError
from precis.pipelines.command_line.run_command import _read
from precis.pipelines.doctor.doctor import _checked

SUMMARIZE = ("summarize", "--corpus", "sample:20", "--output", "out")


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    """An empty folder to work in, and a machine on which nobody has logged in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "STORAGE_EMULATOR_HOST"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def diagnose(capsys, workplace):
    """A function that runs the doctor: its exit code and the lines that it prints; the
    folder is as it was.
    """

    def run(*words):
        before = contents(workplace)
        capsys.readouterr()
        code = exit_code("doctor", *words)
        assert contents(workplace) == before
        return code, capsys.readouterr().out.splitlines()

    return run


@pytest.fixture
def problem(diagnose):
    """A function that returns the words of the only problem, which is of the job."""

    def run(*words):
        code, lines = diagnose(*words)
        (line,) = [line for line in lines if line.startswith("problem ")]
        assert code == 1 and lines[-1].startswith("1 problem, 0 warnings for `precis ")
        _, subject, text = line.split(maxsplit=2)
        assert subject == "job"
        return text

    return run


def failing(error):
    raise error
    yield


def test_what_a_check_raises_is_a_finding():
    for error, found, advice in (
        (DataError("a: damaged (x; y);\n copy it"), "a: damaged (x; y)", "copy it"),
        (UsageError("no way out"), "no way out", "run `precis doctor` again"),
        (OSError(13, "no", "a"), "a: no", "give this user access, or name another"),
        (RuntimeError("first\nsecond"), "RuntimeError: first", "again"),
    ):
        (last,) = _checked("corpus", failing(error))
        assert last[:3] == ("problem", "corpus", found) and advice in last.advice


def test_the_words_behind_doctor_are_a_command_line_and_a_function_takes_them(tmp_path):
    config = tmp_path / "run.yaml"
    config.write_text("corpus: sample:20\nbeam_width: 2\nrunner: FnApiRunner\n")
    words = f"--quiet summarize --config {config} --output o --beam_width 3"
    flags = _read("doctor", [*words.split(), "--parallelism", "2"]).flags
    assert flags["beam_args"] == ["--runner=FnApiRunner", "--parallelism", "2"]
    expected = {"corpus": "sample:20", "output": "o", "beam_width": 3}
    assert (flags["command"], flags["flags"]) == ("summarize", expected)
    with pytest.raises(UsageError, match="unknown command 'prepre'; did you mean"):
        precis.doctor(command="prepre")
    findings = precis.doctor(command="digest", flags={})
    assert findings[-1][:2] == ("problem", "flags")


def test_a_wrong_command_line_exits_with_2(capsys):
    for line, message in (
        ("sumarize", "unknown command 'sumarize'; did"),
        ("doctor", "unknown command 'doctor'; "),
        ("xyz", "unknown command 'xyz'; `precis --help` lists the commands"),
        ("--quit", "unknown flag --quit; did you mean --quiet?"),
        ("train --recods=r", "unknown flag --recods; did you mean --records?"),
        ("verify a b", "unexpected argument 'b'; did you mean --"),
    ):
        assert exit_code("doctor", *line.split()) == 2
        out, err = capsys.readouterr()
        assert err.startswith(f"precis doctor: {message}") and not out


@pytest.mark.slow
def test_an_installation_says_what_it_has(diagnose):
    code, lines = diagnose()
    assert code == 0 and lines[-1] == "0 problems, 0 warnings for this installation"
    assert {"python", "packages", "cores"} <= {line.split()[1] for line in lines}
    assert "languages" in " ".join(lines)
    (line,) = [line for line in lines if "accelerator" in line]
    assert "TensorFlow " in line and "1 CPU" in line


def test_without_a_fault_there_is_no_problem(diagnose, workplace):
    write_jsonl(workplace / "news.jsonl", map(story, range(12)))
    code, lines = diagnose("summarize", "--corpus=jsonl:news.jsonl", "--output=out")
    found = [" ".join(line.split()[:2]) for line in lines[:-1]]
    assert found == ["ok python", "ok packages", "ok job"]
    assert code == 0 and lines[-1] == "0 problems, 0 warnings for `precis summarize`"


def test_a_missing_package_is_a_problem_for_the_command_that_needs_it(
    problem, diagnose, monkeypatch
):
    find, hidden = importlib.metadata.version, "matplotlib"

    def version(name):
        if name == hidden:
            raise importlib.metadata.PackageNotFoundError(name)
        return find(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    lines = diagnose("attention", "--bundle", "b", "--text", "t", "--output", "o")[1]
    missing = "extra report: matplotlib is not installed -> pip install "
    assert f"problem  packages  {missing}'precis-corpus[report]'" in lines
    assert diagnose("digest", "r")[0] == 0  # It needs no extra.
    hidden = "pyyaml"
    assert "precis itself: pyyaml is not" in " ".join(diagnose("digest", "r")[1])


def test_a_package_of_a_wrong_version(diagnose, tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("site") / "keras-2.15.0.dist-info"
    folder.mkdir()
    content = "Metadata-Version: 2.1\nName: keras\nVersion: 2.15.0\n"
    (folder / "METADATA").write_text(content)
    monkeypatch.syspath_prepend(folder.parent)
    message = "extra train: keras is 2.15.0, but precis-corpus needs <4,>=3.15"
    lines = diagnose("train", "--records", "r", "--output", "b")[1]
    assert message in " ".join(lines)


def test_what_the_start_of_a_job_refuses_is_a_problem(problem):
    for words, message in (
        ("summarize --corpus jsonl:none/*.j --output o", "no file matches none/*.j"),
        ("summarize --text a", "--corpus is needed: the corpus"),
        ("prepare --corpus sample:9 --output o --task_bytes 0", "--task_bytes must be"),
        ("summarize --corpus sample:9 --output o --runner=F", "--runner F is unknow"),
        ("summarize --corpus sample:9 --output o --bundle none", "none"),
    ):
        assert problem(*words.split()).startswith(message)


def test_engines_buckets_and_servers_are_asked(problem, diagnose, monkeypatch):
    flags = (*SUMMARIZE, "--max_words", "9", "--clean", "none", "--bundle")
    with closed_port() as port:
        place = f"127.0.0.1:{port}"
        text = problem(*SUMMARIZE, "--runner=FlinkRunner", "--flink_master", place)
        assert f"{place}: no Flink job manager answers there" in text
        assert "-> start the cluster, or give the address" in text
        text = problem(*flags, f"openai://{place}/v1#m")
        assert f"{place}/v1 answers no request" in text
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://{place}")
        text = problem("summarize", "--corpus=jsonl:gs://in/a.jsonl", "--output=o")
        assert "cannot be reached (Connection refused)" in text
    # A server is asked a small question.
    server = ChatServer({})
    with server.serve() as bundle:
        code, lines = diagnose(*flags, bundle)
    assert code == 0 and f"{bundle} answers" in lines[-2]
    assert server.asked == {-1: 1}
