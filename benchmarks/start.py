"""The seconds of short commands, in pairs with another installation of precis.

    python benchmarks/start.py OTHER/.venv/bin/precis [--runs 9]

prints a table: medians of the seconds, and of the processor seconds, of the other
installation and of this one, and the median of their ratios. Both run each command in
turn, after one run that is not counted.
"""

import argparse
import json
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from command_runs import PRECIS

# English with stop words, so that no detector of languages is loaded.
TEXT = "The mayor said that the rain of day {} was the worst that they had seen in May."
COMMANDS = {
    "help": "--help",
    "help of a command": "summarize --help",
    "one text": "summarize --text -",
    "one text, lead": "summarize --text - --extractive lead",
    "50 documents": "summarize --corpus jsonl:{corpus} --output {output} "
    "--extractive lead --progress none",
}


def main() -> None:
    """Parses the flags, runs the commands and prints the table."""
    parser = argparse.ArgumentParser(description="The start of commands, in pairs.")
    parser.add_argument("other", help="the program `precis` of the other installation")
    parser.add_argument("--runs", type=int, default=9, help="pairs (default: 9)")
    flags = parser.parse_args()
    print("| command | other s | this s | ratio | other CPU s | this CPU s | ratio |")
    print("|---|---|---|---|---|---|---|")
    for name, words in COMMANDS.items():
        pairs = [
            (*run_once([flags.other], words), *run_once(PRECIS, words))
            for _ in range(flags.runs + 1)
        ][1:]
        columns = [f"{name:17}"]
        for kind in (0, 1):
            other, this = ([pair[kind + 2 * side] for pair in pairs] for side in (0, 1))
            ratios = [mine / theirs for theirs, mine in zip(other, this, strict=True)]
            columns += [f"{statistics.median(x):.2f}" for x in (other, this, ratios)]
        print("|", " | ".join(columns), "|", flush=True)


def run_once(program: Sequence[str], words: str) -> tuple[float, float]:
    """The seconds and the processor seconds of a command in an empty folder."""
    articles = [
        "\n".join(TEXT.format(20 * number + line) for line in range(20))
        for number in range(50)
    ]
    with tempfile.TemporaryDirectory() as folder:
        corpus, output = Path(folder, "news.jsonl"), Path(folder, "output")
        lines = [json.dumps({"article": article}) for article in articles]
        corpus.write_text("\n".join(lines), encoding="utf-8")
        arguments = words.format(corpus=corpus, output=output).split()
        before, started = processor_seconds(), time.monotonic()
        subprocess.run(
            [*program, *arguments],
            check=True,
            input=articles[0],
            text=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return time.monotonic() - started, processor_seconds() - before


def processor_seconds() -> float:
    """The processor seconds of all processes that have ended below this one."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
