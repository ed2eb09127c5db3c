"""Flags: one frozen dataclass per concern, turned into command-line flags and keyword
arguments alike.

A job names the dataclasses it takes; field names are unique across them, so that
`precis summarize --beam_width 4` and `summarize(beam_width=4)` mean the same field.
Defaults stand in the dataclasses only.
"""

import argparse
import dataclasses
import difflib
import os
import types
import typing
from collections.abc import Sequence
from typing import Any

from precis.model.config import flag, required
from precis.model.errors import UsageError

__all__ = ["add_flags", "flag", "read_flags", "required"]


def add_flags(parser: argparse.ArgumentParser, concerns: Sequence[type]) -> None:
    """Adds a flag for every field of the given dataclasses; of one that two have, as
    alternatives may, the first.
    """
    known: set[str] = set()
    for concern in concerns:
        group = parser.add_argument_group(
            (concern.__doc__ or concern.__name__).splitlines()[0].rstrip(".")
        )
        hints = typing.get_type_hints(concern)
        for field in dataclasses.fields(concern):
            if field.name not in known:
                _add_flag(group, field, hints[field.name])
                known.add(field.name)


def _add_flag(group: Any, field: dataclasses.Field, hint: Any) -> None:
    is_required = field.default is dataclasses.MISSING
    settings: dict[str, Any] = {
        "help": field.metadata.get("help", ""),
        "required": is_required,
        "default": argparse.SUPPRESS,
    }
    if not is_required and field.default not in ("", None):
        settings["help"] += f" (default: {field.default})"
    settings["help"] = settings["help"].replace("%", "%%")
    kind = _value_type(hint)
    if kind is bool:
        settings["action"] = argparse.BooleanOptionalAction
        settings.pop("required")
    else:
        settings["type"] = kind
        settings["metavar"] = kind.__name__.upper()
        if "argument" in field.metadata:
            group.add_argument(
                field.name,
                type=kind,
                metavar=field.metadata["argument"],
                help=settings["help"],
            )
            return
        if "choices" in field.metadata:
            settings["choices"] = field.metadata["choices"]
            settings.pop("metavar")
    group.add_argument(f"--{field.name}", **settings)


def _value_type(hint: Any) -> type:
    """The type a flag is parsed with: `int | None` is parsed as an int."""
    if isinstance(hint, types.UnionType):
        return next(
            kind for kind in typing.get_args(hint) if kind is not types.NoneType
        )
    return hint


def read_flags(concerns: Sequence[type], values: dict[str, Any]) -> list[Any]:
    """Builds one instance of each dataclass from named values.

    Raises:
      UsageError: a name that no dataclass has, or a value that one refuses.
    """
    known = {
        field.name: concern
        for concern in concerns
        for field in dataclasses.fields(concern)
    }
    for name in values:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            raise UsageError(
                f"unknown option {name!r}"
                + (f"; did you mean {close[0]!r}?" if close else "")
            )
    built = []
    for concern in concerns:
        hints = typing.get_type_hints(concern)
        own = {
            name: _checked(name, value, hints[name])
            for name, value in values.items()
            if known[name] is concern
        }
        missing = [
            f.name
            for f in dataclasses.fields(concern)
            if f.default is dataclasses.MISSING and f.name not in own
        ]
        if missing:
            raise UsageError(
                f"--{missing[0]} is needed: {_help_of(concern, missing[0])}"
            )
        built.append(concern(**own))
    return built


def _checked(name: str, value: Any, hint: Any) -> Any:
    """The value as the command line would give it: a `pathlib` path is a string, a
    whole number may stand for any number.
    """
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    kind = _value_type(hint)
    is_absent = value is None and isinstance(hint, types.UnionType)
    is_number = kind is float and isinstance(value, int)
    if not (is_absent or is_number or isinstance(value, kind)) or (
        isinstance(value, bool) and kind is not bool
    ):
        raise UsageError(f"{name} takes a value of type {kind.__name__}, not {value!r}")
    return value


def _help_of(concern: type, name: str) -> str:
    return next(
        f.metadata.get("help", "")
        for f in dataclasses.fields(concern)
        if f.name == name
    )


def option_names(concerns: Sequence[type]) -> list[str]:
    """The names of all flags of the given dataclasses."""
    return [field.name for concern in concerns for field in dataclasses.fields(concern)]
