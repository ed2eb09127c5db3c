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
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

from precis.pipelines.corpus.sample import generator
from precis.pipelines.keys.document_keys import KeyWorker
from precis.pipelines.keys.join_keys import JoinWorker
from precis.pipelines.summarizing import summarize as summarize_module
from precis.pipelines.summarizing.publish_parts import PartWorker
from precis.pipelines.summarizing.summarize_task import SummarizeWorker

_STEPS: dict[str, Any] = {
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
    seconds = dict.fromkeys(("list", *_STEPS), 0.0)
    with tempfile.TemporaryDirectory() as folder, timed_steps(seconds):
        corpus = os.path.join(folder, "news.jsonl")
        write_corpus(corpus, documents)
        output = os.path.join(folder, "run")
        summarize_module.summarize(corpus=f"jsonl:{corpus}", output=output)
    for name in ("list", *_STEPS):
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
def timed_steps(seconds: dict[str, float]) -> Iterator[None]:
    """Adds the processor time of the listing and of each step's tasks."""
    with contextlib.ExitStack() as patches:
        listing = timed(summarize_module.list_tasks, "list", seconds)
        patches.enter_context(
            mock.patch.object(summarize_module, "list_tasks", listing)
        )
        for name, worker in _STEPS.items():
            run = timed(worker.run, name, seconds)
            patches.enter_context(mock.patch.object(worker, "run", run))
        yield


def timed(
    function: Callable[..., Any], name: str, seconds: dict[str, float]
) -> Callable[..., Any]:
    """The function, whose processor time is added under a name."""

    def call(*arguments: Any, **keywords: Any) -> Any:
        started = time.process_time()
        try:
            return function(*arguments, **keywords)
        finally:
            seconds[name] += time.process_time() - started

    return call


if __name__ == "__main__":
    main()
