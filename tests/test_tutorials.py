"""Runs the commands of docs/tutorials/ as they stand there, one page after another."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.small_checkpoint import tensors, write_checkpoint, write_tokenizer

pytestmark = pytest.mark.slow

PAGES = Path(__file__).parents[1] / "docs/tutorials"
# What is smaller here than on the page: text of the page -> text that is run.
SUBSTITUTIONS = {
    "own-corpus": {
        "1000 * day, 1000 * day + 1000": "1000 * day, 1000 * day + 100",
        "--steps 300": "--steps 4",
        "--warmup_steps 100": "--warmup_steps 2",
        "--validation_steps 300": "--validation_steps 4",
        "--vocabulary_size 4000": "--vocabulary_size 600",
        "--batch_tokens 8192": "--batch_tokens 1024",
        "--supported numbers,names": "--supported numbers,names --max_summary_tokens 8",
    },
    "checkpoint": {
        "range(100, 140)": "range(100, 120)",
        "--steps 2000": "--steps 2 --warmup_steps 1 --batch_tokens 1024",
    },
    "warehouse": {},
    "tpu": {
        "sample:2000": "sample:200",
        "--vocabulary_size 4000": "--vocabulary_size 600",
        "--steps 20 ": "--steps 2 ",
        "--warmup_steps 5": "--warmup_steps 1",
        "--max_summary_tokens 16": "--max_summary_tokens 8",
    },
}
POSITIONS = 1_024


def commands(page: str) -> list[str]:
    """The blocks of a page that are marked as bash, with the substitutions."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```bash\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    for shown, run in SUBSTITUTIONS[page].items():
        assert any(shown in block for block in blocks), shown
        blocks = [block.replace(shown, run) for block in blocks]
    return blocks


def run_page(page: str, folder: Path) -> list[str]:
    """Runs the blocks of a page, each in a shell; what each printed."""
    binaries = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "TPU_NAME": "",
    }
    printed = []
    for block in commands(page):
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", block],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
        printed.append(done.stdout + done.stderr)
    return printed


def write_large_checkpoint(folder: Path) -> None:
    """A BART of random weights that reads as many tokens as bart-large-cnn."""
    weights = tensors()
    rng = np.random.default_rng(3)
    for side in ("encoder", "decoder"):
        name = f"model.{side}.embed_positions.weight"
        shape = (POSITIONS + 2, weights[name].shape[1])
        weights[name] = rng.normal(size=shape).astype("float32")
    write_checkpoint(folder, weights, settings={"max_position_embeddings": POSITIONS})
    write_tokenizer(folder, as_definition=True)


def test_every_tutorial_is_run():
    assert {path.stem for path in PAGES.glob("*.md")} == set(SUBSTITUTIONS)


def test_the_commands_of_the_own_corpus(tmp_path):
    _, checked, summarized, shown, paged, scored, trained, written = run_page(
        "own-corpus", tmp_path
    )
    assert "0 problems" in checked
    assert "documents: read 200, written 200" in summarized
    assert "sample-001000, 124 words" in shown
    assert "wrote summaries-report.html" in paged
    assert (tmp_path / "summaries-report.html").stat().st_size > 100_000
    assert "frequency  200" in scored
    assert "wrote bundle" in trained
    assert "summaries: abstractive" in written and "abstractive" in written


def test_the_commands_of_a_checkpoint(tmp_path):
    write_large_checkpoint(tmp_path / "bart-large-cnn")
    imported, verified, _, summarized, tuned = run_page("checkpoint", tmp_path)
    assert "wrote bundle" in imported
    assert "bundle" in verified and "as it was written" in verified
    assert "read 20, written 20" in summarized
    assert "wrote tuned\n" in tuned and "wrote tuned_summaries" in tuned


def test_the_commands_of_the_warehouse(tmp_path):
    _, script, second, again, read, merged = run_page("warehouse", tmp_path)
    assert "documents: read 300, written 300" in script
    assert "rows 300, in place of 0 earlier ones" in script
    assert "documents: read 400, reused 299, written 101" in second
    assert "rows 400, in place of 300 earlier ones" in second
    assert "in the table already" in again
    assert "400 rows" in read
    assert "wrote sql" in merged and "400 rows" in merged


def test_the_commands_for_a_tpu_without_one(tmp_path):
    prepared, tried, refused, used = run_page("tpu", tmp_path)
    assert "wrote records" in prepared
    assert "0 problems" in tried and "wrote trial" in tried
    assert "--strategy tpu: no TPU answers (" in refused and "exit code 2" in refused
    assert "wrote summaries" in used
