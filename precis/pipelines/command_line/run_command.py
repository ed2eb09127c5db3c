"""Runs one command. TensorFlow and Beam are imported only when a job starts, so that
`--help` is fast.
"""

import datetime
import logging
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from precis.model.config import installed_version, suggestion
from precis.model.credentials import RedactingFormatter, redact
from precis.model.errors import (
    Interrupted,
    PrecisError,
    UsageError,
    describe_system_error,
)
from precis.model.tensorflow_import import COMMAND_VARIABLE
from precis.pipelines.command_line.commands import (
    COMMANDS,
    function_of,
    load_function,
    overview,
)
from precis.pipelines.command_line.parser import CommandLine, read_arguments
from precis.pipelines.command_line.results import show_document
from precis.pipelines.corpus.options import local_size
from precis.pipelines.run.interruption import stopped_line
from precis.pipelines.run.job_progress import (
    complain,
    load_arrow,
    load_beam,
    load_tensorflow,
    shown,
    without,
)
from precis.pipelines.run.options import (
    LEAST_BYTES,
    TASK_IMPORTS,
    ProgressOptions,
    split_options,
    with_dashes,
)
from precis.pipelines.summarize.options import OneDocumentOptions

# Flags of jobs that are small, or that one process of this machine does.
_ONE_PROCESS = ("bundle", "checker", "limit", "sample")


def run_command(arguments: list[str]) -> int:
    """Runs one command and returns its exit code; `arguments` begin with its name."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(overview())
        return 0
    name, *words = arguments
    if name == "--version":
        print(f"precis {installed_version()}")
        return 0
    program = f"precis {name}" if name in COMMANDS else "precis"
    try:
        if name not in COMMANDS:
            lists_all = "`precis --help` lists the commands"
            way_out = suggestion(name, COMMANDS) or lists_all
            raise UsageError(f"unknown command {name!r}; {way_out}")
        line = _read(name, words)
        _set_logging(line.is_verbose)
        options, flags = split_options(ProgressOptions, line.flags)
        with shown(name, options, is_verbose=line.is_verbose):
            try:
                return _run(program, name, flags, line)
            except Interrupted as stop:
                complain(stopped_line(arguments, stop))
                return stop.exit_code
    except (PrecisError, OSError) as error:  # A flag or file was refused.
        return _fail(program, error)


def _read(name: str, words: Sequence[str]) -> CommandLine:
    """Parses the words after a command's name. Words after `doctor` and its flags are
    another command line, which becomes the arguments of `precis.doctor`.
    """
    command = COMMANDS[name]
    groups = (*command.option_groups, ProgressOptions)
    is_line = name == "doctor" and any(not word.startswith("-") for word in words)
    if not is_line:
        return read_arguments(name, command._replace(option_groups=groups), words)
    place = [word.startswith("-") for word in words].index(False)
    line, checked = _read(name, words[:place]), words[place]
    line.flags["command"] = checked
    if checked in COMMANDS and checked != name:
        flags, beam_args, _ = _read(checked, words[place + 1 :])
        flags = split_options(ProgressOptions, flags)[1]
        line.flags.update(flags=flags, beam_args=beam_args)
    return line


def _run(program: str, name: str, flags: Mapping[str, Any], line: CommandLine) -> int:
    """Runs a command, and shows its progress and errors."""
    command = COMMANDS[name]
    started = datetime.datetime.now(datetime.UTC)
    try:
        load_arrow()
        if name == "summarize":
            document, flags = split_options(OneDocumentOptions, flags)
            if document.text:  # A single text needs no Beam.
                return _summarize_document(document, flags, line.beam_args)
        if command.uses_beam:
            if not line.beam_args:
                _start_workers(flags)
            load_beam(line.beam_args)
            from precis.pipelines.engines import beam_runner

            beam_runner.shorten_stages()
            if not line.is_verbose:
                beam_runner.quiet_beam()
            flags = {**flags, "beam_args": line.beam_args}
        if command.uses_tensorflow:
            load_tensorflow()
        with without("IPython"):  # Beam would look whether it runs in a notebook.
            result = load_function(function_of(name))(**flags)
        return command.show(result, {**flags, "started": started}) or 0
    except ModuleNotFoundError as error:
        from precis.pipelines.doctor.packages import missing_package

        if not (missing := missing_package(error)):
            raise
        return _fail(program, UsageError("; ".join(missing)))
    # A full or read-only disk is not a bug, so there is no traceback.
    except (PrecisError, OSError) as error:
        cause = error.__cause__ if isinstance(error, PrecisError) else error
        if line.is_verbose and cause is not None:
            logging.getLogger("precis").error("cause", exc_info=cause)
        return _fail(program, error)


def _start_workers(flags: Mapping[str, Any]) -> None:
    """Starts the fork server of worker processes if the job will probably need it. It
    imports Beam on another core while this process does, so a large job begins half a
    second earlier. If the guess is wrong, that was for nothing.
    """
    corpus, workers = flags.get("corpus", ""), flags.get("workers", 0)
    if not corpus or any(map(flags.get, _ONE_PROCESS)):
        return
    from precis.model.processes import start_fork_server, usable_cores

    is_shared = (workers or usable_cores()) > 1
    if is_shared and local_size(corpus) >= (1 if workers else LEAST_BYTES):
        start_fork_server(TASK_IMPORTS)


def _summarize_document(
    document: OneDocumentOptions, flags: Mapping[str, Any], beam_args: Sequence[str]
) -> int:
    """Runs `precis summarize --text`."""
    if beam_args:
        raise UsageError(
            f"unknown flag {beam_args[0].partition('=')[0]} with --text; "
            "`precis summarize --help all` lists the flags"
        )
    from precis.pipelines.summarize.texts import as_json, summarize_document

    row = summarize_document(document.text, **flags)
    show_document(row, document.text, as_line=as_json(row) if document.json else "")
    return 0


def _fail(program: str, error: PrecisError | OSError) -> int:
    """Prints an error in one line; returns the exit code."""
    if isinstance(error, OSError):
        error = describe_system_error(error)
    complain(f"{program}: {with_dashes(redact(str(error)))}")
    return error.exit_code


def _set_logging(is_verbose: bool) -> None:
    """Silences libraries, in this process and in the processes it starts."""
    if is_verbose:
        logging.basicConfig(level=logging.INFO)
        for handler in logging.getLogger().handlers:
            handler.setFormatter(RedactingFormatter(logging.BASIC_FORMAT))
        return
    os.environ[COMMAND_VARIABLE] = "1"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    os.environ.setdefault("HF_HUB_VERBOSITY", "critical")
    warnings.filterwarnings("ignore")
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    logging.basicConfig(level=logging.ERROR)
    # Beam and gcsfs log tracebacks of workers' errors, which the command reports in one
    # line.
    for name in ("apache_beam", "gcsfs"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
