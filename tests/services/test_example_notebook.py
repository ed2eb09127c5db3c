"""Test of examples/notebook.ipynb, executed by a kernel of this Python."""

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.services

EXAMPLE = Path(__file__).parents[2] / "examples" / "notebook.ipynb"


def printed(cell: nbformat.NotebookNode) -> str:
    """What a cell has printed and what its last line is."""
    texts = [
        each.get("text", "") for each in cell.outputs if each.get("name") != "stderr"
    ]
    values = [
        each["data"]["text/plain"]
        for each in cell.outputs
        if each.output_type == "execute_result"
    ]
    return "".join([*texts, *values])


def test_the_notebook_is_kept_without_its_outputs():
    notebook = nbformat.read(EXAMPLE, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert (cell.outputs, cell.execution_count) == ([], None)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}


def test_the_cells_show_what_they_say(tmp_path):
    notebook = nbformat.read(EXAMPLE, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=300, resources=resources).execute()
    version, summarize, evaluate, table, document, text = (
        printed(cell) for cell in notebook.cells if cell.cell_type == "code"
    )
    assert version == "'0.2.0'"
    assert "'failed': 0" in summarize and "'written': 0" not in summarize
    table_rows = re.findall(r"^(\S+) +\d+ +(\d+\.\d) ", evaluate, re.MULTILINE)
    means = {system: float(rouge1) for system, rouge1 in table_rows}
    assert {"lead-2", "lexrank", "oracle"} <= set(means)
    assert means["oracle"] > means["lexrank"]
    assert "summary_method" in table and "lexrank" in table
    assert document.startswith("sample-")
    methods = [line.split()[0] for line in document.splitlines()[-6:]]
    assert sorted(set(methods)) == ["lead", "lexrank", "oracle"]
    assert text.splitlines()[0] == "lexrank"
    assert (tmp_path / "notebook" / "scores" / "rouge.md").exists()
