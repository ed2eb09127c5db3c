"""The peak resident memory of `precis prepare` over a small and a ten times larger
corpus, which shows that memory does not grow with the corpus.

    python benchmarks/memory.py [--documents 20000]

prints `name value unit` lines. Each job runs in its own process, so that the peak is
that of the job.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs both jobs and prints their peaks and the ratio."""
    parser = argparse.ArgumentParser(
        description="Peak memory of `precis prepare` over a small and a ten times "
        "larger corpus."
    )
    parser.add_argument(
        "--documents",
        type=int,
        default=20_000,
        help="documents of the smaller corpus (default: 20000)",
    )
    documents = parser.parse_args(argv).documents
    peaks = []
    for count in (documents, 10 * documents):
        peaks.append(peak_bytes(count))
        print(
            f"prepare_{count}_documents_peak_memory {peaks[-1] / 2**20:.0f} MiB",
            flush=True,
        )
    print(f"ratio_of_ten_times_the_documents {peaks[1] / peaks[0]:.2f} x")


def peak_bytes(documents: int) -> int:
    """Peak resident memory of preparing that many documents of the built-in corpus,
    with a vocabulary whose size does not depend on them.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [
            "prepare",
            "--corpus",
            f"sample:{documents}",
            "--output",
            os.path.join(folder, "records"),
            "--vocabulary_size",
            "2000",
        ]
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


if __name__ == "__main__":
    main()
