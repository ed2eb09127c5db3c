"""Command-line flags as dataclass fields, and checks of configurations."""

import dataclasses
import difflib
import enum
import importlib.metadata
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from precis.model.errors import UsageError

# The name of precis on package indexes.
DISTRIBUTION = "precis-corpus"
PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16")
# Targets that give a record for each sentence of a reference, not for each article.
SENTENCE_PAIRS = ("sentences", "cuts")
_LATER = "later"
# An error message lists at most this many settings that differ.
_MOST_DIFFERENCES = 4


# What a setting affects: ROWS, the rows of documents; SEARCH, rows that a network
# writes; GROUPS, only the rows of groups; NOTHING, no row, only where, when and how
# fast rows are made.
ROWS, SEARCH, GROUPS, NOTHING = "rows", "search", "groups", "nothing"
# What a path names: BUNDLE, a bundle, known by its content, not by its place; INPUT and
# OUTPUT, what workers read or write; LOCAL, a file on the machine of the command.
BUNDLE, INPUT, OUTPUT, LOCAL = "bundle", "input", "output", "local"


class WriterKind(enum.StrEnum):
    """The kinds of writers of abstractive summaries, as messages name them."""

    NETWORK = "a network"
    CTRANSLATE2 = "CTranslate2"
    LANGUAGE_MODEL = "a language model"
    SUMMARIZER = "a summarizer"
    ENDPOINT = "an endpoint"
    BATCH = "an endpoint with batches"


ENDPOINTS = (WriterKind.ENDPOINT, WriterKind.BATCH)
NETWORKS = tuple(writer for writer in WriterKind if writer not in ENDPOINTS)


class FlagInfo(NamedTuple):
    """The description of a field, stored as its `metadata["flag"]`.

    Messages in `precis.model` write a flag as a Python keyword, `layout=bart`; the
    command line turns it into a flag (`with_dashes`).

    Attributes:
      help: the help text.
      choices: the allowed values; empty allows all.
      metavar: the name of the value in the help, such as TOKENS; for a path DIR or
          FILE.
      default_text: the meaning of the default, if its value does not show it, such as
          "the records' limit" for 0.
      is_common: whether the short help shows the flag too.
      takes_list: whether the value is a comma-separated list; functions and
          configuration files may give a list instead.
      is_positional: whether it is a positional argument.
      is_flag: whether the command line has it; the Python functions take every field.
      affects: ROWS, SEARCH, GROUPS or NOTHING.
      writers: the writers that the setting concerns; empty if it applies with any
          writer, and also without an abstractive summary.
      place: BUNDLE, INPUT, OUTPUT or LOCAL if the value is a path; otherwise "".
      least: the smallest allowed value; None allows all.
      zero: what 0 does, as in "sets no limit".
      needs: the name of a field without which this one has no effect.
    """

    help: str
    choices: Sequence[str] = ()
    metavar: str = ""
    default_text: str = ""
    is_common: bool = False
    takes_list: bool = False
    is_positional: bool = False
    is_flag: bool = True
    affects: str = ROWS
    writers: Sequence[WriterKind] = ()
    place: str = ""
    least: int | None = None
    zero: str = ""
    needs: str = ""

    def concerns(self, writer: WriterKind | None) -> bool:
        """Whether the field changes what a writer does; None stands for no writer."""
        writers = self.writers or (NETWORKS if self.affects == SEARCH else ())
        return not writers or writer in writers


class Options:
    """A dataclass of settings, whose values are checked when it is made."""

    def __post_init__(self) -> None:
        """Checks the value of each field.

        Raises:
          UsageError: a value is not allowed.
        """
        check_options(self)


def flag_info(field: dataclasses.Field) -> FlagInfo:
    """The description of a field."""
    info: FlagInfo = field.metadata["flag"]
    return info


def installed_version() -> str:
    """The version of precis."""
    return importlib.metadata.version(DISTRIBUTION)


def install_command(extra: str = "") -> str:
    """The command that installs precis, or one of its extras."""
    wanted = f"'{DISTRIBUTION}[{extra}]'" if extra else DISTRIBUTION
    return f"pip install {wanted}"


def flag(default: Any, text: str, **info: Any) -> Any:
    """A dataclass field that is a command-line flag too.

    Args:
      default: the value if the flag is not given.
      text: the help text.
      info: the other fields of `FlagInfo`.
    """
    return dataclasses.field(default=default, metadata=_metadata(text, info))


def setting(default: Any, text: str, **info: Any) -> Any:
    """A dataclass field without a command-line flag; Python functions take it as a
    keyword, and configuration files may set it.

    Args:
      default: the value if it is not given.
      text: what it does.
      info: the other fields of `FlagInfo`.
    """
    return flag(default, text, is_flag=False, **info)


def required(text: str, **info: Any) -> Any:
    """A flag without a default.

    Args:
      text: the help text.
      info: the other fields of `FlagInfo`.
    """
    return dataclasses.field(metadata=_metadata(text, info))


def _metadata(text: str, info: Mapping[str, Any]) -> dict[str, FlagInfo]:
    place = info.get("place")
    usual = {None: "", LOCAL: "FILE"}.get(place, "DIR")
    return {"flag": FlagInfo(text, **{"metavar": usual, **info})}


def later(default: Any) -> Any:
    """A dataclass field that is stored only if it differs from its default, so that the
    model_id of existing networks stays the same when the field is added.
    """
    return dataclasses.field(default=default, metadata={_LATER: True})


def stored_fields(config: Any) -> dict[str, Any]:
    """The fields of a configuration as they are stored in a bundle and in the settings
    of a training.
    """
    stored = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if _LATER not in field.metadata or value != field.default:
            is_nested = dataclasses.is_dataclass(value)
            stored[field.name] = stored_fields(value) if is_nested else value
    return stored


def flag_name(field: str) -> str:
    """The name of a field's flag: `for` for the field `for_`, as `for` is a reserved
    word of Python.
    """
    return field.removesuffix("_")


def written(config: Any, name: str) -> str:
    """The name of a field in messages: `name=` if it is a flag, otherwise its name."""
    (field,) = (field for field in dataclasses.fields(config) if field.name == name)
    info = field.metadata.get("flag")
    return f"`{name}=`" if info and info.is_flag else name


def comma_list(text: str) -> tuple[str, ...]:
    """The names in a comma-separated list, in order."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def suggestion(name: str, names: Iterable[str]) -> str:
    """The known name that is closest to a mistyped one, as "did you mean ...?".

    Returns:
      The question, or "" if no name is close.
    """
    known = {other.lstrip("-"): other for other in names}
    close = difflib.get_close_matches(name.lstrip("-"), known, n=1, cutoff=0.7)
    return f"did you mean {known[close[0]]}?" if close else ""


def check_options(config: Any) -> None:
    """Checks that values are among the choices of their fields and not too small; the
    default is always allowed.

    Raises:
      UsageError: a value is not allowed.
    """
    for field in dataclasses.fields(config):
        info = field.metadata.get("flag", FlagInfo(""))
        value = getattr(config, field.name)
        if info.choices and value not in (*info.choices, field.default):
            question = suggestion(str(value), info.choices)
            raise UsageError(
                f"{written(config, field.name)} "
                "must be one of "
                f"{', '.join(info.choices)}, "
                f"not {value!r}" + (f"; {question}" if question else "")
            )
        if info.least is not None:
            way_out = f"0 {info.zero}" if info.zero else ""
            check_at_least(config, info.least, field.name, way_out=way_out)


def check_at_least(config: Any, least: int, *names: str, way_out: str = "") -> None:
    """Checks that named numbers of a configuration are not too small.

    Args:
      config: the dataclass.
      least: the smallest allowed value, 0 or more.
      names: the names of the fields.
      way_out: the end of the message.

    Raises:
      UsageError: a number is too small.
    """
    rule = f"must be at least {least}, not" if least else "must not be negative, but is"
    for name in names:
        if (value := getattr(config, name)) < least:
            end = f"; {way_out}" if way_out else ""
            raise UsageError(f"{written(config, name)} {rule} {value}{end}")


def check_seed(seed: int) -> None:
    """Checks that NumPy and Keras accept a seed.

    Raises:
      UsageError: it is too large or negative.
    """
    if not 0 <= seed < 1 << 32:
        raise UsageError(f"`seed=` must be from 0 to {(1 << 32) - 1}, not {seed}")


def describe_differences(
    earlier: Mapping[str, Any],
    present: Mapping[str, Any],
    *,
    labels: Mapping[str, str] = {},
    fields: Mapping[str, dataclasses.Field] = {},
) -> str:
    """Lists the settings in which a job differs from an earlier one.

        beam_width is 4 there, 2 here; the files of the corpus differ
        `beam_width=4` there and not here

    Args:
      earlier: the settings of the earlier job by name; names not in `present` are
        ignored.
      present: the settings of this job by name.
      labels: what a setting stands for, if its value is a checksum.
      fields: the fields of settings; these are written as `as_given` does.
    """
    differences = []
    for name, here in present.items():
        there = earlier.get(name, fields[name].default if name in fields else None)
        if _plain(there) == _plain(here):
            continue
        if name in labels:
            differences.append(f"{labels[name]} differ")
        elif name in fields:
            of_earlier = as_given(fields[name], there)
            of_present = as_given(fields[name], here)
            if of_earlier and of_present:
                differences.append(f"{of_earlier} there, {here} here")
            elif of_earlier:
                differences.append(f"{of_earlier} there, not given here")
            else:
                differences.append(f"{of_present} here, not given there")
        else:
            differences.append(f"{name} is {there!r} there, {here!r} here")
    if len(differences) > _MOST_DIFFERENCES:
        more = len(differences) - _MOST_DIFFERENCES
        differences = [*differences[:_MOST_DIFFERENCES], f"{more} more settings differ"]
    return "; ".join(differences)


def as_given(field: dataclasses.Field, value: Any) -> str:
    """A setting as the user gave it, such as `beam_width=4`; "" for its default."""
    if value == field.default:
        return ""
    text = f"{field.name}={value}"
    return f"`{text}`" if flag_info(field).is_flag and "`" not in text else text


def _plain(value: Any) -> str:
    """The value as JSON, so that a tuple equals a list."""
    return json.dumps(value, sort_keys=True)
