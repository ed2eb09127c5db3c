"""Fault injection: a run of `precis summarize` that is killed, whose disk is full or
whose files are damaged at any step ends as an undisturbed one, or in one line.
"""

import json

import pytest
from support.command_line import error_lines, precis, write_jsonl
from support.disk_faults import WatchedJob, full_disk, restore

from precis.model.errors import DataError
from precis.model.files import ASIDE
from precis.pipelines.summarize.earlier_runs import EarlierRows
from precis.pipelines.summarize.summarize import summarize
from precis.pipelines.tables.finished_run import OutputFile

pytestmark = pytest.mark.usefixtures("one_time")

_TEXT = "Rain fell on {0} Street. Nobody came to it, {0} times. It was cold and dark."


def write_lines(path, prefix):
    """Documents, repeated ones, an empty one and a broken line."""
    texts = [_TEXT.format(number) for number in (*range(8), 3, 3)]
    lines = [{"id": f"{prefix}{n}", "article": text} for n, text in enumerate(texts)]
    return write_jsonl(path, [*lines, {"id": "empty", "article": ""}, "{broken"])


def flags_of(folder, **flags):
    corpus = write_lines(folder / "corpus" / "a.jsonl", "a")
    sizes = {"task_bytes": 700, "min_source_words": 0, "max_failed_share": 0.5}
    output = folder / "run"
    return {"corpus": corpus, "output": output, "deduplicate": True, **sizes, **flags}


def watch(flags):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        return WatchedJob(flags["output"], lambda: summarize(**flags))


@pytest.fixture(scope="module")
def new(tmp_path_factory):
    """A job in a new folder."""
    return watch(flags_of(tmp_path_factory.mktemp("new")))


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """A job that takes over the rows of an earlier run of a corpus that has grown, and
    summarizes groups.
    """
    folder = tmp_path_factory.mktemp("grown")
    watch(flags_of(folder, group_by="split"))
    write_lines(folder / "corpus" / "b.jsonl", "b")
    earlier = (folder / "run").rename(folder / "earlier")
    corpus = f"jsonl:{folder}/corpus/*.jsonl"
    return watch(flags_of(folder, corpus=corpus, reuse=earlier, group_by="split"))


@pytest.fixture
def job(request):
    """The job that a test is parametrized with."""
    return request.getfixturevalue(request.param)


def last_unfinished(job, name):
    """The number of the last state that has a file and is not marked as finished."""
    states = enumerate(job.states)
    return max(n for n, state in states if name in state and "_SUCCESS" not in state)


# The second job has the steps of the first, and others in between; its three runs are
# for the slow tests.
CASES = [("new", 1), pytest.param("grown", 2, marks=pytest.mark.slow)]
JOBS = pytest.mark.parametrize(("job", "every"), CASES, indirect=["job"])


@JOBS
def test_no_state_can_be_mistaken_for_another_result(job, every):
    assert len(job.states) > 50 * every
    for state in job.states:
        job.check_readable(state)
    assert not any("_tasks" in name or name.endswith(ASIDE) for name in job.result)


@pytest.mark.slow
@JOBS
def test_a_kill_or_a_full_disk_at_any_step_changes_nothing(job, every):
    job.check_kills(every)
    job.check_full_disks(every)


@pytest.mark.parametrize("first", [0, 20])
def test_a_full_disk_is_one_line_and_exit_code_1(first, tmp_path, capsys):
    with full_disk(first):
        assert precis("summarize", **flags_of(tmp_path)) == 1
    said = capsys.readouterr().err
    assert "Traceback" not in said
    (line,) = error_lines(said, "summarize")
    assert "No space left on device" in line


DAMAGED = "earlier.json job.json links.parquet duplicates/00001.parquet copy/00001.json"


@pytest.mark.parametrize("file", DAMAGED.split())
def test_a_damaged_file_is_made_again_or_named(file, new):
    name = f"_tasks/{file}"
    assert new.damage(last_unfinished(new, name), name) == []


@pytest.mark.slow
def test_damage_after_any_step_changes_nothing(grown):
    problems = grown.damage_files()
    assert not problems, "\n".join(problems)


def test_a_changed_digit_of_a_receipt_is_noticed(new):
    """Its figures go into the manifest, which would say something wrong."""
    name = "_tasks/summarize/00000.json"
    state = new.states[last_unfinished(new, name)]
    receipt = json.loads(state[name])
    assert receipt["failures"] == {}
    receipt["failures"] = {"read/invalid_json": 7}
    restore(new.output, {**state, name: json.dumps(receipt).encode()})
    new.check_finishes()


@pytest.mark.slow
def test_a_reused_part_that_is_damaged_since_its_keys_were_read_is_named(grown):
    part, *_ = sorted((grown.output.parent / "earlier" / "data").iterdir())
    whole = part.read_bytes()
    state = next(each for each in grown.states if "_tasks/links.parquet" in each)
    flipped = bytearray(whole)
    flipped[len(whole) // 3] ^= 1
    for content in (bytes(flipped), whole[:-9]):
        restore(grown.output, state)
        part.write_bytes(content)
        with pytest.raises(DataError, match=f"{part} is .*not as its manifest says"):
            grown.run()
    # While the run goes on.
    rows = EarlierRows([OutputFile("", str(part), 0, "", {})])
    with pytest.raises(DataError, match=r"parquet can no longer be read \("):
        rows.read(0, 0, 0)
    part.write_bytes(whole)
