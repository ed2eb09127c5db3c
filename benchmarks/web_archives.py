"""Records per second and peak memory of reading web archives, of a small set and one of
ten times as many records, which shows that memory does not grow with the archives.

    python benchmarks/web_archives.py [--records 20000] [--peer PYTHON] [--record]

prints `name value unit` lines. `precis summarize --extractive lead` reads the archives
with two workers: it takes the text out of each page and writes a summary. With --peer,
an interpreter that has datatrove with its WarcReader and trafilatura reads the smaller
set with two workers: it takes out the texts and writes them as JSON lines. The pages
are stories of the built-in corpus among menus, scripts and footers, 40 kB on average.
"""

import argparse
import gzip
import os
import random
import tempfile
from collections.abc import Sequence

from command_runs import CommandRun, run_measured
from machine import record

from precis.pipelines.corpus.sample import generator

_FILES = 8
_WORKERS = "2"
_STORIES = 200
# A page for each image, redirect or error, about as in a crawl of a few sites.
_OTHERS_SHARE = 0.3
_PEER = """
import sys
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.extractors import Trafilatura
from datatrove.pipeline.readers import WarcReader
from datatrove.pipeline.writers import JsonlWriter
folder, output, logs, tasks, workers = sys.argv[1:]
steps = [WarcReader(folder), Trafilatura(timeout=10), JsonlWriter(output)]
counts = {"tasks": int(tasks), "workers": int(workers)}
LocalPipelineExecutor(steps, logging_dir=logs, **counts).run()
"""


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, writes archives, and reads them."""
    parser = argparse.ArgumentParser(description="Speed and memory of web archives.")
    parser.add_argument("--records", type=int, default=20_000, help="of the small set")
    parser.add_argument("--peer", help="an interpreter that has datatrove")
    parser.add_argument(
        "--record", action="store_true", help="write the figures into docs/figures.json"
    )
    flags = parser.parse_args(argv)
    command = f"python benchmarks/web_archives.py --records {flags.records}"
    for count in (flags.records, 10 * flags.records):
        with tempfile.TemporaryDirectory() as folder:
            write_archives(f"{folder}/crawl", count)
            runs = {"precis": read_by_precis(folder)}
            if flags.peer and count == flags.records:
                runs["datatrove"] = read_by_peer(folder, flags.peer)
        for name, run in runs.items():
            rate, peak = f"{count / run.seconds:,.0f}", f"{run.peak_bytes / 2**20:,.0f}"
            print(f"{name}_{count}_records_rate {rate} records/s")
            print(f"{name}_{count}_records_peak_memory {peak} MiB", flush=True)
            if flags.record:
                key = f"web_archives.{name}.records_{count // 1000}k"
                record(f"{key}.rate", rate, "records/s", command)
                record(f"{key}.memory", peak, "MiB", command)


def read_by_precis(folder: str) -> CommandRun:
    """Summarizes the archives."""
    corpus, output = f"warc:{folder}/crawl/*.warc.gz", f"{folder}/output"
    flags = ("--extractive", "lead", "--workers", _WORKERS)
    return run_measured("summarize", "--corpus", corpus, "--output", output, *flags)


def read_by_peer(folder: str, python: str) -> CommandRun:
    """Takes out the texts of the archives by datatrove."""
    words = *(f"{folder}/{name}" for name in ("crawl", "texts", "logs")), str(_FILES)
    return run_measured(*words, _WORKERS, program=(python, "-c", _PEER))


def write_archives(folder: str, records: int) -> None:
    """Writes archives with one gzip member a record, the same for the same number."""
    os.makedirs(folder)
    random_numbers = random.Random(17)
    stories = [generator.document(index).article for index in range(_STORIES)]
    for number in range(_FILES):
        with open(f"{folder}/{number}.warc.gz", "wb") as file:
            for index in range(number, records, _FILES):
                if random_numbers.random() < _OTHERS_SHARE:
                    content = b"HTTP/1.1 301 Moved\r\nContent-Type: text/html\r\n\r\n"
                else:
                    page = _page(stories[index % _STORIES], index, random_numbers)
                    kind = b"Content-Type: text/html; charset=utf-8"
                    content = b"HTTP/1.1 200 OK\r\n%s\r\n\r\n%s" % (kind, page)
                file.write(gzip.compress(_warc_record(content, index), 1))


def _page(story: str, index: int, random_numbers: random.Random) -> bytes:
    """A page with a story that no other page has."""
    links = "".join(
        f'<li class="item"><a href="/{random_numbers.random()}">Page {place}</a></li>'
        for place in range(150)
    )
    paragraphs = "".join(f"<p>{line}</p>" for line in story.splitlines())
    values = [random_numbers.random() for _ in range(random_numbers.randrange(2000))]
    return (
        f"<!DOCTYPE html><html><head><title>Story {index}</title></head><body>"
        f"<script>let data = {values};</script><nav><ul>{links}</ul></nav><main>"
        f"<article><h1>Story {index}</h1><p>Story {index} was written by the editors "
        f"of this page.</p>{paragraphs}</article></main><aside><ul>{links}</ul></aside>"
        "<footer>All rights reserved.</footer></body></html>"
    ).encode()


def _warc_record(content: bytes, index: int) -> bytes:
    return (
        (
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Date: 2024-05-01T10:00:00Z\r\n"
            f"WARC-Record-ID: <urn:uuid:{index:08}>\r\n"
            f"WARC-Target-URI: https://news.example/{index}\r\n"
            "Content-Type: application/http; msgtype=response\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        ).encode()
        + content
        + b"\r\n\r\n"
    )


if __name__ == "__main__":
    main()
