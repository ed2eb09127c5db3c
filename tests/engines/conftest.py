"""Engines that run here, and what the same commands give on the local runner."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from processes import BEGINNING, kill
from servers import FlinkCluster, PrismServer
from support.command_line import exit_code, write_jsonl
from support.processes import descendants

from precis.pipelines.corpus.sample.generator import document, hand_written

_DOCUMENTS = 160


class Engine(NamedTuple):
    """An engine, as the command line and its processes know it.

    Attributes:
      name: of the runner.
      flags: that lead a command there.
      pids: of the processes that start workers.
    """

    name: str
    flags: Sequence[str]
    pids: Sequence[int]


class Jobs(NamedTuple):
    """The command lines of the jobs, without --output, and their results here."""

    prepare: Sequence[str]
    network: Sequence[str]
    extractive: Sequence[str]
    evaluate: Sequence[str]
    folder: Path


@pytest.fixture(scope="session")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Jobs:
    """Three jobs, and their results on the local runner: `records`, `network`,
    `extractive` and `evaluation`.
    """
    folder = tmp_path_factory.mktemp("local")
    documents = [document(len(hand_written()) + n) for n in range(_DOCUMENTS)]
    lines = [
        {"id": each.document_id, "article": each.article, "highlights": each.highlights}
        for each in documents
    ]
    # A line that fails and one that repeats another are counted, wherever they run.
    corpus = write_jsonl(folder / "news.jsonl", [*lines, b"{", {**lines[0], "id": "x"}])
    source = ["--corpus", corpus, "--task_bytes", "12000", "--max_failed_share", "0.5"]
    sizes = ["--max_source_tokens", "160", "--max_target_tokens", "32"]
    summarize = ["summarize", *source]
    bundle = folder / "bundle"
    jobs = Jobs(
        ["prepare", *source, *sizes, "--vocabulary_size", "1500"],
        [*summarize, "--bundle", str(bundle), "--beam_width", "3"],
        [*summarize, "--extractive", "lead,lexrank"],
        ["evaluate", "--input", str(folder / "extractive"), "--resamples", "100"],
        folder,
    )
    records = ["train", "--records", str(folder / "records"), "--network", "tiny"]
    train = [*records, "--steps", "8", "--batch_tokens", "2048"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", BEGINNING)
        for name, command in {
            "records": jobs.prepare,
            "bundle": train,
            "network": jobs.network,
            "extractive": jobs.extractive,
            "evaluation": jobs.evaluate,
        }.items():
            assert exit_code(*command, "--output", str(folder / name)) == 0
    return jobs


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkCluster]:
    """A Flink cluster."""
    with FlinkCluster(tmp_path_factory.mktemp("flink") / "cluster") as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def no_command_left() -> Iterator[None]:
    """Ends the commands that a failed test has left."""
    yield
    for pid in descendants(os.getpid(), "precis.pipelines.command_line.cli"):
        kill(pid)


@pytest.fixture
def flink(cluster: FlinkCluster) -> Iterator[Engine]:
    """The cluster with two running task managers."""
    if any(each.poll() is not None for each in cluster.task_managers[-2:]):
        cluster.start_task_manager()
    server = f"localhost:{cluster.job_port}"
    flags = ["--runner", "FlinkRunner", "--flink_master", cluster.master]
    pids = [each.pid for each in cluster.task_managers if each.poll() is None]
    yield Engine("flink", [*flags, "--job_endpoint", server], pids)
    cluster.cancel_jobs()


@pytest.fixture
def prism(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A Prism that starts workers as processes, as a cluster does."""
    worker = Path(sys.executable).with_name("precis-worker")
    with PrismServer(tmp_path_factory.mktemp("prism") / "server") as server:
        flags = ["--runner", "PrismRunner"]
        flags += ["--job_endpoint", f"localhost:{server.job_port}"]
        flags += ["--environment_type", "PROCESS"]
        flags += ["--environment_config", f'{{"command": "{worker}"}}']
        assert server.process
        yield Engine("prism", flags, [server.process.pid])
