"""The peak resident memory and the processor time of `precis load`.

    python benchmarks/load.py [--rows 300000] [--table iceberg+sqlite]

prints `name value unit` lines: a first load, a merge that replaces half of it, and a
merge of three times the rows. The rows are those of 200 documents under other ids. Each
load runs in its own process, so that the peak is that of the load.
"""

import argparse
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from command_runs import PRECIS

from precis.model import files
from precis.model.finished import SUCCESS_FILE, success_content
from precis.pipelines.run.key_tables import write_parquet
from precis.pipelines.tables.finished_run import open_run

_PART_ROWS = 100_000
_SCHEMES = ("iceberg+sqlite", "delta", "duckdb")


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, makes the runs and loads them into one table."""
    parser = argparse.ArgumentParser(description="Memory and time of `precis load`.")
    parser.add_argument("--rows", type=int, default=300_000, help="rows of a run")
    parser.add_argument("--table", choices=_SCHEMES, default=_SCHEMES[0])
    flags = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "source")
        precis("summarize", "--corpus", "sample:200", "--output", source)
        runs = {"first": (0, 1), "merge": (flags.rows // 2, 1), "large_merge": (0, 3)}
        table = f"{flags.table}://{folder}/warehouse"
        if flags.table != "delta":
            table += "/news.summaries"
        for name, (offset, times) in runs.items():
            run = os.path.join(folder, name)
            rows = times * flags.rows
            write_run(run, source, rows, offset)
            seconds, peak = precis("load", run, "--table", table)
            print(f"{name}_{rows}_rows_processor_time {seconds:.1f} s")
            print(f"{name}_{rows}_rows_peak_memory {peak / 2**20:.0f} MiB", flush=True)


def write_run(folder: str, source: str, rows: int, offset: int) -> None:
    """Writes a run with the rows of another one; its ids are counted from `offset`."""
    first = open_run(source).output_files[0]
    table = pq.read_table(first.path, partitioning=None)  # pyright: ignore[reportArgumentType]  # None is none.
    entries = []
    for begin in range(0, rows, _PART_ROWS):
        name = f"part-{begin // _PART_ROWS:05d}.parquet"
        path = os.path.join(folder, name)
        count = min(_PART_ROWS, rows - begin)
        batches = renumbered(table, offset + begin, count)
        write_parquet(path, batches, table.schema)
        size, digest = os.path.getsize(path), files.sha256_file(path)
        entries.append({"file": name, "rows": count, "bytes": size, "sha256": digest})
    manifest = files.read_json(files.join(source, "manifest.json"))
    manifest |= {"run_id": os.path.basename(folder), "files": entries}
    path = files.join(folder, "manifest.json")
    files.write_json(path, manifest)
    content = success_content(path, manifest["fingerprint"])
    files.write_bytes(files.join(folder, SUCCESS_FILE), content)


def renumbered(table: pa.Table, offset: int, rows: int) -> Iterator[pa.Table]:
    """The table again and again, each time with other ids."""
    many = pa.concat_tables([table] * 50)
    for begin in range(offset, offset + rows, len(many)):
        piece = many.slice(0, offset + rows - begin)
        ids = [
            hashlib.sha256(str(begin + row).encode()).hexdigest()
            for row in range(len(piece))
        ]
        yield piece.set_column(0, table.schema.field(0), pa.array(ids))


def precis(*arguments: str) -> tuple[float, int]:
    """Runs a command; returns its processor seconds and its peak memory in bytes."""
    process = subprocess.Popen(
        [*PRECIS, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    error = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"precis {arguments[0]} failed: {error.decode()}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


if __name__ == "__main__":
    main()
