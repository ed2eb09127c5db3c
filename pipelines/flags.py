"""Flags: frozen dataclasses, turned into command-line flags and keyword arguments.

A job names the dataclasses it takes, one for each concern. Field names are unique
across them, so `precis summarize --beam_width 4` and `summarize(beam_width=4)` mean the
same field. Defaults stand in the dataclasses only.
"""

import argparse
import dataclasses
import difflib
import os
import types
import typing
from collections.abc import Sequence
from typing import Any

from precis.model.errors import UsageError


def add_flags(parser: argparse.ArgumentParser, concerns: Sequence[type]) -> None:
    """Adds a flag for every field of the given dataclasses.

    Of a field that two of them have, as alternatives may, the first is added.
    """
    names: set[str] = set()
    for concern in concerns:
        title = (concern.__doc__ or concern.__name__).splitlines()[0].rstrip(".")
        group = parser.add_argument_group(title)
        hints = typing.get_type_hints(concern)
        for field in dataclasses.fields(concern):
            if field.name not in names:
                _add_flag(group, field, hints[field.name])
                names.add(field.name)


def _add_flag(group: Any, field: dataclasses.Field, hint: Any) -> None:
    is_required = field.default is dataclasses.MISSING
    text = field.metadata.get("help", "")
    if not is_required and field.default not in ("", None):
        text += f" (default: {field.default})"
    text = text.replace("%", "%%")
    kind = _value_type(hint)
    if "argument" in field.metadata:
        metavar = field.metadata["argument"]
        group.add_argument(field.name, type=kind, metavar=metavar, help=text)
        return
    settings: dict[str, Any] = {"help": text, "default": argparse.SUPPRESS}
    if kind is bool:
        settings["action"] = argparse.BooleanOptionalAction
    else:
        settings["type"] = kind
        settings["required"] = is_required
        if "choices" in field.metadata:
            settings["choices"] = field.metadata["choices"]
        else:
            settings["metavar"] = kind.__name__.upper()
    group.add_argument(f"--{field.name}", **settings)


def _value_type(hint: Any) -> type:
    """The type a flag is parsed with: `int | None` is parsed as an int."""
    if not isinstance(hint, types.UnionType):
        return hint
    kinds = typing.get_args(hint)
    return next(kind for kind in kinds if kind is not types.NoneType)


def read_flags(concerns: Sequence[type], values: dict[str, Any]) -> list[Any]:
    """Builds an instance of each dataclass from named values.

    Raises:
      UsageError: a name that no dataclass has, or a value that a dataclass refuses.
    """
    concern_of = {
        field.name: concern
        for concern in concerns
        for field in dataclasses.fields(concern)
    }
    for name in values:
        if name not in concern_of:
            close = difflib.get_close_matches(name, concern_of, n=1)
            suggestion = f"; did you mean {close[0]!r}?" if close else ""
            raise UsageError(f"unknown option {name!r}{suggestion}")
    return [
        _build(
            concern,
            {
                name: value
                for name, value in values.items()
                if concern_of[name] is concern
            },
        )
        for concern in concerns
    ]


def _build(concern: type, values: dict[str, Any]) -> Any:
    """An instance of a dataclass.

    Raises:
      UsageError: a field without a default has no value, or a value is refused.
    """
    for field in dataclasses.fields(concern):
        if field.default is dataclasses.MISSING and field.name not in values:
            raise UsageError(f"--{field.name} is needed: {field.metadata['help']}")
    hints = typing.get_type_hints(concern)
    return concern(
        **{name: _checked(name, value, hints[name]) for name, value in values.items()}
    )


def _checked(name: str, value: Any, hint: Any) -> Any:
    """The value as the command line would give it.

    A `pathlib` path becomes a string, and an integer may stand for a float.

    Raises:
      UsageError: a value of another type.
    """
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    kind = _value_type(hint)
    if value is None and isinstance(hint, types.UnionType):
        return value
    is_bool = isinstance(value, bool)
    is_number = kind is float and isinstance(value, int)
    if is_bool != (kind is bool) or not (isinstance(value, kind) or is_number):
        raise UsageError(f"{name} takes a value of type {kind.__name__}, not {value!r}")
    return value


def option_names(concerns: Sequence[type]) -> list[str]:
    """The names of all flags of the given dataclasses."""
    return [field.name for concern in concerns for field in dataclasses.fields(concern)]
