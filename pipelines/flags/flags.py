"""Flags: values by name become frozen dataclasses, from the command line, a file or the
keywords of a function.

A job names the dataclasses it takes, one for each concern. Field names are unique
across them, so `precis summarize --beam_width 4` and `summarize(beam_width=4)` mean the
same field. Defaults stand in the dataclasses only.
"""

import dataclasses
import os
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from precis.model.config import FlagInfo, flag_name, suggestion
from precis.model.credentials import refuse_credentials
from precis.model.errors import UsageError

# Where a result lies is no part of how it was made.
_NOT_RECORDED = ("output",)


def flag_info(field: dataclasses.Field) -> FlagInfo:
    """What the command line says of a field."""
    info: FlagInfo = field.metadata["flag"]
    return info


def value_type(hint: Any) -> type:
    """The type a flag is parsed with: `int | None` is parsed as an int."""
    if not isinstance(hint, types.UnionType):
        return hint
    kinds = typing.get_args(hint)
    return next(kind for kind in kinds if kind is not types.NoneType)


def value_types(concerns: Iterable[type]) -> dict[str, type]:
    """The type that each field of the given dataclasses is parsed with."""
    return {
        name: value_type(hint)
        for concern in concerns
        for name, hint in typing.get_type_hints(concern).items()
    }


def option_names(concerns: Iterable[type]) -> list[str]:
    """The names of all flags of the given dataclasses."""
    return [field.name for concern in concerns for field in dataclasses.fields(concern)]


def replace_zero_words(
    flags: Mapping[str, Any], concerns: Iterable[type]
) -> dict[str, Any]:
    """The flags as a user wrote them, with 0 for the words that stand for it.

    Raises:
      UsageError: a 0 where there is such a word.
    """
    values = dict(flags)
    for concern in concerns:
        for field in dataclasses.fields(concern):
            word, value = flag_info(field).word_for_zero, values.get(field.name)
            if not word or value is None:
                continue
            name = f"--{flag_name(field.name)}"
            if value == 0:
                raise UsageError(
                    f"{name} must be at least 1, not {value}; leave it out to take "
                    f"{word}, or write {name} {word} where a --config has another"
                )
            if value == word:
                values[field.name] = 0
    return values


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
            question = suggestion(name, concern_of)
            way_out = f"; {question}" if question else ""
            raise UsageError(f"unknown option {name!r}{way_out}")
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
    hints = typing.get_type_hints(concern)
    arguments = {}
    for field in dataclasses.fields(concern):
        info = flag_info(field)
        if field.name in values:
            hint = hints[field.name]
            arguments[field.name] = _checked(field.name, values[field.name], hint, info)
        elif field.default is dataclasses.MISSING:
            name = f"--{flag_name(field.name)}"
            if info.is_positional:
                name = info.metavar
            raise UsageError(f"{name} is needed: {info.help}")
    return concern(**arguments)


def _checked(name: str, value: Any, hint: Any, info: FlagInfo) -> Any:
    """The value as the command line would give it.

    A `pathlib` path becomes a string, a list becomes a text with separators where the
    flag takes one, and an integer may stand for a float.

    Raises:
      UsageError: a value of another type.
    """
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if info.takes_list and isinstance(value, list | tuple):
        value = info.separator.join(str(part) for part in value)
    if isinstance(value, str):
        refuse_credentials(value, what=f"--{flag_name(name)} ")
    kind = value_type(hint)
    if value is None and isinstance(hint, types.UnionType):
        return value
    is_bool = isinstance(value, bool)
    is_number = kind is float and isinstance(value, int)
    if is_bool != (kind is bool) or not (isinstance(value, kind) or is_number):
        raise UsageError(f"{name} takes a value of type {kind.__name__}, not {value!r}")
    return value


def recorded_flags(settings: Iterable[Any]) -> dict[str, Any]:
    """Every flag with its value, defaults included, as a manifest keeps them.

    `precis COMMAND --config MANIFEST` reads them back. Where the result lies is not
    among them.

    Args:
      settings: the dataclasses of a job, as `read_flags` returns them.
    """
    return {
        name: value
        for concern in settings
        for name, value in dataclasses.asdict(concern).items()
        if name not in _NOT_RECORDED
    }
