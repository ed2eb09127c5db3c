"""The command line, called within the process of a test, and the files it wrote."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from precis.pipelines.command_line.cli import main
from precis.pipelines.command_line.commands import COMMANDS
from precis.pipelines.run.options import ProgressOptions, flag_names

# What each command needs at least; nothing of it exists.
NEEDED = {
    "prepare": ("--corpus", "sample:20", "--output", "out"),
    "train": ("--records", "records", "--output", "out"),
    "summarize": ("--corpus", "sample:20", "--output", "out"),
    "evaluate": ("--input", "run"),
    "import": ("checkpoint", "--output", "out"),
    "export": ("bundle", "--output", "out"),
}


_GENERAL = ("verbose", *flag_names([ProgressOptions]))


def precis(command: str, **flags: Any) -> int:
    """The exit code of a subcommand; the flags are those of `command_words`."""
    return exit_code(*command_words(command, **flags))


def command_words(command: str, **flags: Any) -> list[str]:
    """A subcommand and its flags as words; `lower_case=True` is `--lower_case`.

    What is no flag of the command comes from a file, as a manifest has it.
    """
    argv = [command]
    names = {*flag_names(COMMANDS[command].option_groups), "config", *_GENERAL}
    settings = {name: flags.pop(name) for name in [*flags] if name not in names}
    if settings:
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
            json.dump({"command": command, "flags": settings}, file)
        argv.append(f"--config={file.name}")
    for name, value in flags.items():
        if isinstance(value, bool):
            argv.append(f"--{name}" if value else f"--no-{name}")
        else:
            argv += [f"--{name}", str(value)]
    return argv


def exit_code(*argv: str) -> int:
    """The exit code of a command line, whether it is returned or raised."""
    try:
        return main(argv)
    except SystemExit as error:
        assert isinstance(error.code, int)
        return error.code


def contents(folder: str | os.PathLike) -> dict[str, bytes]:
    """Every file below a folder: name within it -> content."""
    root = Path(folder)
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


TIMES = (
    "process_seconds",
    "wall_seconds",
    "documents_per_second",
    "summary_tokens_per_second",
)


def without_times(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest without how long the search took, which differs from run to run."""
    search = manifest["search"]
    assert set(TIMES) < set(search)
    return {
        **manifest,
        "search": {name: value for name, value in search.items() if name not in TIMES},
    }


def results(folder: str | os.PathLike) -> dict[str, Any]:
    """`contents` of what `precis summarize` wrote, its manifest without times and
    _SUCCESS without the checksum of the manifest.
    """
    found: dict[str, Any] = contents(folder)
    manifest = without_times(json.loads(found["manifest.json"]))
    success = found["_SUCCESS"].split()[0]
    return {**found, "manifest.json": manifest, "_SUCCESS": success}


def write_jsonl(path: Path, records: Iterable[dict | bytes | str]) -> str:
    """Writes records, or lines as they are; returns the `--corpus` of the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        record if isinstance(record, bytes) else _line(record) for record in records
    ]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return f"jsonl:{path}"


def _line(record: dict | str) -> bytes:
    return (
        record.encode()
        if isinstance(record, str)
        else json.dumps(record, ensure_ascii=False).encode()
    )


def error_lines(stderr: str, command: str) -> list[str]:
    """The lines of standard error that precis itself wrote."""
    start = f"precis {command}: "
    return [line for line in stderr.splitlines() if line.startswith(start)]


def run_reference(program: str, *arguments: Any) -> None:
    """Runs a program of `support` that loads another library, which has a process of
    its own; everything that it reads is in folders.
    """
    done = subprocess.run(
        [sys.executable, "-m", f"support.{program}", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=900,
        # Without it transformers may wait for a hub.
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        cwd=Path(__file__).parent.parent,
    )
    assert done.returncode == 0, done.stderr[-3000:]
