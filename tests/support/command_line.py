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


def results(folder: str | os.PathLike) -> dict[str, Any]:
    """`contents` of what `precis summarize` wrote, its manifest without how long the
    search took and _SUCCESS without the checksum of the manifest.
    """
    found: dict[str, Any] = contents(folder)
    manifest = json.loads(found["manifest.json"])
    for seconds in ("process_seconds", "wall_seconds"):
        del manifest["search"][seconds]
    for rate in ("documents_per_second", "summary_tokens_per_second"):
        del manifest["search"][rate]
    success = found["_SUCCESS"].split()[0]
    return {**found, "manifest.json": manifest, "_SUCCESS": success}


def write_jsonl(path: Path, records: Iterable[dict | bytes | str]) -> str:
    """Writes records, or lines as they are; returns the `--corpus` of the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        for line in records:
            if isinstance(line, dict):
                line = json.dumps(line, ensure_ascii=False)
            file.write((line.encode() if isinstance(line, str) else line) + b"\n")
    return f"jsonl:{path}"


def error_lines(stderr: str, command: str) -> list[str]:
    """The lines of standard error that precis itself wrote."""
    start = f"precis {command}: "
    return [line for line in stderr.splitlines() if line.startswith(start)]


def run_reference(program: str, *arguments: Any) -> None:
    """Runs a program of `support` that needs a process of its own, as it loads another
    library or sets up TensorFlow; everything that it reads is in folders.
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
