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
# How a value of each type is written in a file.
_WRITTEN = {
    str: "a text, in quotes",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}


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
    checked = check_values(concerns, values)
    return [_build(concern, checked) for concern in concerns]


def check_values(concerns: Sequence[type], values: Mapping[str, Any]) -> dict[str, Any]:
    """Named values as the command line would give them.

    Raises:
      UsageError: a name that no dataclass has, or a value of another type.
    """
    fields = {
        field.name: (flag_info(field), hints[field.name])
        for concern in concerns
        for hints in [typing.get_type_hints(concern)]
        for field in dataclasses.fields(concern)
    }
    checked = {}
    for name, value in values.items():
        if name not in fields:
            question = suggestion(name, fields)
            way_out = f"; {question}" if question else ""
            raise UsageError(f"unknown option {name!r}{way_out}")
        info, hint = fields[name]
        checked[name] = _checked(name, value, hint, info)
    return checked


def _build(concern: type, values: Mapping[str, Any]) -> Any:
    """An instance of a dataclass.

    Raises:
      UsageError: a field without a default has no value, or a value is refused.
    """
    arguments = {}
    for field in dataclasses.fields(concern):
        info = flag_info(field)
        if field.name in values:
            arguments[field.name] = values[field.name]
        elif field.default is dataclasses.MISSING:
            name = f"--{flag_name(field.name)}"
            if info.is_positional:
                name = info.metavar
            raise UsageError(f"{name} is needed: {info.help}")
    return concern(**arguments)


def _checked(name: str, value: Any, hint: Any, info: FlagInfo) -> Any:
    """The value as the command line would give it.

    A `pathlib` path becomes a string, a list becomes a text with commas where the
    flag takes one, and an integer may stand for a float.

    Raises:
      UsageError: a value of another type.
    """
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    is_list = info.takes_list and isinstance(value, list | tuple)
    if is_list and all(_is_word(part) for part in value):
        value = ",".join(str(part) for part in value)
    if isinstance(value, str):
        refuse_credentials(value, what=f"--{flag_name(name)} ")
    kind = value_type(hint)
    if value is None and isinstance(hint, types.UnionType):
        return value
    is_bool = isinstance(value, bool)
    is_number = kind is float and isinstance(value, int)
    if is_bool != (kind is bool) or not (isinstance(value, kind) or is_number):
        way_out = _WRITTEN[kind] + (", or a list of such" if info.takes_list else "")
        raise UsageError(
            f"{name} takes a value of type {kind.__name__}, not {value!r:.100}; write "
            f"{way_out}"
        )
    return value


def _is_word(part: Any) -> bool:
    """Whether a part of a list is as the command line writes it."""
    is_word = isinstance(part, str | int | float | os.PathLike)
    return is_word and not isinstance(part, bool)


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
