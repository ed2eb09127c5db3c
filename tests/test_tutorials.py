"""Runs the commands of the tutorial as they stand there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[1] / "docs/tutorials/own-corpus.md"
# What is smaller here than on the page: text of the page -> text that is run.
SUBSTITUTIONS = {
    "1000 * day, 1000 * day + 1000": "1000 * day, 1000 * day + 100",
    "--steps 300": "--steps 4",
    "--warmup_steps 100": "--warmup_steps 2",
    "--validation_steps 300": "--validation_steps 4",
    "--vocabulary_size 4000": "--vocabulary_size 600",
    "--batch_tokens 8192": "--batch_tokens 1024",
    "--supported numbers,names": "--supported numbers,names --max_summary_tokens 8",
}


def test_the_commands_of_the_tutorial(tmp_path):
    """The blocks that are marked as bash, each in a shell."""
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```bash\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    for shown, run in SUBSTITUTIONS.items():
        assert any(shown in block for block in blocks), shown
        blocks = [block.replace(shown, run) for block in blocks]
    binaries = Path(sys.executable).parent
    path = f"{binaries}{os.pathsep}{os.environ['PATH']}"
    printed = []
    place = {"cwd": tmp_path, "env": {**os.environ, "PATH": path}, "timeout": 600}
    for block in blocks:
        command = ["bash", "-e", "-o", "pipefail", "-c", block]
        done = subprocess.run(command, capture_output=True, text=True, **place)
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        printed.append(done.stdout + done.stderr)
    *first, nights = printed
    expected = ["", "0 problems", "documents: read 200, written 200"]
    expected += ["sample-001000, 124 words", "wrote summaries-report.html", "\nneural "]
    expected += ["wrote bundle", "; abstractive"]
    for said, text in zip(first, expected, strict=True):
        assert text in said
    assert (tmp_path / "summaries-report.html").stat().st_size > 100_000
    assert "wrote 200 rows in place of 0 earlier ones" in nights
    assert "documents: read 200, reused 199, written 1" in nights
    assert "wrote 200 rows in place of 200 earlier ones" in nights
