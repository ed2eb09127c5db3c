"""Small faults put into the product by a seed, and which of them the fast tests catch.

    python benchmarks/mutants.py --map build/then --output then.json
    python benchmarks/mutants.py --map build/now --output now.json --again then.json

The first run notes in the folder `--map` which test executes which line of HEAD; it
needs `pip install coverage`. A later call with the folder uses what is there. Each
fault is put into a clone of that commit, where the tests that execute its line run, the
quickest first, and then other tests that execute the file. A test that fails catches
the fault if it passes without it. `--again` puts in the faults of an earlier run, as
far as their code is still there.
"""

import argparse
import ast
import contextlib
import importlib
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FAST = "not slow and not parity and not engines and not services"
# What most tests import; a process has it before it is forked for each fault.
HEAVY = ("pytest", "tensorflow", "keras", "apache_beam", "duckdb", "pyarrow.dataset")
TURNED = {ast.Eq: "!=", ast.NotEq: "==", ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">="}
TURNED |= {ast.GtE: ">", ast.Is: "is not", ast.IsNot: "is", ast.In: "not in"}
TURNED |= {ast.NotIn: "in", ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.Div: "*"}
COVERAGE = """[run]
parallel = true
data_file = {folder}/raw/lines
include = {tree}/precis/*
patch = _exit, fork
context = ${{PYTEST_CURRENT_TEST-}}
"""


def main() -> None:
    """Parses the flags, makes the map if there is none, and tries the faults."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--map", type=Path, required=True, help="which test runs what")
    parser.add_argument(
        "--output", type=Path, help="the faults, caught or not, as JSON"
    )
    parser.add_argument("--again", type=Path, help="the --output of an earlier run")
    parser.add_argument("--count", type=int, default=60, help="faults (default: 60)")
    parser.add_argument("--seed", type=int, default=1, help="(default: 1)")
    parser.add_argument(
        "--seconds", type=float, default=60, help="of tests for each (default: 60)"
    )
    parser.add_argument("--workers", type=int, default=2, help="(default: 2)")
    flags = parser.parse_args()
    folder = flags.map.resolve()
    if not (folder / "tests.json").exists():
        with clone("HEAD") as tree:
            make_map(folder, tree, flags.workers)
    if not flags.output:
        return
    revision = json.loads((folder / "tests.json").read_text())["revision"]
    with clone(revision) as tree:
        every = {
            identity(fault): fault
            for part in ("model", "pipelines")
            for path in sorted((tree / "precis" / part).rglob("*.py"))
            for fault in faults(path, tree)
        }
    chosen = random.Random(flags.seed).sample([*every.values()], flags.count)
    if flags.again:
        earlier = json.loads(flags.again.read_text())
        chosen = [{**fault, **every.get(identity(fault), GONE)} for fault in earlier]
    with ThreadPoolExecutor(flags.workers) as pool:
        parts = pool.map(
            lambda worker: try_faults(chosen[worker :: flags.workers], folder, flags),
            range(flags.workers),
        )
        tried = [fault for part in parts for fault in part]
    flags.output.write_text(json.dumps(tried, indent=1))
    for result in ("caught", "survived", "not executed", "gone"):
        print(f"{result} {sum(fault['result'] == result for fault in tried)} faults")


@contextlib.contextmanager
def clone(revision: str) -> Iterator[Path]:
    """A copy of a commit."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder).resolve() / "tree"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(tree)], check=True)
        subprocess.run(["git", "checkout", "-q", revision], cwd=tree, check=True)
        yield tree


def start(tree: Path, *command: str, **variables: str) -> subprocess.Popen:
    """Starts Python in a copy, which it imports `precis` from."""
    paths = {"PYTHONPATH": f"{tree}:{Path(__file__).parent}"}
    return subprocess.Popen(
        [sys.executable, "-B", *command],
        cwd=tree,
        env={**os.environ, **paths, **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


# The map.


def make_map(folder: Path, tree: Path, workers: int) -> None:
    """Writes `lines`, the data of coverage.py, and `tests.json`: test -> its seconds,
    the fixtures that it shares with others, and the files that it executes.
    """
    from coverage import Coverage, CoverageData

    (folder / "raw").mkdir(parents=True, exist_ok=True)
    settings = folder / "coverage.ini"
    settings.write_text(COVERAGE.format(folder=folder, tree=tree))
    variables = {"COVERAGE_PROCESS_START": str(settings), "MUTANTS_MAP": str(folder)}
    words = ("-m", "pytest", "-q", "-p", "mutants", "-m", FAST, "--timeout", "900")
    spread = ("-n", str(workers), "--dist", "loadfile")
    printed, _ = start(tree, *words, *spread, **variables).communicate()
    (folder / "pytest.txt").write_text(printed)
    Coverage(str(folder / "lines"), config_file=False).combine([str(folder / "raw")])
    tests: dict[str, dict[str, Any]] = {}
    for path in folder.glob("tests-*.json"):
        tests |= json.loads(path.read_text())
    data = CoverageData(str(folder / "lines"))
    data.read()
    for path in data.measured_files():
        contexts = {c for of in data.contexts_by_lineno(path).values() for c in of}
        for test in executing(contexts, tests):
            tests[test]["files"].append(str(Path(path).relative_to(tree)))
    head = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=tree, text=True)
    known = {"revision": head.strip(), "tree": str(tree), "tests": tests}
    (folder / "tests.json").write_text(json.dumps(known))


def executing(contexts: set[str], tests: dict[str, dict[str, Any]]) -> list[str]:
    """The tests behind contexts, each a test or a fixture that tests share."""
    names = {re.sub(r" \((setup|call|teardown)\)$", "", name) for name in contexts}
    return [
        test
        for test, entry in tests.items()
        if test in names or any(f"fixture {each}" in names for each in entry["shared"])
    ]


# The faults.

GONE = {"start": -1}


def identity(fault: dict[str, Any]) -> tuple:
    """What tells a fault from others, also where lines before it have changed."""
    return tuple(fault[name] for name in ("file", "scope", "kind", "old", "new", "nth"))


def faults(path: Path, tree: Path) -> Iterator[dict[str, Any]]:
    """Every fault of a file in a copy, as the bytes that another text replaces."""
    source = path.read_bytes()
    lines = source.splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines))]
    seen: dict[tuple, int] = {}
    for scope, node in nodes(ast.parse(source), ""):
        for kind, first, last, new in changes(node):
            start = starts[first[0] - 1] + first[1]
            stop = starts[last[0] - 1] + last[1]
            old = source[start:stop].decode()
            if kind in ("comparison", "arithmetic") and re.search("[()#]", old):
                continue
            new = new.format(old=old) if kind == "boolean" else new
            name = (scope, kind, old, new)
            seen[name] = seen.get(name, -1) + 1
            text = lines[node.lineno - 1].decode().strip()
            yield {
                **{"file": str(path.relative_to(tree)), "line": node.lineno},
                **{"scope": scope, "kind": kind, "old": old, "new": new, "text": text},
                **{"nth": seen[name], "start": start, "stop": stop},
            }


def nodes(node: ast.AST, scope: str) -> Iterator[tuple[str, Any]]:
    """The nodes below a node that may have faults, with the function around each."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        scope = f"{scope}.{node.name}".lstrip(".")
    yield scope, node
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            # Python 3.11 does not know where the parts of an f-string stand.
            is_left_out = isinstance(child, (ast.Raise, ast.JoinedStr))
            if isinstance(child, ast.AST) and not is_left_out:
                if name not in ("annotation", "returns", "decorator_list"):
                    yield from nodes(child, scope)


def changes(node: Any) -> Iterator[tuple[str, tuple, tuple, str]]:
    """The faults of a node: kind, (line, column) of both ends, and the new text."""

    def whole(part: Any) -> tuple:
        return begin(part), end(part)

    def begin(part: Any) -> tuple:
        return part.lineno, part.col_offset

    def end(part: Any) -> tuple:
        return part.end_lineno, part.end_col_offset

    match node:
        case ast.Compare(ops=[op], comparators=[right]):
            new = f" {TURNED[type(op)]} "
            yield "comparison", end(node.left), begin(right), new
        case ast.BinOp(left=left, op=op) if type(op) in TURNED and not isinstance(
            left, (ast.JoinedStr, ast.List, ast.Tuple)
        ):
            new = f" {TURNED[type(op)]} "
            yield "arithmetic", end(left), begin(node.right), new
        case ast.Constant(value=bool() as value):
            yield "constant", *whole(node), str(not value)
        case ast.Constant(value=int() | float() as value):
            yield "constant", *whole(node), str(value + 1)
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            yield "boolean", *whole(test), "(not ({old}))"
        case ast.Return(value=ast.AST() as value):
            yield "return", *whole(value), "None"
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield "statement", *whole(node), "pass"


# The tests of a fault.


def try_faults(chosen: list[dict], folder: Path, flags: Any) -> list[dict[str, Any]]:
    """Puts faults into a copy, one after the other, and runs the tests of each."""
    known, tried = json.loads((folder / "tests.json").read_text()), []
    with (
        clone(known["revision"]) as tree,
        start(tree, str(Path(__file__)), "serve") as server,
    ):
        for fault in chosen:
            path, result, by = tree / fault["file"], "gone", ""
            if fault["start"] >= 0:
                whole, new = path.read_bytes(), fault["new"].encode()
                tests = tests_of(fault, folder, known, flags.seconds)
                result = "survived" if tests else "not executed"
                while tests and result == "survived":
                    path.write_bytes(
                        whole[: fault["start"]] + new + whole[fault["stop"] :]
                    )
                    failed, why = run(server, tests)
                    path.write_bytes(whole)
                    if not failed:
                        break
                    if failed not in tests or not run(server, [failed])[0]:
                        result, by = "caught", f"{failed}: {why}"
                    tests = [test for test in tests if test != failed]
            tried.append({**fault, "result": result, "by": by})
            print(json.dumps(tried[-1]), flush=True)
        server.stdin.close()  # pyright: ignore[reportOptionalMemberAccess]  # A pipe.
    return tried


def tests_of(fault: dict, folder: Path, known: dict, seconds: float) -> list[str]:
    """The tests that execute the line of a fault, and then others of its file, the
    quickest first, of so many seconds together.
    """
    from coverage import CoverageData

    data = CoverageData(str(folder / "lines"))
    data.read()
    lines = data.contexts_by_lineno(str(Path(known["tree"]) / fault["file"]))
    tests = known["tests"]
    of_line = set(executing(set(lines.get(fault["line"], ())), tests))
    of_file = [test for test in tests if fault["file"] in tests[test]["files"]]
    order = sorted(
        {*of_line, *of_file},
        key=lambda test: (test not in of_line, tests[test]["seconds"], test),
    )
    taken: list[str] = []
    for test in order:
        seconds -= tests[test]["seconds"]
        if seconds > 0 or not taken:
            taken.append(test)
    return taken


def run(server: Any, tests: list[str]) -> tuple[str, str]:
    """Runs tests until one fails: its name, or what else ended them, and why."""
    print(json.dumps(tests), file=server.stdin, flush=True)
    return tuple(json.loads(server.stdout.readline()))


def serve() -> None:
    """Runs the tests of each line of standard input in a process forked from this one,
    which has imported what is slow.
    """
    for name in HEAVY:
        importlib.import_module(name)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        result = Path(tempfile.mkstemp()[1])
        if not (child := os.fork()):
            os.setsid()
            # An endless loop ends here.
            resource.setrlimit(resource.RLIMIT_CPU, (900, 900))
            os._exit(run_pytest(json.loads(line), result))
        _, status = os.waitpid(child, 0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(status)
        written = result.read_text()
        result.unlink()
        ended = ["", ""] if not code else [f"pytest ended with {code}", ""]
        print(written or json.dumps(ended), file=answers, flush=True)


def run_pytest(tests: list[str], result: Path) -> int:
    """The exit code of pytest for some tests of the copy in the working folder."""
    import pytest

    files = dict.fromkeys(test.split("::")[0] for test in tests)
    words = ["-x", "-q", "-p", "no:cacheprovider", "--timeout", "300", *files]
    return int(pytest.main(words, plugins=[ChosenTests(tests, result)]))


class ChosenTests:
    """Runs some tests, in their order, and writes the first that fails, and why."""

    def __init__(self, tests: list[str], result: Path) -> None:
        self.place = {test: number for number, test in enumerate(tests)}
        self.result = result

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leaves the chosen tests."""
        kept = [item for item in items if item.nodeid in self.place]
        items[:] = sorted(kept, key=lambda item: self.place[item.nodeid])

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Writes a failure."""
        if report.failed:
            why = report.longreprtext.strip().splitlines()[-1:]
            self.result.write_text(json.dumps([report.nodeid, "".join(why)]))


class ExecutedLines:
    """Names for coverage.py what executes the next lines: a test, or a fixture that
    tests share. Writes what was noted of the tests of this process.
    """

    def __init__(self, folder: Path) -> None:
        from coverage import Coverage

        self.folder = folder
        self.coverage: Any = Coverage.current()
        self.tests: dict[str, dict[str, Any]] = {}

    def pytest_runtest_setup(self, item: Any) -> None:
        """Notes a test."""
        shared = [
            f"{found[-1].baseid}:{name}"
            for name, found in item._fixtureinfo.name2fixturedefs.items()
            if found[-1].scope != "function"
        ]
        self.tests[item.nodeid] = {"shared": shared, "seconds": 0.0, "files": []}
        self.coverage.switch_context(item.nodeid)

    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> None:
        """Names a fixture."""
        is_shared = fixturedef.scope != "function"
        name = f"fixture {fixturedef.baseid}:{fixturedef.argname}"
        self.coverage.switch_context(name if is_shared else request.node.nodeid)

    def pytest_runtest_call(self, item: Any) -> None:
        """Names a test behind its fixtures."""
        self.coverage.switch_context(item.nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Notes how long a test took, its fixtures included."""
        if report.nodeid in self.tests:
            self.tests[report.nodeid]["seconds"] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Writes what was noted."""
        path = self.folder / f"tests-{os.getpid()}.json"
        path.write_text(json.dumps(self.tests))


def pytest_configure(config: Any) -> None:
    """Pytest loads this file with `-p mutants` to make the map."""
    if hasattr(config, "workerinput"):
        folder = Path(os.environ["MUTANTS_MAP"])
        config.pluginmanager.register(ExecutedLines(folder))


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else main()
