"""The functions of `import precis`: the functions that commands call, with keywords in
their signatures and docstrings.
"""

import contextlib
import dataclasses
import functools
import inspect
import logging
import os
import textwrap
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from precis.pipelines.command_line.commands import COMMANDS, load_function
from precis.pipelines.run.options import flag_info
from precis.pipelines.summarize.options import (
    NOT_FOR_A_TEXT,
    SUMMARY_OPTIONS,
    OneDocumentOptions,
)

# The functions that summarize without a corpus, and the summary options that they do
# not have.
_WITHOUT_CORPUS = {"summarize_text": NOT_FOR_A_TEXT, "summarize_frame": ("output",)}
_WIDTH = 84


@functools.cache
def job_function(name: str) -> Callable[..., Any]:
    """A function of precis by its name.

    An argument without a flag, as on the command line, may be positional.
    """
    with _silent_imports():
        function = load_function(name)
    signature = _signature(name, function)
    parameters = signature.parameters.values()
    first = [each.name for each in parameters if each.kind < each.KEYWORD_ONLY]

    @functools.wraps(function)
    def called(*values: Any, **flags: Any) -> Any:
        if len(values) > len(first):
            raise TypeError(
                f"{name}() takes {len(first)} positional arguments but {len(values)} "
                "were given"
            )
        return function(**dict(zip(first, values, strict=False)), **flags)

    # Pickle looks the function up there.
    called.__module__ = "precis"
    called.__doc__ = _with_keywords(inspect.getdoc(function) or "", name)
    vars(called)["__signature__"] = signature
    return called


@contextlib.contextmanager
def _silent_imports() -> Iterator[None]:
    """Sends log records of libraries in the block only to the caller's handlers.

    Beam logs a warning on import, for which Python would create a handler.
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


def keywords(name: str) -> dict[str, tuple[dataclasses.Field, Any]]:
    """The option fields that a function takes as keywords, with their types."""
    refused = _WITHOUT_CORPUS.get(name, ())
    groups = SUMMARY_OPTIONS if refused else COMMANDS[_command_of(name)].option_groups
    return {
        field.name: (field, typing.get_type_hints(group)[field.name])
        for group in groups
        if group is not OneDocumentOptions
        for field in dataclasses.fields(group)
        if field.name not in refused
    }


def _signature(name: str, function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function, with its keywords instead of `**flags`."""
    own = inspect.signature(function)
    parameters = {
        each.name: each
        for each in own.parameters.values()
        if each.kind is not each.VAR_KEYWORD
    }
    for field, kind in keywords(name).values():
        is_first = flag_info(field).is_positional
        parameter = inspect.Parameter(
            field.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD
            if is_first
            else inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty
            if field.default is dataclasses.MISSING
            else field.default,
            annotation=_annotation(field, kind),
        )
        parameters.setdefault(field.name, parameter)
    in_order = sorted(parameters.values(), key=lambda each: each.kind)
    return own.replace(parameters=in_order)


def _annotation(field: dataclasses.Field, kind: Any) -> Any:
    """The type of a keyword; for `corpus`, a text, a path or several of them."""
    info = flag_info(field)
    if info.choices:
        default = () if field.default is dataclasses.MISSING else (field.default,)
        return Literal[tuple(dict.fromkeys((*info.choices, *default)))]
    if info.place:
        kind = kind | os.PathLike[str]
    return kind | Sequence[kind] if info.takes_list else kind


def _with_keywords(docstring: str, name: str) -> str:
    """A docstring with the common keywords and their help instead of `**flags`."""
    before, _, after = docstring.partition("  **flags:")
    if not after:
        return docstring
    entries = [
        f"{field.name}: {flag_info(field).help}."
        for field, _ in keywords(name).values()
        if flag_info(field).is_common
    ]
    if len(entries) < len(keywords(name)):
        entries.append(f"others: see `precis {_command_of(name)} --help all`.")
    wrap = textwrap.TextWrapper(
        _WIDTH, initial_indent="  ", subsequent_indent="      "
    ).wrap
    lines = [line for entry in entries for line in wrap(entry)]
    rest = after.split("\n")[1:]
    while rest and rest[0].startswith("      "):
        del rest[0]
    return "\n".join([before.rstrip(), *lines, *rest])
