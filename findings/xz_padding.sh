#!/usr/bin/env bash
# Python's lzma, and pandas on top of it, read a valid .xz file up to its first padding
# and leave out the rest without an error.
#
# The format of xz allows zeros, a multiple of four, between two streams of a file
# (xz-file-format 1.2.1, section 2.2), as files have them that were written to blocks or
# joined at a boundary; `xz -t` finds such a file whole. One would guess that a library
# reads both streams or raises an error, as it reads two streams without zeros. But
# `lzma.open`, and so `pandas.read_json(..., lines=True)`, give the first stream alone:
# what the decoder does not know as the beginning of a stream counts as trailing garbage.
# A damaged header of a second stream ends the file in the same silence.
#
# Seen with Python 3.11.7, xz 5.4.1 and pandas 2.2.3:
#
#     xz -t: whole, 2 lines; lzma: 1 line; pandas: 1 row; damaged header: 1 line
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pandas==2.2.3
cd "$folder"
cat > read.py <<'PYTHON'
import lzma
import subprocess

import pandas as pd

one, two = (lzma.compress(b'{"id": %d}\n' % number) for number in (1, 2))
open("a.jsonl.xz", "wb").write(one + bytes(4) + two)
subprocess.run(["xz", "-t", "a.jsonl.xz"], check=True)
whole = subprocess.run(["xz", "-dc", "a.jsonl.xz"], check=True, capture_output=True)
lines = list(lzma.open("a.jsonl.xz"))
rows = len(pd.read_json("a.jsonl.xz", lines=True))
open("b.xz", "wb").write(one + b"\0" + two[1:])
damaged = list(lzma.open("b.xz"))
print(
    f"xz -t: whole, {whole.stdout.count(10)} lines; lzma: {len(lines)} line; "
    f"pandas: {rows} row; damaged header: {len(damaged)} line"
)
assert (whole.stdout.count(10), len(lines), rows, len(damaged)) == (2, 1, 1, 1)
PYTHON
"$folder/venv/bin/python" read.py
