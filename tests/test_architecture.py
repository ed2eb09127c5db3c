"""Tests of who may import whom, and of what a light command imports."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import precis

ROOT = Path(__file__).parent.parent
MODEL_FILES = sorted((ROOT / "model").rglob("*.py"))
PACKAGE_FILES = sorted(
    [*ROOT.glob("model/**/__init__.py"), *ROOT.glob("pipelines/**/__init__.py")]
)
HEAVY = (
    "tensorflow",
    "keras",
    "tensorflow_text",
    "tensorflow_datasets",
    "apache_beam",
    "pyarrow",
    "duckdb",
)


def name_of(path):
    return str(path.relative_to(ROOT))


def imported_modules(tree):
    """The modules a file imports, anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, (
                f"line {node.lineno}: relative imports hide where a name comes from"
            )
            yield node.module


def test_an_import_is_found_wherever_it_stands():
    tree = ast.parse(
        "import a.b, c\nfrom d.e import f\ndef g():\n    if True:\n        import h\n"
    )
    assert sorted(imported_modules(tree)) == ["a.b", "c", "d.e", "h"]


def test_there_are_files_to_look_at():
    assert len(MODEL_FILES) > 20 and len(PACKAGE_FILES) >= 8


@pytest.mark.parametrize("path", MODEL_FILES, ids=name_of)
def test_the_model_knows_nothing_of_the_pipelines(path):
    modules = set(imported_modules(ast.parse(path.read_bytes())))
    own = {module for module in modules if module.partition(".")[0] == "precis"}
    assert not [
        module for module in own if not f"{module}.".startswith("precis.model.")
    ]
    assert not {"pipelines", "apache_beam"} & {
        module.partition(".")[0] for module in modules
    }


@pytest.mark.parametrize("path", PACKAGE_FILES, ids=name_of)
def test_a_package_begins_with_a_docstring_and_nothing_else(path):
    (node,) = ast.parse(path.read_bytes()).body
    assert (
        isinstance(node, ast.Expr)
        and isinstance(node.value.value, str)
        and node.value.value.strip()
    )


@pytest.mark.parametrize("room", ["model", "pipelines"])
def test_every_folder_with_code_is_a_package(room):
    folders = {path.parent for path in (ROOT / room).rglob("*.py")}
    assert [
        name_of(folder)
        for folder in sorted(folders)
        if not (folder / "__init__.py").exists()
    ] == []


def run_python(code):
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )


SAY_WHAT_IS_HEAVY = (
    f"print('heavy:', *[name for name in {HEAVY!r} if name in sys.modules])"
)


def test_help_answers_without_tensorflow_beam_or_arrow():
    code = f"""
import sys
from precis.pipelines.cli import main
names = ("prepare", "train", "import", "summarize", "export", "attention", "evaluate")
for argv in (["--help"], ["--version"], *([name, "--help"] for name in names)):
    try:
        main(argv)
    except SystemExit as error:
        print("exit", error.code)
{SAY_WHAT_IS_HEAVY}
"""
    done = run_python(code)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines.count("exit 0") == 9 and lines[-1] == "heavy:"
    for name in (
        "prepare",
        "train",
        "import",
        "summarize",
        "export",
        "attention",
        "evaluate",
    ):
        assert f"usage: precis {name} " in done.stdout


def test_a_flag_that_is_wrong_is_refused_without_tensorflow_beam_or_arrow():
    refused = (
        "assert main(['train', '--records', 'r', '--output', 'o', '--no', '1']) == 2"
    )
    done = run_python(
        f"import sys\nfrom precis.pipelines.cli import main\n{refused}\n{SAY_WHAT_IS_HEAVY}"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "heavy:\n"


def test_import_precis_is_light():
    done = run_python(f"import sys\nimport precis\n{SAY_WHAT_IS_HEAVY}")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "heavy:\n"


@pytest.mark.parametrize(
    "name",
    [
        "attention",
        "evaluate",
        "export",
        "import_checkpoint",
        "prepare",
        "summarize",
        "train",
    ],
)
def test_precis_offers_the_jobs(name):
    assert name in precis.__all__ and len(precis.__all__) == 7
    job = getattr(precis, name)
    assert (job.__module__, job.__name__) == (f"precis.pipelines.{name}", name)


def test_precis_offers_nothing_else():
    with pytest.raises(
        AttributeError, match="module 'precis' has no attribute 'summarise'"
    ):
        precis.summarise  # noqa: B018
