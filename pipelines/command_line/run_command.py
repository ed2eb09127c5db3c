"""Runs one command. TensorFlow and Beam are imported only when a job starts, so that
`--help` answers at once.
"""

import importlib
import importlib.metadata
import logging
import os
import sys
import warnings
from typing import Any

from precis.model.config import suggestion
from precis.model.credentials import RedactingFormatter, redact
from precis.model.errors import PrecisError, describe_system_error
from precis.model.progress.stages import stage
from precis.model.tensorflow_import import COMMAND_VARIABLE
from precis.pipelines.command_line.commands import COMMANDS, Command, overview
from precis.pipelines.flags.command_words import parse_words, read_command_line
from precis.pipelines.options.progress import ProgressOptions, split_progress
from precis.pipelines.run.job_progress import complain, shown

# The extra that brings a package, by the package's import name.
_EXTRAS = {
    "apache_beam": "beam",
    "deltalake": "delta",
    "gcsfs": "gcs",
    "s3fs": "s3",
    "jinja2": "report",
    "markupsafe": "report",
    "keras": "network",
    "safetensors": "network",
    "sklearn": "network",
    "tensorboard": "network",
    "tensorflow": "network",
    "tensorflow_text": "network",
    "tokenizers": "network",
    "matplotlib": "plot",
    "pyiceberg": "iceberg",
    "tensorflow_datasets": "tfds",
}


def run_command(arguments: list[str]) -> int:
    """Runs one command and returns its exit code; `arguments` begin with its name."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(overview())
        return 0
    if arguments[0] == "--version":
        print(f"precis {importlib.metadata.version('precis')}")
        return 0
    name = arguments[0]
    if name not in COMMANDS:
        way_out = suggestion(name, COMMANDS) or "`precis --help` shows them"
        _complain("precis", f"there is no command {name!r}; {way_out}")
        return 2
    return _run(name, COMMANDS[name], arguments[1:])


def _run(name: str, command: Command, arguments: list[str]) -> int:
    """Reads the flags of a command and runs it."""
    concerns = (*command.concerns, ProgressOptions)
    parsed = parse_words(name, concerns, command.text, arguments)
    _set_logging(parsed.is_verbose)
    try:
        given = read_command_line(name, concerns, command.text, parsed)
        options, flags = split_progress(given.flags)
        with shown(name, options, is_verbose=parsed.is_verbose):
            return _run_shown(name, command, flags, given.beam_args, parsed.is_verbose)
    except PrecisError as error:  # A flag that cannot be.
        _complain(f"precis {name}", error)
        return error.exit_code


def _run_shown(
    name: str,
    command: Command,
    flags: dict[str, Any],
    beam_args: list[str],
    is_verbose: bool,
) -> int:
    """Runs a command whose progress is shown, and its errors with it."""
    try:
        # One document is summarized without Beam.
        if command.text.uses_beam and not flags.get("text"):
            with stage("loading Beam", is_brief=True):
                importlib.import_module("apache_beam")
            if not is_verbose:
                from precis.pipelines.engines.quiet_workers import quiet_workers

                quiet_workers()
        return command.run(flags, beam_args)
    except PrecisError as error:
        if is_verbose and error.__cause__ is not None:
            logging.getLogger("precis").error("cause", exc_info=error.__cause__)
        _complain(f"precis {name}", error)
        return error.exit_code
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise
        # Two extras bring matplotlib, and a report needs more than that.
        is_of_report = (name, package) == ("report", "matplotlib")
        extra = "report" if is_of_report else _EXTRAS[package]
        _complain(
            f"precis {name}",
            f"{package} is not installed; pip install 'precis[{extra}]'",
        )
        return 2
    # A disk that is full or cannot be written is no defect, so there is no traceback.
    except OSError as error:
        if is_verbose:
            logging.getLogger("precis").error("cause", exc_info=error)
        described = describe_system_error(error)
        _complain(f"precis {name}", described)
        return described.exit_code


class _StderrHandler(logging.StreamHandler):
    """Logs to what stderr is at the moment: a live display puts it above its lines."""

    @property
    def stream(self) -> Any:
        """Where the next record goes."""
        return sys.stderr

    @stream.setter
    def stream(self, _: Any) -> None:
        pass


def _complain(program: str, message: Any) -> None:
    complain(f"{program}: {redact(str(message))}")


def _set_logging(is_verbose: bool) -> None:
    """Quiets the libraries, in this process and in those it starts."""
    if is_verbose:
        logging.basicConfig(level=logging.INFO)
        for handler in logging.getLogger().handlers:
            handler.setFormatter(RedactingFormatter(logging.BASIC_FORMAT))
        return
    os.environ[COMMAND_VARIABLE] = "1"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    warnings.filterwarnings("ignore")
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    logging.basicConfig(level=logging.ERROR, handlers=[_StderrHandler()])
    # Beam logs the traceback of what a worker raises; the command says it in one line.
    # So does gcsfs.
    for name in ("apache_beam", "gcsfs"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
