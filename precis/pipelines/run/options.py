"""Options that several jobs share, and options that are read by name.

A job lists dataclasses of options, one for each concern. Field names are unique across
them, so `precis summarize --beam_width 4` and `summarize(beam_width=4)` set the same
field. Only the dataclasses contain defaults.
"""

import contextlib
import dataclasses
import itertools
import os
import re
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from precis.model import files
from precis.model.config import (
    BUNDLE,
    INPUT,
    NOTHING,
    OUTPUT,
    Options,
    WriterKind,
    as_given,
    flag,
    flag_info,
    flag_name,
    required,
    suggestion,
)
from precis.model.credentials import refuse_credentials
from precis.model.errors import UsageError
from precis.pipelines.run.hub import hub_name, is_hub_name

OptionsT = TypeVar("OptionsT")
# How values of each type are written in a file.
_WRITTEN = {
    str: "a text, in quotes",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}


def with_dashes(text: str) -> str:
    """Rewrites a text of `precis.model` for the command line, with its flags.

    `seed=`    `layout=bart`    `pointer=False`
    --seed     --layout bart    --no-pointer
    """
    text = re.sub(r"`([a-z]\w*)=False`", r"--no-\1", text)
    text = re.sub(r"`([a-z]\w*)=True`", r"--\1", text)
    text = re.sub(r"`([a-z]\w*?)_?=([^`]+)`", r"--\1 \2", text)
    return re.sub(r"`([a-z]\w*?)_?=`", r"--\1", text)


def option_fields(option_groups: Iterable[type]) -> Iterator[dataclasses.Field]:
    """All fields of the given dataclasses."""
    return itertools.chain.from_iterable(map(dataclasses.fields, option_groups))


def flag_fields(option_groups: Iterable[type]) -> Iterator[dataclasses.Field]:
    """The fields of the given dataclasses that are flags."""
    return (each for each in option_fields(option_groups) if flag_info(each).is_flag)


def flag_names(option_groups: Iterable[type]) -> list[str]:
    """The names of the fields that are flags."""
    return [field.name for field in flag_fields(option_groups)]


def value_types(option_groups: Iterable[type]) -> dict[str, type]:
    """The type of the values of each field by name; int for `int | None`."""
    return {
        name: next(kind for kind in (*typing.get_args(hint), hint) if kind is not None)
        for group in option_groups
        for name, hint in typing.get_type_hints(group).items()
    }


def option_names(option_groups: Iterable[type]) -> list[str]:
    """The names of all fields of the given dataclasses."""
    return [field.name for field in option_fields(option_groups)]


def read_flags(option_groups: Sequence[type], values: Mapping[str, Any]) -> list[Any]:
    """Builds an instance of each dataclass from named values.

    Raises:
      UsageError: a name that no dataclass has, a value that a dataclass refuses, or a
          missing or empty value of a field without default.
    """
    checked = check_values(option_groups, values)
    for field in option_fields(option_groups):
        if field.default is dataclasses.MISSING and not checked.get(field.name):
            info = flag_info(field)
            flag = info.metavar if info.is_positional else f"--{flag_name(field.name)}"
            problem = "is empty" if field.name in checked else "is needed"
            raise UsageError(f"{flag} {problem}: {info.help}")
    return [
        group(
            **{name: checked[name] for name in option_names([group]) if name in checked}
        )
        for group in option_groups
    ]


def check_values(
    option_groups: Sequence[type], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Converts named values, from a command line, file or caller, to the types of their
    fields.

    A number may be given as text and a path as `pathlib` path. Where a flag takes a
    list, a list becomes text with commas.

    Raises:
      UsageError: a name that no dataclass has, or a value of the wrong type.
    """
    fields = {field.name: field for field in option_fields(option_groups)}
    types = value_types(option_groups)
    checked = {}
    for name, value in values.items():
        if name not in fields:
            question = suggestion(name, fields)
            way_out = f"; {question}" if question else ""
            raise UsageError(f"unknown option {name!r}{way_out}")
        takes_list = flag_info(fields[name]).takes_list
        if flag_info(fields[name]).place == OUTPUT and is_hub_name(value):
            raise UsageError(
                f"--{flag_name(name)} {value}: precis only reads from the hub; name "
                "another place, and upload the result with `hf upload`"
            )
        if value is not None or fields[name].default is not None:
            value = _checked(name, value, types[name], takes_list)
        checked[name] = value
    return checked


def _checked(name: str, value: Any, kind: type, takes_list: bool) -> Any:
    """Converts a value to the type of its field.

    Raises:
      UsageError: the value cannot be converted.
    """
    given = value
    if takes_list and isinstance(value, list | tuple) and all(map(_is_word, value)):
        value = ",".join(map(str, value))
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str):
        refuse_credentials(value, what=f"--{flag_name(name)} ")
        if kind in (int, float):
            with contextlib.suppress(ValueError):
                value = kind(value)
    if type(value) is not kind and not (kind is float and type(value) is int):
        way_out = _WRITTEN[kind] + (", or a list of them" if takes_list else "")
        raise UsageError(f"`{name}=` must be {way_out}, not {given!r:.100}")
    return value


def _is_word(part: Any) -> bool:
    """Whether a part of a list can be written on the command line."""
    is_word = isinstance(part, str | int | float | os.PathLike)
    return is_word and not isinstance(part, bool)


def recorded_flags(settings: Iterable[Any]) -> dict[str, Any]:
    """The value of every flag, defaults included, for a manifest.

    `precis COMMAND --config MANIFEST` reads them back. The location of the result is
    left out; the bundle of a hub model is recorded by name and commit.

    Args:
      settings: the dataclasses of a job, from `read_flags`.
    """
    return {
        field.name: hub_name(value) if flag_info(field).place == BUNDLE else value
        for field, value in _values(settings)
        if flag_info(field).place != OUTPUT
    }


def _values(settings: Iterable[Any]) -> list[tuple[dataclasses.Field, Any]]:
    return [
        (field, getattr(options, field.name))
        for options in settings
        for field in dataclasses.fields(options)
    ]


def result_settings(
    settings: Iterable[Any], writer: WriterKind | None = None
) -> dict[str, Any]:
    """The settings that change a result, by name.

    Paths of bundles are left out, because only the content of a bundle matters, and so
    are commits of the hub in paths of inputs.

    Args:
      settings: the dataclasses of a job.
      writer: the writer of its abstractive summaries.
    """
    values = _values(settings)
    given = {field.name for field, value in values if value}
    return {
        field.name: files.without_commits(value) if info.place == INPUT else value
        for field, value in values
        for info in [flag_info(field)]
        if info.affects != NOTHING and info.place != BUNDLE and info.concerns(writer)
        if not info.needs or info.needs in given
    }


def check_effects(settings: Iterable[Any], writer: WriterKind | None = None) -> None:
    """Refuses settings that have no effect in combination with the others.

    Args:
      settings, writer: as for `result_settings`.

    Raises:
      UsageError: the message names the setting.
    """
    values = _values(settings)
    given = {field.name for field, value in values if value}
    for field, value in values:
        info = flag_info(field)
        if value == field.default:
            continue
        if info.needs and info.needs not in given:
            place = f"without `{info.needs}=`"
        elif not info.concerns(writer):
            place = f"where {writer} writes" if writer else "without `bundle=`"
        else:
            continue
        raise UsageError(
            f"{as_given(field, value)} has no effect {place}; leave it out"
        )


# The flags of every command.
GENERAL_FLAGS = ("config", "verbose", "help")


def normal_path(path: str) -> str:
    """Normalizes a path for comparison: `./runs/` becomes `runs`."""
    if files.is_local(path):
        return os.path.normpath(path)
    return path.rstrip("/")


def finished_run() -> Any:
    """The positional argument of commands that read a run."""
    return required(
        "finished run, the --output of `precis summarize`",
        is_positional=True,
        is_common=True,
        place=INPUT,
    )


# The module that the fork server of worker processes imports.
TASK_IMPORTS = "precis.pipelines.engines.task_imports"
# A smaller corpus is done before further processes can start.
LEAST_BYTES = 8 << 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class WorkerOptions(Options):
    """Workers"""

    workers: int = flag(
        0,
        "processes of this machine that share the work; other Beam runners have flags "
        "of their own for that",
        metavar="N",
        default_text="one per usable core",
        is_common=True,
        affects=NOTHING,
        least=0,
        zero="means one per core",
    )


AUTO, LIVE, PLAIN, JSON, NONE = "auto", "live", "plain", "json", "none"
# Sets the value of --progress auto for commands, and progress for functions.
VARIABLE = "PRECIS_PROGRESS"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProgressOptions(Options):
    """Progress"""

    progress: str = flag(
        AUTO,
        "how progress is shown on stderr: live display, plain lines, JSON lines, or "
        "none; auto is live on a terminal and plain elsewhere",
        choices=(AUTO, LIVE, PLAIN, JSON, NONE),
        is_common=True,
    )
    quiet: bool = flag(
        False,
        "print only the result and errors: no line `next:`, no warnings",
        is_common=True,
    )

    def mode(self, *, is_terminal: bool, is_verbose: bool = False) -> str:
        """`live`, `plain`, `json` or `none`.

        Args:
          is_terminal: whether stderr is a terminal that can renew lines.
          is_verbose: whether library logs are shown, which would break up a live
              display.

        Raises:
          UsageError: the environment variable has an invalid value.
        """
        if self.progress != AUTO:
            return self.progress
        variable = os.environ.get(VARIABLE) or AUTO
        chosen = ProgressOptions(progress=variable).progress
        if chosen != AUTO:
            return chosen
        return LIVE if is_terminal and not is_verbose else PLAIN


def split_options(
    kind: type[OptionsT], values: Mapping[str, Any]
) -> tuple[OptionsT, dict[str, Any]]:
    """Builds a dataclass of options; also returns the values that it does not take."""
    others = dict(values)
    names = [name for name in option_names([kind]) if name in others]
    return kind(**{name: others.pop(name) for name in names}), others
