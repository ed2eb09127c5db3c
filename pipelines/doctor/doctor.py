"""The command `precis doctor`: the checks in their order, and what it prints.

They write nothing. Exit codes: 0 no problem; 1 problems; 2 the command line is wrong.
"""

import contextlib
import dataclasses
import importlib.metadata
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from precis.model.bundle.summarizer_bundle import with_flags_of_bundle
from precis.model.config import suggestion
from precis.model.errors import PrecisError, UsageError
from precis.model.progress.stages import stage
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.doctor.findings import (
    NOTE,
    PROBLEM,
    RUN_AGAIN,
    Diagnosis,
    as_json,
    as_lines,
    checked,
    count,
    last_line,
)
from precis.pipelines.doctor.needs import (
    check_bucket,
    check_corpus,
    check_devices,
    check_engine,
    check_inputs,
    stored_paths,
)
from precis.pipelines.doctor.packages import check_packages
from precis.pipelines.flags.command_words import parse_words, read_command_line
from precis.pipelines.flags.flags import read_flags
from precis.pipelines.options.extras import BEAM_COMMANDS, command_extras
from precis.pipelines.options.one_document import OneDocumentOptions
from precis.pipelines.options.progress import ProgressOptions, split_progress
from precis.pipelines.options.recipes import RECIPES


class Request(NamedTuple):
    """A command line that is checked.

    Attributes:
      command: its name; "" where the installation alone is checked.
      concerns: the dataclasses with its flags.
      beam_args: the flags for Beam.
    """

    command: str = ""
    concerns: Sequence[Any] = ()
    beam_args: Sequence[str] = ()

    @property
    def flags(self) -> dict[str, Any]:
        """The values of its flags, by name."""
        return {
            name: value
            for concern in self.concerns
            for name, value in dataclasses.asdict(concern).items()
        }


def run_doctor(values: Mapping[str, Any], commands: Mapping[str, Any]) -> int:
    """Examines a command line and prints the findings; returns the exit code.

    Args:
      values: the flags of `DoctorOptions`, with the words of the command line.
      commands: all commands by name, as `command_line.commands.COMMANDS` has them.
    """
    line = read_words(values.get("command_line") or [], commands)
    request = read_request(*line, commands)
    command = request.command
    with stage(f"examining {command or 'the installation'}", is_brief=True):
        findings = list(examine(request))
    if values.get("json"):
        version = importlib.metadata.version("precis")
        print(as_json(findings, command=command, version=version))
    else:
        # In a file or a pipe, a finding is one line.
        is_terminal = sys.stdout.isatty()
        width = shutil.get_terminal_size().columns if is_terminal else sys.maxsize
        for text in as_lines(findings, width=width):
            print(text)
        print(last_line(findings, command))
    return 1 if count(findings, PROBLEM) else 0


def read_words(
    words: Sequence[str], commands: Mapping[str, Any]
) -> tuple[str, dict[str, Any], Sequence[str]]:
    """The command, its flags and those for Beam of a command line without `precis`.

    Raises:
      UsageError: there is no such command, or it has no such flag.
    """
    if not words:
        return "", {}, ()
    name, *arguments = words
    command = _find(name, commands)
    concerns = (*command.concerns, ProgressOptions)
    parsed = parse_words(name, concerns, command.text, arguments)
    given = read_command_line(name, concerns, command.text, parsed)
    return name, split_progress(given.flags)[1], given.beam_args


def _find(name: str, commands: Mapping[str, Any]) -> Any:
    known = [command for command in commands if command != "doctor"]
    if name not in known:
        way_out = suggestion(name, known) or "`precis --help` shows them"
        raise UsageError(f"there is no command {name!r} to check; {way_out}")
    return commands[name]


def read_request(
    name: str,
    flags: Mapping[str, Any],
    beam_args: Sequence[str],
    commands: Mapping[str, Any],
) -> Request:
    """Reads the flags of a command as the command does.

    Raises:
      UsageError: there is no such command, or it refuses its flags.
    """
    if not name:
        return Request()
    if "text" in flags and name == "summarize":
        raise UsageError(
            f"--text {flags['text']}: doctor checks jobs over a corpus, and one "
            "document is summarized in seconds; name a --corpus in its place"
        )
    if name == "train":
        flags = {**RECIPES.get(str(flags.get("recipe", "")), {}), **flags}
    if name == "summarize":
        # A bundle that is damaged is reported by the check of bundles.
        with contextlib.suppress(PrecisError, OSError):
            flags = with_flags_of_bundle(flags)
    concerns = _find(name, commands).concerns
    kinds = [kind for kind in concerns if kind is not OneDocumentOptions]
    return Request(name, read_flags(kinds, dict(flags)), beam_args)


def examine(request: Request) -> Iterator[Diagnosis]:
    """The findings, in order, as they are made."""
    command, flags = request.command, request.flags
    extras = needed_extras(request) if command else None
    findings = list(checked("packages", check_packages(extras)))
    yield from findings
    if command and count(findings, PROBLEM):
        yield Diagnosis(
            NOTE, "packages", "what needs those packages was not checked", RUN_AGAIN
        )
        return
    if extras is None or extras & {"inference", "network"}:
        yield from checked("accelerator", check_devices())
    paths = stored_paths(flags, request.beam_args)
    buckets = [each for path in paths for each in checked("bucket", check_bucket(path))]
    yield from buckets
    if count(buckets, PROBLEM):
        yield Diagnosis(NOTE, "bucket", "what lies there was not checked", RUN_AGAIN)
        return
    yield from checked("inputs", check_inputs(flags))
    if command in BEAM_COMMANDS:
        kinds = [type(concern) for concern in request.concerns]
        engine = check_engine(command, kinds, flags, request.beam_args)
        yield from checked("engine", engine)
    for concern in request.concerns:
        if isinstance(concern, CorpusOptions):
            yield from checked("corpus", check_corpus(concern, flags["output"]))


def needed_extras(request: Request) -> set[str]:
    """The extras of setup.py that the packages of a command line come from."""
    flags = request.flags
    paths = stored_paths(flags, request.beam_args)
    extras = command_extras(request.command, flags, paths)
    # The table of `loaders` is a name in SQL, which needs no package.
    table = "" if request.command == "loaders" else str(flags.get("table") or "")
    if table:
        extras.add("delta" if table.startswith("delta:") else "iceberg")
    # Beam, which knows the names of its runners, may not be installed.
    if "dataflow" in " ".join(request.beam_args).lower():
        extras.add("dataflow")
    return extras
