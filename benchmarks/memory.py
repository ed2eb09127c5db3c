"""The peak resident memory of a job over a small and a ten times larger corpus, which
shows that memory does not grow with the corpus.

    python benchmarks/memory.py [--job summarize] [--documents 20000]

prints `name value unit` lines. Each job runs in its own process, so that the peak is
that of the job. The corpus of `summarize` is written to a file, with stories of the
built-in corpus under generated ids and first sentences, each a text of its own; that of
`prepare` is the built-in one.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from precis.pipelines.corpus.sample import generator

_STORIES = 200


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs both jobs and prints their peaks and the ratio."""
    parser = argparse.ArgumentParser(
        description="Peak memory of a job over a small and a ten times larger corpus."
    )
    parser.add_argument("--job", choices=("prepare", "summarize"), default="prepare")
    parser.add_argument(
        "--documents",
        type=int,
        default=20_000,
        help="documents of the smaller corpus (default: 20000)",
    )
    flags = parser.parse_args(argv)
    peaks = []
    for count in (flags.documents, 10 * flags.documents):
        peaks.append(peak_bytes(flags.job, count))
        print(
            f"{flags.job}_{count}_documents_peak_memory {peaks[-1] / 2**20:.0f} MiB",
            flush=True,
        )
    print(f"ratio_of_ten_times_the_documents {peaks[1] / peaks[0]:.2f} x")


def peak_bytes(job: str, documents: int) -> int:
    """Peak resident memory of a job over that many documents.

    `prepare` learns a vocabulary whose size does not depend on them; `summarize` is
    extractive, by the fastest method.
    """
    with tempfile.TemporaryDirectory() as folder:
        corpus, flags = f"sample:{documents}", ("--vocabulary_size", "2000")
        if job == "summarize":
            path = os.path.join(folder, "news.jsonl")
            write_corpus(path, documents)
            corpus, flags = f"jsonl:{path}", ("--extractive", "lead")
        output = os.path.join(folder, "output")
        command = [job, "--corpus", corpus, "--output", output, *flags]
        process = subprocess.Popen(
            [sys.executable, "-m", "precis.pipelines.cli", *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            code = os.waitstatus_to_exitcode(status)
            raise SystemExit(f"precis {' '.join(command)} failed with status {code}")
    return usage.ru_maxrss * 1024


def write_corpus(path: str, documents: int) -> None:
    """Writes documents as JSON lines, no two with the same text or id."""
    stories = [generator.document(index).article for index in range(_STORIES)]
    with open(path, "w", encoding="utf-8") as file:
        for number in range(documents):
            article = f"Report {number} was filed. {stories[number % _STORIES][:400]}"
            file.write(json.dumps({"id": f"d{number}", "article": article}) + "\n")


if __name__ == "__main__":
    main()
