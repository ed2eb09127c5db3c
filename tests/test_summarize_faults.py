"""Fault injection: a job that is killed, whose disk is full or whose files are damaged
at any step of its publication ends as an undisturbed one, or in one line.
"""

import hashlib
import json

import pytest
from support.command_line import contents, error_lines, precis, write_jsonl
from support.disk_faults import all_states, damages, full_disk, restore

from precis.model.errors import PrecisError
from precis.model.files import ASIDE
from precis.pipelines.summarize import summarize

pytestmark = pytest.mark.usefixtures("one_time")

_TEXT = "Rain fell on {0} Street. Nobody came to it, {0} times. It was cold and dark."


def lines_of(corpus_of):
    """Documents, repeated ones, an empty one and a broken line."""
    texts = [_TEXT.format(number) for number in (*range(8), 3, 3)]
    lines = [
        {"id": f"{corpus_of}{number}", "article": text}
        for number, text in enumerate(texts)
    ]
    return [*lines, {"id": "empty", "article": ""}, "{broken"]


class Job:
    """A job in a folder.

    Attributes:
      output: the folder.
      flags: of `precis summarize`, with the output.
      before: what is in the folder before.
      states: every state of the folder while the job runs.
    """

    def __init__(self, folder, **flags):
        self.output = folder / "run"
        corpus = write_jsonl(folder / "corpus" / "a.jsonl", lines_of("a"))
        self.flags = {
            "corpus": corpus,
            "output": self.output,
            "task_bytes": 700,
            "min_source_words": 0,
            "max_failed_share": 0.5,
            **flags,
        }
        self.before = contents(self.output) if self.output.exists() else {}
        self.states = all_states(self.output, self.run)
        self.result = self.states[-1]

    def run(self):
        """Runs the job."""
        return summarize(**self.flags)

    def check_finishes(self):
        """Runs the job and asserts that it ends as it did undisturbed."""
        self.run()
        assert contents(self.output) == self.result

    def check_readable(self, state):
        """Asserts that a folder that is marked as finished holds a whole result, this
        one or the one from before.
        """
        if "_SUCCESS" in state:
            assert state["_SUCCESS"] in (
                self.result["_SUCCESS"],
                self.before.get("_SUCCESS"),
            )
            manifest = json.loads(state["manifest.json"])
            for file in (*manifest["files"], *manifest["dead_letters"]):
                digest = hashlib.sha256(state[file["file"]]).hexdigest()
                assert digest == file["sha256"]


@pytest.fixture(scope="module")
def new(tmp_path_factory):
    """A job in a new folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        return Job(tmp_path_factory.mktemp("new"))


@pytest.fixture(scope="module")
def replacing(tmp_path_factory):
    """A job that replaces its earlier result, of a corpus that has grown."""
    folder = tmp_path_factory.mktemp("replacing")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        Job(folder)
        write_jsonl(folder / "corpus" / "b.jsonl", lines_of("b")[3:])
        corpus = f"jsonl:{folder}/corpus/*.jsonl"
        return Job(folder, corpus=corpus, reuse=folder / "run")


@pytest.fixture
def job(request):
    """The job that a test is parametrized with."""
    return request.getfixturevalue(request.param)


JOBS = pytest.mark.parametrize("job", ["new", "replacing"], indirect=True)


def check_every_kill(job, every):
    for state in job.states[::every]:
        restore(job.output, state)
        job.check_finishes()


def check_every_full_disk(job, every):
    restore(job.output, job.before)
    with full_disk(1 << 30) as calls:
        job.run()
    for first in range(0, len(calls), every):
        restore(job.output, job.before)
        with (
            full_disk(first) as made,
            pytest.raises((PrecisError, OSError), match="No space left") as raised,
        ):
            job.run()
        assert made == calls[: first + 1] or len(made) > first + 1
        assert "\n" not in str(raised.value)
        state = contents(job.output)
        assert not any(name.endswith(ASIDE) for name in state)
        job.check_readable(state)
        job.check_finishes()


def check_every_damage(job, chosen):
    """Damages files of states: the job ends as undisturbed, or names the file."""
    problems = []
    for number, name in chosen:
        state = job.states[number]
        for kind, content in zip(
            ("cut", "flip"), damages(state[name], name), strict=True
        ):
            restore(job.output, {**state, name: content})
            case = f"{name} of state {number}, {kind}"
            try:
                job.run()
            except PrecisError as error:
                if name.split("/")[-1] not in str(error):
                    problems.append(f"{case}: {error}")
            except Exception as error:
                problems.append(f"{case}: {error!r}")
            else:
                if contents(job.output) != job.result:
                    problems.append(f"{case}: another result")
    assert not problems, "\n".join(problems)


def damageable(job):
    """The files of every state that a job may read again, with the state's number."""
    return [
        (number, name)
        for number, state in enumerate(job.states)
        for name in sorted(state)
        if state[name] and not name.endswith(ASIDE) and "lock.json" not in name
    ]


@JOBS
def test_no_state_can_be_mistaken_for_another_result(job):
    assert len(job.states) > 50
    for state in job.states:
        job.check_readable(state)
    assert not any("_tasks" in name or name.endswith(ASIDE) for name in job.result)


@JOBS
def test_a_kill_at_some_steps_changes_nothing(job):
    check_every_kill(job, len(job.states) // 4)


@pytest.mark.slow
@JOBS
def test_a_kill_at_any_step_changes_nothing(job):
    check_every_kill(job, 1)


@JOBS
def test_a_full_disk_at_some_steps_changes_nothing(job):
    check_every_full_disk(job, 31)


@pytest.mark.slow
@JOBS
def test_a_full_disk_at_any_step_changes_nothing(job):
    check_every_full_disk(job, 1)


def test_a_full_disk_is_one_line_and_exit_code_1(new, capsys):
    restore(new.output, {})
    with full_disk(20):
        assert precis("summarize", **new.flags) == 1
    said = capsys.readouterr().err
    assert "Traceback" not in said
    (line,) = error_lines(said, "summarize")
    assert "No space left on device" in line


@pytest.mark.slow
@JOBS
def test_damage_after_any_step_changes_nothing(job):
    chosen = damageable(job)
    check_every_damage(job, chosen[::7])
