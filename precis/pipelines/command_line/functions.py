"""The functions of `import precis`, with their keywords in their docstrings."""

import contextlib
import dataclasses
import functools
import importlib
import inspect
import logging
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from precis.model.config import suggestion
from precis.model.errors import UsageError
from precis.pipelines.command_line.commands import COMMANDS
from precis.pipelines.run.options import flag_info
from precis.pipelines.summarize.options import (
    NOT_FOR_A_TEXT,
    SUMMARY_OPTIONS,
    OneDocumentOptions,
)

if TYPE_CHECKING:
    from precis.pipelines.doctor.doctor import Diagnosis

# The functions that summarize without a corpus: where they are, and the options of
# summaries that they do not take.
_WITHOUT_CORPUS: dict[str, tuple[str, Sequence[str]]] = {
    "summarize_text": ("summarize.texts.summarize_text", NOT_FOR_A_TEXT),
    "summarize_frame": ("summarize.texts.summarize_frame", ("output",)),
}
_WIDTH = 84


def import_function(path: str) -> Callable[..., Any]:
    """A function by its path below precis.pipelines, as in `report.report.report`."""
    module, _, name = path.rpartition(".")
    function: Callable[..., Any]
    function = getattr(importlib.import_module(f"precis.pipelines.{module}"), name)
    return function


@functools.cache
def job_function(name: str) -> Callable[..., Any]:
    """A function of precis by its name, with its keywords in its docstring."""
    path = COMMANDS[_command_of(name)].function
    path, _ = _WITHOUT_CORPUS.get(name, (path, ()))
    with _silent_imports():
        function = import_function(path)
    function.__doc__ = _with_keywords(inspect.getdoc(function) or "", name)
    return function


@contextlib.contextmanager
def _silent_imports() -> Iterator[None]:
    """What libraries log within the block goes to the caller's handlers alone.

    Beam logs a warning when it is imported, and Python would make a handler for it.
    """
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


def _command_of(function: str) -> str:
    if function in _WITHOUT_CORPUS:
        return "summarize"
    return function.removesuffix("_checkpoint").replace("_", "-")


def keywords(name: str) -> list[dataclasses.Field]:
    """The fields of options that a function takes as keywords."""
    groups = COMMANDS[_command_of(name)].option_groups
    _, refused = _WITHOUT_CORPUS.get(name, ("", ()))
    return [
        field
        for group in (SUMMARY_OPTIONS if refused else groups)
        if group is not OneDocumentOptions
        for field in dataclasses.fields(group)
        if field.name not in refused
    ]


def _with_keywords(docstring: str, name: str) -> str:
    """A docstring with the keywords in place of `**flags`: common ones with their help,
    the others by name.
    """
    before, _, after = docstring.partition("  **flags:")
    if not after:
        return docstring
    fields = keywords(name)
    common = [field for field in fields if flag_info(field).is_common]
    entries = [f"{field.name}: {flag_info(field).help}." for field in common]
    if others := [field.name for field in fields if field not in common]:
        entries.append(
            f"others, as `precis {_command_of(name)} --help all` describes them: "
            f"{', '.join(others)}."
        )
    wrap = textwrap.TextWrapper(
        _WIDTH, initial_indent="  ", subsequent_indent="      "
    ).wrap
    lines = [line for entry in entries for line in wrap(entry)]
    rest = after.split("\n")[1:]
    while rest and rest[0].startswith("      "):
        del rest[0]
    return "\n".join([before.rstrip(), *lines, *rest])


def doctor(
    *,
    command: str = "",
    flags: Mapping[str, Any] | None = None,
    beam_args: Sequence[str] = (),
) -> "list[Diagnosis]":
    """Checks the installation, or what a command needs, before anything is spent.

    Args:
      command: such as `summarize`; without one, the installation alone is checked.
      flags: of that command, by name.
      beam_args: flags for Beam itself.

    Returns:
      What was found, with what to do about it.

    Raises:
      UsageError: there is no such command, or it refuses its flags.
    """
    from precis.pipelines.doctor.doctor import examine

    known = [name for name in COMMANDS if name != "doctor"]
    if command and command not in known:
        way_out = suggestion(command, known) or "`precis --help` shows them"
        raise UsageError(f"there is no command {command!r} to check; {way_out}")
    groups = COMMANDS[command].option_groups if command else ()
    return list(examine(command, groups, flags or {}, beam_args))
