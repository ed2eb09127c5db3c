"""The peak resident memory of a job over a small and a ten times larger corpus, which
shows that memory does not grow with the corpus.

    python benchmarks/memory.py [--job summarize] [--documents 20000]

prints `name value unit` lines. The peak is that of the command and all processes that
it starts; what they share counts once. The corpus is written to a file, with stories of
the built-in corpus under generated ids and first sentences, each a text of its own.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from precis.pipelines.corpus.sample import generator

_STORIES = 200
_FLAGS = {
    "prepare": ("--vocabulary_size", "2000"),
    "summarize": ("--extractive", "lead"),
}
_SECONDS_BETWEEN_LOOKS = 0.2


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
        path = os.path.join(folder, "news.jsonl")
        write_corpus(path, documents)
        output = os.path.join(folder, "output")
        command = [job, "--corpus", f"jsonl:{path}", "--output", output, *_FLAGS[job]]
        process = subprocess.Popen(
            [sys.executable, "-m", "precis.pipelines.command_line.cli", *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        peak = 0
        while process.poll() is None:
            peak = max(peak, sum(map(_resident_bytes, _tree(process.pid))))
            time.sleep(_SECONDS_BETWEEN_LOOKS)
    if process.returncode:
        raise SystemExit(f"precis {job} failed with status {process.returncode}")
    return peak


def _tree(root: int) -> list[int]:
    """A process and all that it has started, by their ids."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
        except OSError:  # It has ended.
            continue
        children.setdefault(parent, []).append(int(name))
    tree = [root]
    for process in tree:
        tree += children.get(process, [])
    return tree


def _resident_bytes(process: int) -> int:
    """The resident memory of a process, its part of shared pages; 0 if it has ended."""
    try:
        with open(f"/proc/{process}/smaps_rollup", encoding="utf-8") as file:
            for line in file:
                if line.startswith("Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


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
