"""The speed of this project beside everything that it is compared with, as one table.

    python benchmarks/table.py [--peers PYTHON] [--only decode.py,train.py] [--record]

runs other scripts of this folder with little work, and prints a row for each job and
peer. In each script both sides take turns. The figures are its medians, of the fastest
way of each side where there are several; a ratio above 1 is in favour of ours. A peer
that is not installed is named in its row. What runs is told on the standard error.
`--record` writes the rows into docs/figures.json, under `bench.`.

`--peers` is for CTranslate2, transformers and PyTorch, as in `decode.py`; the other
peers are libraries of this interpreter. The searches write the same tokens but for
CTranslate2's int8 and our bfloat16; `decode.py` says how many are the same.
"""

import argparse
import datetime
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from decode_workers import ENGINES
from machine import chip, find_interpreter, record

HEADER = "| job | ours | peer | of | unit | ratio |\n|---|---|---|---|---|---|"


class Row(NamedTuple):
    """A row of the table.

    Attributes:
      job: what is done.
      ours, theirs: the names of the lines of the script; the fastest of them counts.
      peer: a key of REQUIRED_MODULES.
    """

    job: str
    ours: Sequence[str]
    theirs: Sequence[str]
    peer: str


class Script(NamedTuple):
    """A script with its arguments, and the rows that its lines make."""

    name: str
    arguments: str
    rows: Sequence[Row]


def search_rows(size: str) -> list[Row]:
    """The rows of a search of CTranslate2."""
    ours = [f"ours.{size}.{kind} docs_per_s" for kind in ("float32", "mixed_bfloat16")]
    theirs = [
        f"ctranslate2.{size}.{kind} docs_per_s"
        for kind in ("float32", "int8.batch8", "int8.batch16")
    ]
    return [
        Row(f"search, BART {size}, float32", ours[:1], theirs[:1], "ctranslate2"),
        Row(f"search, BART {size}, fastest", ours, theirs, "ctranslate2"),
    ]


SCRIPTS = (
    Script(
        "encode.py",
        "--documents 500 --runs 5",
        [Row("word pieces", ["encode"], ["peer_tokenizers"], "tokenizers")],
    ),
    Script(
        "extractive.py",
        "--documents 60 --runs 3 --long=",
        [
            Row(f"extractive, {method}", [method], [f"sumy_{method}"], "sumy")
            for method in ("lexrank", "textrank", "lsa", "luhn", "sumbasic")
        ],
    ),
    Script(
        "evaluate.py",
        "--rows 60 --pairs 600",
        [Row("ROUGE", ["rouge.ours"], ["rouge.rouge_score"], "rouge_score")],
    ),
    Script(
        "train.py",
        "--rounds 3 --documents 8",
        [
            Row(
                "training step, float32",
                ["ours.small.no_pointer tokens_per_s"],
                ["transformers.bart_alike tokens_per_s"],
                "transformers",
            )
        ],
    ),
    Script(
        "decode.py",
        "--sizes S --engines ours,ctranslate2,transformers",
        [
            *search_rows("S"),
            Row(
                "search, BART S, float32",
                ["ours.S.float32 docs_per_s"],
                ["transformers.S.float32 docs_per_s"],
                "transformers",
            ),
        ],
    ),
    Script(
        "decode.py",
        "--sizes B --engines ours,ctranslate2 --documents 32 --rounds 2",
        search_rows("B"),
    ),
)


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the scripts and prints the table."""
    parser = argparse.ArgumentParser(description="The speed beside that of all peers.")
    parser.add_argument(
        "--peers",
        action="append",
        help="an interpreter that has peers; may be given again (default: this one)",
    )
    parser.add_argument("--only", help="some of the scripts (default: all)")
    parser.add_argument(
        "--record", action="store_true", help="write the rows into docs/figures.json"
    )
    options = parser.parse_args(argv)
    names = {script.name for script in SCRIPTS}
    only = set(options.only.split(",")) if options.only else names
    if not only <= names:
        parser.error(f"--only: {options.only!r} is not of {', '.join(sorted(names))}")
    table: list[Sequence[str]] = []
    failed = False
    for script in SCRIPTS:
        if script.name in only:
            lines = run(script, options.peers)
            failed |= not lines
            rows = [cells(row, lines, options.peers) for row in script.rows]
            table += rows
            for row, columns in zip(script.rows, rows, strict=True):
                if options.record and "-" not in columns:
                    record_row(row, columns)
    machine = f"{chip()}, {len(os.sched_getaffinity(0))} cores"
    if options.record and not options.only:
        text = f"*{machine}, {datetime.date.today()}*"
        record("bench.machine", text, "", "make bench")
    print(f"{machine}\n\n{HEADER}")
    for columns in table:
        print(f"| {' | '.join(columns)} |")
    sys.exit(failed)


def run(script: Script, peers: Sequence[str] | None) -> dict[str, tuple[float, str]]:
    """Runs a script; returns the value and the unit of each line by its name, none
    where it failed and said why on the standard error.
    """
    folder = os.path.dirname(os.path.abspath(__file__))
    words = [script.name, *script.arguments.split()]
    command = [sys.executable, os.path.join(folder, words[0]), *words[1:]]
    if script.name in ("decode.py", "train.py"):
        command += [f"--peers={python}" for python in peers or []]
    print(" ".join(words), end=" ", file=sys.stderr, flush=True)
    started = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    print(f"{time.monotonic() - started:.0f} s", file=sys.stderr)
    return {} if done.returncode else dict(read_lines(done.stdout))


def read_lines(text: str) -> Iterator[tuple[str, tuple[float, str]]]:
    """The lines `name value unit` of a script."""
    for line in text.splitlines():
        *name, value, unit = line.split() if len(line.split()) > 2 else ["", "", ""]
        try:
            yield " ".join(name), (float(value), unit)
        except ValueError:  # a line of another form
            continue


def cells(
    row: Row, lines: Mapping[str, tuple[float, str]], peers: Sequence[str] | None
) -> Sequence[str]:
    """The columns of a row."""
    if not lines:
        return row.job, "-", "-", row.peer, "failed", "-"
    ours, unit = max(lines[name] for name in row.ours if name in lines)
    is_engine = row.peer in ENGINES
    interpreter = find_interpreter(row.peer, peers if is_engine else None)
    if interpreter is None:
        return row.job, figure(ours), "-", f"{row.peer} not installed", unit, "-"
    theirs, _ = max(lines[name] for name in row.theirs)
    ratio = f"{ours / theirs:.2f}"
    return row.job, figure(ours), figure(theirs), interpreter[1], unit, ratio


def record_row(row: Row, columns: Sequence[str]) -> None:
    """Writes the three numbers of a row into docs/figures.json."""
    job, ours, theirs, versions, unit, ratio = columns
    key = re.sub(r"\W+", "_", f"{job} {row.peer}".lower())
    command = f"make bench ({versions})"
    record(f"bench.{key}.ours", ours, unit, command)
    record(f"bench.{key}.peer", theirs, unit, command)
    record(f"bench.{key}.ratio", ratio, "times", command)


def figure(value: float) -> str:
    """A rate, to whole numbers or with two decimals."""
    return f"{value:,.0f}" if value >= 30 else f"{value:.2f}"


if __name__ == "__main__":
    main()
