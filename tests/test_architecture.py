"""Tests of which module may import which, and of what a light command imports."""

import ast
import functools
import graphlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from precis.pipelines.command_line.commands import COMMANDS

ROOT = Path(__file__).parent.parent
FOLDERS = {f"precis.{top}": ROOT / "precis" / top for top in ("model", "pipelines")}
HEAVY = """
    tensorflow keras tensorflow_text tensorflow_datasets apache_beam pyarrow
    numpy fsspec duckdb sklearn safetensors tokenizers jinja2 markupsafe matplotlib
""".split()
# The packages and modules of precis.model and precis.pipelines, the lowest first. Each
# may import those above it in its list.
MODEL_LAYERS = """
    errors isolation progress tensorflow_import own_process processes config
    credentials storage files finished backend logits cache text rouge
    bootstrap extractive quality tokenization records network search bundle
    keyphrases inference training
""".split()
PIPELINE_LAYERS = """
    corpus run tables verify warehouse engines evaluate report summarize prepare
    transforms bundles training doctor command_line
""".split()
LAYERS = {"precis.model": MODEL_LAYERS, "precis.pipelines": PIPELINE_LAYERS}


def module_files() -> dict[str, Path]:
    """The file of every module, by its import name."""
    files = {}
    for folder in FOLDERS.values():
        for path in folder.rglob("*.py"):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            files[name.removesuffix(".__init__")] = path
    return files


FILES = module_files()


def imported_modules(tree: ast.AST) -> Iterator[str]:
    """The modules a file imports, anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            place = f"line {node.lineno}"
            assert node.level == 0, f"{place}: write the whole name of the module"
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                yield below if below in FILES else node.module


@functools.cache
def import_graph() -> dict[str, set[str]]:
    """The project's modules that each module imports."""
    graph = {}
    for name, path in FILES.items():
        modules = set(imported_modules(ast.parse(path.read_bytes())))
        graph[name] = {module for module in modules if module.startswith("precis.")}
    return graph


@pytest.mark.parametrize("top", LAYERS)
def test_every_layer_is_listed_once_and_imports_go_downwards(top):
    # `search` for precis.model.search.beam.
    below = [each for each in FILES if each.startswith(f"{top}.")]
    layer_of = {each: each.split(".")[2] for each in below}
    assert sorted(LAYERS[top]) == sorted(set(layer_of.values()))
    level = {each: LAYERS[top].index(layer) for each, layer in layer_of.items()}
    for module in level:
        for target in import_graph()[module] & level.keys():
            assert level[target] <= level[module], f"{module} imports {target}"


def test_modules_do_not_import_each_other_in_circles():
    graph = import_graph()
    order = list(graphlib.TopologicalSorter(graph).static_order())
    assert set(order) >= set(graph)


def test_the_model_imports_neither_the_pipelines_nor_beam():
    for name, path in FILES.items():
        if name.startswith("precis.model"):
            modules = set(imported_modules(ast.parse(path.read_bytes())))
            own = {module for module in modules if module.split(".")[0] == "precis"}
            assert all(module.startswith("precis.model") for module in own), name
            tops = {module.split(".")[0] for module in modules}
            assert not tops & {"model", "pipelines", "apache_beam"}, name


def test_the_model_names_no_flag():
    """Its texts name keywords; the command line writes them with dashes."""
    for name, path in FILES.items():
        if name.startswith("precis.model"):
            assert not re.search("--[a-z{]", path.read_text(encoding="utf-8")), name


def run_python(code: str) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.check_output(command, cwd=ROOT, text=True, timeout=60)


PRINT_HEAVY = f"print('heavy:', *[name for name in {HEAVY!r} if name in sys.modules])"


def test_signals_are_handled_before_any_library_is_imported():
    code = (
        "import sys, precis.pipelines.command_line.cli\n"
        "print({'numpy', 'fsspec', 'orjson', 'rich', 'psutil'} & set(sys.modules))"
    )
    assert run_python(code) == "set()\n"


def test_imports_help_and_wrong_flags_answer_without_heavy_packages():
    code = f"""
import sys
import precis
{PRINT_HEAVY}
from precis.pipelines.command_line.cli import main
commands = {list(COMMANDS)!r}
for argv in (["--help"], ["--version"], *([name, "--help"] for name in commands)):
    try:
        assert main(argv) == 0
    except SystemExit as error:
        print("exit", error.code)
assert main(["train", "--records", "r", "--output", "o", "--no", "1"]) == 2
{PRINT_HEAVY}
"""
    printed = run_python(code)
    lines = printed.splitlines()
    assert lines.count("exit 0") == len(COMMANDS)
    assert lines[0] == lines[-1] == "heavy:"
    for name in COMMANDS:
        assert f"usage: precis {name} " in printed
