"""Tests of what is counted while a job runs, and of the line that shows it."""

import csv
import datetime
import gzip
import itertools
import json
import os
import pty
import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from precis.model.extractive.config import SelectionConfig
from precis.model.quality.fallback import FallbackConfig
from precis.model.quality.flags import QualityConfig
from precis.model.search.config import SearchConfig
from precis.pipelines.corpus.dead_letters import LetterFile
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.sample import generator
from precis.pipelines.corpus.source import list_tasks, read_task
from precis.pipelines.corpus.task import Position
from precis.pipelines.jobs.job import Job
from precis.pipelines.jobs.progress import (
    FOLDER_VARIABLE,
    Counts,
    TaskProgress,
    count,
    count_earlier_task,
    total,
)
from precis.pipelines.options.summarize import SummarizeOptions
from precis.pipelines.summarizing.summarize_task import SummarizeWorker
from precis.pipelines.summarizing.summary_settings import SummarySettings
from precis.pipelines.summarizing.task_rows import InferSettings
from precis.pipelines.tables.part_layout import PartLayout
from precis.pipelines.tables.schema import SUMMARY_SCHEMA
from precis.pipelines.terminal import progress_line
from precis.pipelines.terminal.progress_line import (
    describe,
    describe_end,
    show_progress,
    show_step,
)

DOCUMENTS = 400


@pytest.fixture
def counters(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    return str(tmp_path)


def done(folder):
    return total(folder)[:2]


def test_nothing_happens_without_a_folder(tmp_path, monkeypatch):
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    count(3, 100)
    TaskProgress(10).finish()
    assert os.listdir(tmp_path) == []


def test_a_folder_without_counters_is_nothing_done(tmp_path):
    assert total(str(tmp_path)) == Counts()


def test_counts_of_one_worker_add_up(counters):
    count(3, 100)
    count(2, 1 << 40)
    assert done(counters) == (5, (1 << 40) + 100)
    assert len(os.listdir(counters)) == 1


def test_every_thread_counts_into_a_file_of_its_own(counters):
    workers = [ThreadPoolExecutor(max_workers=1) for _ in range(4)]
    submitted = [
        worker.submit(lambda n: [count(1, n) for _ in range(500)], number)
        for number, worker in enumerate(workers, start=1)
    ]
    for future in submitted:
        future.result()
    for worker in workers:
        worker.shutdown()
    assert done(counters) == (4 * 500, 500 * (1 + 2 + 3 + 4))
    assert len(os.listdir(counters)) == 4


def test_counts_of_processes_add_up_on_one_clock(counters):
    code = (
        "from precis.pipelines.jobs.progress import count; count(2, 20); count(3, 30)"
    )
    count(1, 10)
    before = total(counters)
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    after = total(counters)
    assert done(counters) == (6, 60)
    assert after.started == before.started and after.ended > before.ended


def test_a_thread_counts_into_the_folder_of_the_job_that_runs(tmp_path, monkeypatch):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / name))
        count(1, 7)
    assert [done(str(tmp_path / name)) for name in ("first", "second")] == [(1, 7)] * 2


def test_a_file_that_is_just_being_made_counts_nothing(counters):
    count(1, 7)
    (Path(counters) / "new").write_bytes(b"\x05\x00\x00")
    assert done(counters) == (1, 7)


@pytest.mark.parametrize("shares", [[0.1, 0.3], [0.6, 1.2], []])
def test_what_is_counted_of_a_task_adds_up_to_its_size(counters, shares):
    task = TaskProgress(100)
    for documents, share in enumerate(shares, start=1):
        task.advance_to(Position(documents, share))
        assert done(counters) == (documents, min(round(100 * share), 100))
    task.finish()
    task.finish()
    assert done(counters) == (len(shares), 100)


def test_a_part_of_a_window_counts_from_the_end_of_the_window_before(counters):
    task = TaskProgress(1000)
    task.advance_to(Position(100, 0.2))
    counted = []
    for part in (0.25, 0.5, 1.0):
        task.advance_to(Position(300, 0.6), part)
        counted.append(done(counters))
    task.advance_to(Position(300, 0.6))
    assert counted == [(150, 300), (200, 400), (300, 600)]
    assert done(counters) == (300, 600)


def test_a_task_of_an_earlier_run_is_counted_and_starts_no_clock(counters):
    count_earlier_task(700, 90)
    assert total(counters) == Counts(earlier_documents=700, earlier_size=90)


def write_corpus(folder, scheme):
    """A corpus of `DOCUMENTS` documents of different lengths; returns its address.

    The texts are made of random words, so that they compress evenly and not too well.
    """
    draw = random.Random(5)
    texts = [
        " ".join(f"{draw.getrandbits(40):x}" for _ in range(draw.randrange(20, 200)))
        for _ in range(DOCUMENTS)
    ]
    kind, name = scheme.split(":")
    path = folder / name
    if kind in ("text", "stories"):
        for number, text in enumerate(texts):
            (folder / f"{number:03d}{path.suffix}").write_text(text)
        return f"text:{folder}/*.txt" if kind == "text" else f"stories:{folder}"
    if kind == "parquet":
        pq.write_table(pa.table({"article": texts}), path, row_group_size=130)
    else:
        opened = gzip.open if name.endswith(".gz") else open
        with opened(path, "wt", newline="") as file:
            if kind == "csv":
                rows = csv.writer(file)
                rows.writerows([["article"], *([text] for text in texts)])
            else:
                file.writelines(json.dumps({"article": text}) + "\n" for text in texts)
    return f"{kind}:{path}"


@pytest.mark.parametrize(
    "scheme",
    [
        "jsonl:a.jsonl.gz",
        "jsonl:a.jsonl",
        "csv:a.csv.gz",
        "csv:a.csv",
        "parquet:a.parquet",
        "text:a.txt",
        "stories:a.story",
        "sample:",
    ],
)
@pytest.mark.parametrize("task_bytes", [1 << 30, 100_000])
def test_every_reader_is_halfway_after_half_of_the_documents(
    tmp_path, scheme, task_bytes
):
    address = (
        f"sample:{DOCUMENTS}" if scheme == "sample:" else write_corpus(tmp_path, scheme)
    )
    options = CorpusOptions(corpus=address, task_bytes=task_bytes)
    tasks = list_tasks(options)
    size = sum(task.size_bytes for task in tasks)
    before = 0
    bytes_read = []
    for task in tasks:
        reader = read_task(task, options)
        bytes_read += [before + reader.position.share * task.size_bytes for _ in reader]
        assert 0.9 < reader.position.share <= 1
        before += task.size_bytes
    assert len(bytes_read) == DOCUMENTS
    for quarter in (1, 2, 3):
        fraction = bytes_read[DOCUMENTS * quarter // 4] / size
        assert fraction == pytest.approx(quarter / 4, abs=0.05)
    steps = [after - before for before, after in itertools.pairwise(bytes_read)]
    assert min(steps) >= 0 and max(steps) < 0.04 * size


def test_a_gzip_file_that_hides_its_length_moves_to_the_end(tmp_path):
    # The trailer counts only the last of its members, so its last task is the longest.
    path = tmp_path / "a.jsonl.gz"
    line = b'{"article": "Rain fell on Monday. Nobody came."}\n'
    path.write_bytes(gzip.compress(line * 2_000) + gzip.compress(line))
    options = CorpusOptions(corpus=f"jsonl:{path}", task_bytes=500)
    *_, last = list_tasks(options)
    assert last.number >= 1
    reader = read_task(last, options)
    shares = [reader.position.share for _ in reader]
    assert len(shares) > 1_900 and 0.95 < shares[-1] <= 1
    assert shares[len(shares) // 2] == pytest.approx(0.5, abs=0.05)


def test_summaries_count_when_they_are_written_and_not_when_they_are_read(
    tmp_path, monkeypatch
):
    read = []
    counted = []
    document = generator.document
    monkeypatch.setattr(
        generator, "document", lambda i: (read.append(i), document(i))[1]
    )

    class Watched(TaskProgress):
        def advance_to(self, position, part=1.0):
            counted.append((position, len(read)))

    corpus = CorpusOptions(corpus="sample:25")
    options = SummarizeOptions(
        output=str(tmp_path), extractive="lead", window_documents=10
    )
    ids = ("model_id", "decode_id", "extractive_model_id", "keyphrase_model_id")
    settings = SummarySettings(
        options,
        SelectionConfig(),
        QualityConfig(),
        FallbackConfig(),
        SearchConfig(),
        dict.fromkeys(ids),
        {},
    )
    (task,) = list_tasks(corpus)
    job = Job(
        str(tmp_path), "records", "f", "r", datetime.datetime.now(datetime.UTC), 1
    )
    infer = InferSettings(
        layout=PartLayout(SUMMARY_SCHEMA), buckets=0, earlier=(), suffix_ids=False
    )
    worker = SummarizeWorker(corpus, settings, job, infer)
    letters = LetterFile("", task=0, run_id="")
    worker.run(task, Watched(task.size_bytes), letters)
    # One window is read ahead.
    assert counted == [
        (Position(10, 0.4), 20),
        (Position(20, 0.8), 25),
        (Position(25, 1.0), 25),
    ]


RUNNING = Counts(documents=8_640, size=43, started=105.0, ended=112.2)


@pytest.mark.parametrize(
    ("counts", "line"),
    [
        (Counts(), "encode   0%  starting  0:14"),
        (Counts(started=112.0, ended=112.0), "encode   0%  0 documents  0:14"),
        (
            RUNNING,
            "encode  43%  8,640 of about 20,100 documents  1,200/s  0:07 left",
        ),
        (
            RUNNING._replace(earlier_documents=4_000, earlier_size=20),
            "encode  63%  12,640 of about 20,100 documents  1,200/s  0:03 left",
        ),
        (
            Counts(earlier_documents=4_000, earlier_size=20),
            "encode  20%  4,000 of about 20,000 documents  starting",
        ),
        (
            Counts(documents=3, size=1, started=1.0, ended=101.0),
            "encode   1%  3 of about 300 documents  0.03/s  2:44:46 left",
        ),
        (
            RUNNING._replace(size=100),
            "encode 100%  8,640 documents  1,200/s  finishing  0:14",
        ),
    ],
)
def test_the_line_of_a_job_that_runs(counts, line):
    assert describe("encode", 100, counts, now=114.4, started=100.0) == line


def test_the_line_of_a_job_whose_workers_are_elsewhere():
    line = describe("encode", None, Counts(), now=114.4, started=100.0)
    assert line == "encode  running on the engine  0:14"


def test_the_line_of_a_job_that_is_done():
    counts = RUNNING._replace(earlier_documents=4_000)
    assert describe_end("encode", counts, 3_675.9) == (
        "encode 100%  12,640 documents  1,200/s  1:01:15 in all"
    )
    assert describe_end("encode", Counts(), 59.9) == "encode  0:59 in all"


def test_a_pipe_gets_plain_lines_and_the_totals(monkeypatch, capsys):
    monkeypatch.setattr(progress_line, "_LOG_SECONDS", 0.2)
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    with show_progress("scan", 200):
        folder = os.environ[FOLDER_VARIABLE]
        TaskProgress(100).advance_to(Position(1_000, 0.5))
        threading.Event().wait(0.5)
        TaskProgress(150).finish()
    assert FOLDER_VARIABLE not in os.environ and not os.path.exists(folder)
    first, *_, last = capsys.readouterr().err.split("\n")[:-1]
    assert first.startswith("scan  25%  1,000 of about 4,000 documents  ")
    assert last.startswith("scan 100%  1,000 documents  ")
    assert last.endswith("/s  0:00 in all")


def test_a_terminal_shows_a_line_at_once_and_renews_it(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    reading, writing = pty.openpty()
    with open(writing, "w") as terminal, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal)
        with show_step("prepare  loading"):
            assert os.read(reading, 1000) == b"\rprepare  loading".ljust(80)
        assert os.read(reading, 1000) == b"\r".ljust(80) + b"\r"
        with show_progress("scan", 200):
            assert os.read(reading, 1000) == b"\rscan   0%  starting  0:00".ljust(80)
            TaskProgress(200).finish()
        last = os.read(reading, 1000).decode().split("\r")[-2]
    os.close(reading)
    assert last == "scan 100%  0 documents  0:00 in all".ljust(79)


def test_the_line_ends_when_the_job_fails_and_the_variable_is_as_before(
    monkeypatch, capsys
):
    monkeypatch.setenv(FOLDER_VARIABLE, "before")
    running = threading.active_count()
    with pytest.raises(ValueError, match="no"), show_progress("scan", 200):
        folder = os.environ[FOLDER_VARIABLE]
        raise ValueError("no")
    assert os.environ[FOLDER_VARIABLE] == "before" and not os.path.exists(folder)
    assert threading.active_count() == running
    assert capsys.readouterr().err == ""
