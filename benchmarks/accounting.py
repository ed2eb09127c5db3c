"""The share of an extractive run that accounts for documents and does not summarize.

    python benchmarks/accounting.py [--documents 5000]

prints `name value unit` lines: processor seconds of listing the corpus (with the
checksums of its files), of each step, and the share of all but `infer`. The documents
are those of the built-in corpus, written to one JSON lines file first.
"""

import argparse
import contextlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from unittest import mock

from precis.pipelines.corpus.sample import generator
from precis.pipelines.summarize import summarize as summarize_module
from precis.pipelines.summarize.document_keys import KeyWorker
from precis.pipelines.summarize.join_keys import JoinWorker
from precis.pipelines.summarize.publish_parts import PartWorker
from precis.pipelines.summarize.summarize_task import SummarizeWorker

STEPS: dict[str, Any] = {
    "scan": KeyWorker,
    "join": JoinWorker,
    "infer": SummarizeWorker,
    "publish": PartWorker,
}


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the job and prints the figures."""
    parser = argparse.ArgumentParser(description="Share of the accounting.")
    parser.add_argument("--documents", type=int, default=5_000)
    documents = parser.parse_args(argv).documents
    with (
        tempfile.TemporaryDirectory() as folder,
        timed_steps(STEPS, time.process_time) as seconds,
    ):
        corpus = os.path.join(folder, "news.jsonl")
        write_corpus(corpus, documents)
        output = os.path.join(folder, "run")
        listing = timed(summarize_module.list_tasks, "list", seconds, time.process_time)
        with mock.patch.object(summarize_module, "list_tasks", listing):
            summarize_module.summarize(corpus=f"jsonl:{corpus}", output=output)
    for name in ("list", *STEPS):
        print(f"{name}_{documents}_documents {seconds[name]:.2f} s")
    print(f"share_beside_infer {1 - seconds['infer'] / sum(seconds.values()):.3f} of 1")


def write_corpus(path: str, documents: int) -> None:
    """Writes documents of the built-in corpus as JSON lines."""
    with open(path, "w", encoding="utf-8") as file:
        for index in range(documents):
            document = generator.document(index)
            record = {"id": document.document_id, "article": document.article}
            file.write(json.dumps(record) + "\n")


@contextlib.contextmanager
def timed_steps(
    workers: Mapping[str, Any], clock: Callable[[], float]
) -> Iterator[dict[str, float]]:
    """Times the tasks of each step while the block runs.

    Args:
      workers: the class that runs the tasks of each step.
      clock: what the time of a task is read from.

    Yields:
      The seconds of each step.
    """
    seconds = dict.fromkeys(workers, 0.0)
    with contextlib.ExitStack() as patches:
        for name, worker in workers.items():
            run = timed(worker.run, name, seconds, clock)
            patches.enter_context(mock.patch.object(worker, "run", run))
        yield seconds


def timed(
    function: Callable[..., Any],
    name: str,
    seconds: dict[str, float],
    clock: Callable[[], float],
) -> Callable[..., Any]:
    """The function, whose time is added under a name."""

    def call(*arguments: Any, **keywords: Any) -> Any:
        started = clock()
        try:
            return function(*arguments, **keywords)
        finally:
            seconds[name] = seconds.get(name, 0.0) + clock() - started

    return call


if __name__ == "__main__":
    main()
