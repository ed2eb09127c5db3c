"""The peak resident memory of a job over a small and a ten times larger corpus, which
shows that memory does not grow with the corpus.

    python benchmarks/memory.py [--job summarize] [--documents 20000] [--record]

prints `name value unit` lines. The peak is that of the command and all processes that
it starts; what they share counts once. The corpus is written to a file, with stories of
the built-in corpus under generated ids and first sentences, each a text of its own.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Sequence

from command_runs import run_measured
from machine import record

from precis.pipelines.corpus.sample import generator

_STORIES = 200
_FLAGS = {
    "prepare": ("--vocabulary_size", "2000", "--workers", "2"),
    "summarize": ("--extractive", "lead"),
}


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
    parser.add_argument(
        "--record", action="store_true", help="write the figures into docs/figures.json"
    )
    flags = parser.parse_args(argv)
    peaks = []
    for count in (flags.documents, 10 * flags.documents):
        peaks.append(peak_bytes(flags.job, count))
        print(
            f"{flags.job}_{count}_documents_peak_memory {peaks[-1] / 2**20:.0f} MiB",
            flush=True,
        )
        if flags.record:
            key = f"{flags.job}.memory.docs_{count // 1000}k"
            command = f"python benchmarks/memory.py --job {flags.job}"
            command += f" --documents {flags.documents}"
            record(key, f"{peaks[-1] / 2**20:,.0f}", "MiB", command)
    print(f"ratio_of_ten_times_the_documents {peaks[1] / peaks[0]:.2f} x")


def peak_bytes(job: str, documents: int) -> int:
    """Peak resident memory of a job over that many documents.

    `prepare` learns a vocabulary whose size does not depend on them; `summarize` is
    extractive, by the fastest method.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "news.jsonl")
        write_corpus(path, documents)
        output = os.path.join(folder, "output")
        command = [job, "--corpus", f"jsonl:{path}", "--output", output, *_FLAGS[job]]
        return run_measured(*command).peak_bytes


def write_corpus(path: str, documents: int) -> None:
    """Writes documents as JSON lines, no two with the same text or id."""
    stories = [generator.document(index) for index in range(_STORIES)]
    with open(path, "w", encoding="utf-8") as file:
        for number in range(documents):
            story = stories[number % _STORIES]
            record = {
                "id": f"d{number}",
                "article": f"Report {number} was filed. {story.article[:400]}",
                "highlights": (story.highlights or "")[:80],
            }
            file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
