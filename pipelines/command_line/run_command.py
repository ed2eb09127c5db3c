"""Runs one command. TensorFlow and Beam are imported only when a job starts, so that
`--help` answers at once.
"""

import importlib
import importlib.metadata
import logging
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from precis.model.config import suggestion
from precis.model.credentials import RedactingFormatter, redact
from precis.model.errors import PrecisError, UsageError
from precis.pipelines.command_line.commands import COMMANDS, Command, overview
from precis.pipelines.flags.command_parser import GENERAL_FLAGS, command_parser
from precis.pipelines.flags.config_file import read_config
from precis.pipelines.flags.flags import option_names
from precis.pipelines.terminal.progress_line import show_step

# Flags of `train` that chose what is now a command of its own.
_TASK_COMMANDS = {
    "extractive": "train-extractor",
    "keyphrases": "train-keyphrases",
    "abstractive": "train",
}
# The extra that brings a package, by the package's import name.
_EXTRAS = {
    "apache_beam": "beam",
    "pyarrow": "beam",
    "deltalake": "delta",
    "gcsfs": "gcs",
    "s3fs": "s3",
    "keras": "network",
    "safetensors": "network",
    "sklearn": "network",
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
    parser = command_parser(name, command.concerns, command.text)
    known, rest = parser.parse_known_args(arguments)
    values = vars(known)
    is_verbose, config = values.pop("verbose"), values.pop("config")
    _set_logging(is_verbose)
    try:
        if rest and not command.text.uses_beam:
            _refuse(name, command, rest)
        if config:
            from_file = read_config(
                config,
                command=name,
                concerns=command.concerns,
                uses_beam=command.text.uses_beam,
            )
            values = {**from_file.flags, **values}
            # The last value of a flag counts, so those of the command line win.
            rest = [*from_file.beam_args, *rest]
        if command.text.uses_beam:
            with show_step(f"{name}  loading Beam"):
                importlib.import_module("apache_beam")
        return command.run(values, rest)
    except PrecisError as error:
        if is_verbose and error.__cause__ is not None:
            logging.getLogger("precis").error("cause", exc_info=error.__cause__)
        _complain(f"precis {name}", error)
        return error.exit_code
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise
        _complain(
            f"precis {name}",
            f"{package} is not installed; pip install 'precis[{_EXTRAS[package]}]'",
        )
        return 2
    # A disk that is full or cannot be written is no defect, so there is no traceback.
    except OSError as error:
        if is_verbose:
            logging.getLogger("precis").error("cause", exc_info=error)
        _complain(f"precis {name}", error)
        return 1


def _complain(program: str, message: Any) -> None:
    print(f"{program}: {redact(str(message))}", file=sys.stderr)


def _refuse(name: str, command: Command, rest: Sequence[str]) -> None:
    """Refuses flags that the command does not have.

    Raises:
      UsageError: always.
    """
    if name == "train":
        _refuse_task(rest)
    flag = rest[0].partition("=")[0]
    if not flag.startswith("-"):
        raise UsageError(f"{flag!r} is no flag; a flag begins with --")
    way_out = f"`precis {name} --help all` shows those that there are"
    flags = [
        f"--{other}" for other in (*option_names(command.concerns), *GENERAL_FLAGS)
    ]
    raise UsageError(f"there is no flag {flag}; {suggestion(flag, flags) or way_out}")


def _refuse_task(rest: Sequence[str]) -> None:
    """Names the command that took the place of `--task`.

    Raises:
      UsageError: the flag is there.
    """
    for index, word in enumerate(rest):
        flag, _, value = word.partition("=")
        if flag == "--task":
            task = value or "".join(rest[index + 1 : index + 2])
            successors = (
                [_TASK_COMMANDS[task]]
                if task in _TASK_COMMANDS
                else (_TASK_COMMANDS.values())
            )
            known = ", ".join(f"`precis {successor}`" for successor in successors)
            raise UsageError(f"the flag --task is gone; take {known} without it")


def _set_logging(is_verbose: bool) -> None:
    """Quiets the libraries, in this process and in those it starts."""
    if is_verbose:
        logging.basicConfig(level=logging.INFO)
        for handler in logging.getLogger().handlers:
            handler.setFormatter(RedactingFormatter(logging.BASIC_FORMAT))
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    warnings.filterwarnings("ignore")
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    logging.basicConfig(level=logging.ERROR)
    # Beam logs the traceback of what a worker raises; the command says it in one line.
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
