"""The time from a signal to the end of each command, on jobs of real length.

    python benchmarks/stop.py [--documents 20000] [--moments 1,3,8,20] [--checkpoint F]

prints `name value unit` lines. Each command is started anew for each moment and stopped
there, with SIGINT and SIGTERM in turn; the longest of the times is printed. A command
that ends before is named. A second line counts what was left: processes, locks and
unfinished files.
"""

import argparse
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from command_runs import PRECIS, run_command

# Ctrl-C reaches every process of a command, SIGTERM only the one that was started.
_SIGNALS = ((os.killpg, signal.SIGINT), (os.kill, signal.SIGTERM))
_LIMIT_SECONDS = 60


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, makes the inputs and stops each command."""
    parser = argparse.ArgumentParser(description="From a signal to the end.")
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--moments", default="1,3,8,20", help="seconds after the start")
    parser.add_argument("--checkpoint", default="", help="what `precis import` takes")
    parser.add_argument("--only", default="", help="commands, with commas between them")
    flags = parser.parse_args(argv)
    moments = [float(moment) for moment in flags.moments.split(",")]
    with tempfile.TemporaryDirectory(prefix="stop-") as folder:
        root = Path(folder)
        commands = prepare_commands(root, flags.documents, flags.checkpoint)
        for name, words in commands.items():
            if not flags.only or name in flags.only.split(","):
                measure(name, words, moments, root)


def prepare_commands(
    root: Path, documents: int, checkpoint: str
) -> dict[str, list[str]]:
    """Makes the inputs of the commands below a folder; returns their command lines,
    which all write to the folder `out` in it.
    """
    out = str(root / "out")
    records, bundle, run = (str(root / name) for name in ("records", "bundle", "run"))
    corpus = ["--corpus", f"sample:{documents}"]
    few = ["--corpus", "sample:2000"]
    oracle = ["--oracle_sentences", "5", "--vocabulary_size", "4000"]
    run_command("prepare", *few, *oracle, "--output", records)
    tiny = ["--records", records, "--network", "tiny", "--validation_steps", "0"]
    steps = ["--steps", "2", "--warmup_steps", "1"]
    run_command("train", *tiny, *steps, "--output", bundle)
    run_command("summarize", *corpus, "--output", run)
    article = root / "article.txt"
    article.write_text("Rain fell on Monday. The town has a river. " * 10)
    table = f"iceberg+sqlite://{out}/news.summaries"
    commands = {
        "prepare": ["prepare", *corpus, *oracle, "--output", out],
        "summarize": ["summarize", *corpus, "--extractive", "lexrank", "--output", out],
        "summarize_network": [
            *("summarize", *corpus, "--bundle", bundle, "--output", out)
        ],
        "evaluate": ["evaluate", "--input", run, "--output", out],
        "train": ["train", *tiny, "--steps", "5000", "--output", out],
        "train-extractor": [
            *("train-extractor", "--records", records, "--epochs", "500"),
            *("--output", out),
        ],
        "train-keyphrases": ["train-keyphrases", "--records", records, "--output", out],
        "verify": ["verify", run, *corpus],
        "digest": ["digest", run],
        "load_iceberg": ["load", run, "--table", table],
        "load_delta": ["load", run, "--table", f"delta://{out}"],
        "export": ["export", bundle, "--output", out],
        "attention": [
            *("attention", "--bundle", bundle, "--text", str(article)),
            *("--output", f"{out}/picture.png"),
        ],
    }
    if checkpoint:
        commands["import"] = ["import", checkpoint, "--output", out]
    return commands


def measure(
    name: str, words: Sequence[str], moments: Sequence[float], root: Path
) -> None:
    """Stops a command after each of some times, and prints the longest end."""
    ends = {}
    left = 0
    for number, moment in enumerate(moments):
        shutil.rmtree(root / "out", ignore_errors=True)
        send, kind = _SIGNALS[number % 2]
        with open(root / "stderr", "wb") as stderr:
            process = subprocess.Popen(
                [*PRECIS, *words],
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            )
        try:
            process.wait(moment)
            print(f"stop_{name}_{moment:g}s ended before, with {process.returncode}")
            continue
        except subprocess.TimeoutExpired:
            pass
        started = time.monotonic()
        send(process.pid, kind)
        try:
            code = process.wait(_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
        ends[moment] = time.monotonic() - started
        lines = [
            line
            for line in (root / "stderr").read_text().splitlines()
            if " stopped by " in line
        ]
        if code != 128 + kind or len(lines) != 1:
            print(f"stop_{name}_{moment:g}s code {code}, {len(lines)} lines")
        left += count_leftovers(process.pid, root / "out")
    if ends:
        moment = max(ends, key=lambda each: ends[each])
        print(f"stop_{name} {ends[moment]:.2f} s (after {moment:g} s)")
        print(f"stop_{name}_left {left} files and processes", flush=True)


def count_leftovers(session: int, out: Path) -> int:
    """Processes of a session, locks, and files that are not finished."""
    time.sleep(0.5)
    states = subprocess.run(
        ["ps", "-o", "stat=", "-s", str(session)], capture_output=True, text=True
    )
    # A process that has ended is listed until its new parent has noticed.
    alive = [state for state in states.stdout.split() if not state.startswith("Z")]
    files = [*out.rglob("*.aside"), *out.rglob("lock.json")]
    return len(alive) + len(files)


if __name__ == "__main__":
    main()
