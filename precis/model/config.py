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
_LATER = "later"
# A refusal names this many settings that differ.
_MOST_DIFFERENCES = 4


# What a setting affects: the rows of documents, those that a network writes by a
# search, the rows of groups alone, or nothing but where, when and how fast a result is
# made.
ROWS, SEARCH, GROUPS, NOTHING = "rows", "search", "groups", "nothing"
# What a setting names, where it is a path: a bundle, whose content counts and not where
# it lies; what workers read or write; or a file of the machine of the command.
BUNDLE, INPUT, OUTPUT, LOCAL = "bundle", "input", "output", "local"


class Writer(enum.StrEnum):
    """What writes abstractive summaries, as messages name it."""

    NETWORK = "a network"
    CTRANSLATE2 = "CTranslate2"
    LANGUAGE_MODEL = "a language model"
    SUMMARIZER = "a summarizer"
    ENDPOINT = "an endpoint"


NETWORKS = tuple(writer for writer in Writer if writer != Writer.ENDPOINT)


class FlagInfo(NamedTuple):
    """All that is known of a field beside its type and default; the value of
    `metadata["flag"]`.

    The texts of `precis.model` name a flag as a keyword of Python: `layout=bart`. The
    command line writes it as a flag (`with_dashes`).

    Attributes:
      help: the help text.
      choices: the allowed values; empty allows all.
      metavar: what the help calls the value, such as TOKENS; of a place DIR or FILE.
      default_text: what the default means, where its value does not say it, such as
          "the records' limit" for 0.
      is_common: whether the short help shows the flag too.
      takes_list: the value is a list with commas; functions and configuration files
          take it as a list too.
      is_positional: it is an argument without a flag.
      is_flag: whether the command line has it; the Python functions take every field.
      affects: ROWS, SEARCH, GROUPS or NOTHING.
      writers: those that the setting concerns; empty where it counts whoever writes,
          and without an abstractive summary too.
      place: BUNDLE, INPUT, OUTPUT or LOCAL where the value is a path; else "".
      least: the smallest value; None allows all.
      zero: what 0 does, as in "sets no limit".
      needs: another field, without which this one has no effect.
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
    writers: Sequence[Writer] = ()
    place: str = ""
    least: int | None = None
    zero: str = ""
    needs: str = ""

    def concerns(self, writer: Writer | None) -> bool:
        """Whether it changes what this writer does; None writes nothing."""
        writers = self.writers or (NETWORKS if self.affects == SEARCH else ())
        return not writers or writer in writers


class Options:
    """A dataclass of settings, whose values are checked when it is made."""

    def __post_init__(self) -> None:
        """Refuses values that a field does not allow.

        Raises:
          UsageError: naming the field and what it allows.
        """
        check_fields(self)


def flag_info(field: dataclasses.Field) -> FlagInfo:
    """What is known of a field."""
    info: FlagInfo = field.metadata["flag"]
    return info


def installed_version() -> str:
    """The version of precis."""
    return importlib.metadata.version(DISTRIBUTION)


def install_command(extra: str = "") -> str:
    """What installs precis, or one of its extras."""
    wanted = f"'{DISTRIBUTION}[{extra}]'" if extra else DISTRIBUTION
    return f"pip install {wanted}"


def flag(default: Any, text: str, **info: Any) -> Any:
    """A dataclass field that is a command-line flag too.

    Args:
      default: the value without the flag.
      text: the help text.
      info: the other fields of `FlagInfo`.
    """
    return dataclasses.field(default=default, metadata=_metadata(text, info))


def setting(default: Any, text: str, **info: Any) -> Any:
    """A dataclass field that is no flag: a keyword of the Python functions, and a line
    of a configuration file.

    Args:
      default: the value where nobody says otherwise.
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
    """A dataclass field that is not stored where it has its default. The model_id of a
    network, which is in every row, so does not change when a field is added.
    """
    return dataclasses.field(default=default, metadata={_LATER: True})


def stored_fields(config: Any) -> dict[str, Any]:
    """The fields of a configuration as a bundle and the settings of a training hold
    them.
    """
    stored = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if _LATER not in field.metadata or value != field.default:
            is_nested = dataclasses.is_dataclass(value)
            stored[field.name] = stored_fields(value) if is_nested else value
    return stored


def flag_name(field: str) -> str:
    """The name of a field's flag: `for` for the field `for_`.

    Python keeps some words for itself, and no field can have them.
    """
    return field.removesuffix("_")


def written(config: Any, name: str) -> str:
    """A field as a message names it: a flag as `FlagInfo` says, or its name."""
    (field,) = (field for field in dataclasses.fields(config) if field.name == name)
    info = field.metadata.get("flag")
    return f"`{name}=`" if info and info.is_flag else name


def comma_list(text: str) -> tuple[str, ...]:
    """The names in a flag that lists some with commas between them, in order."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def suggestion(name: str, names: Iterable[str]) -> str:
    """The known name that is closest to a mistyped one, as "did you mean ...?".

    Returns:
      The question, or an empty text where no name is close.
    """
    known = {other.lstrip("-"): other for other in names}
    close = difflib.get_close_matches(name.lstrip("-"), known, n=1, cutoff=0.7)
    return f"did you mean {known[close[0]]}?" if close else ""


def check_fields(config: Any) -> None:
    """Refuses a value that is none of the choices of its field, of which the default is
    always one, or is too small.

    Raises:
      UsageError: naming the field and what it allows.
    """
    for field in dataclasses.fields(config):
        info = field.metadata.get("flag", FlagInfo(""))
        value = getattr(config, field.name)
        if info.choices and value not in (*info.choices, field.default):
            question = suggestion(str(value), info.choices)
            raise UsageError(
                f"{written(config, field.name)} is one of {', '.join(info.choices)}, "
                f"not {value!r}" + (f"; {question}" if question else "")
            )
        if info.least is not None:
            way_out = f"0 {info.zero}" if info.zero else ""
            check_at_least(config, info.least, field.name, way_out=way_out)


def check_at_least(config: Any, least: int, *names: str, way_out: str = "") -> None:
    """Refuses a configuration in which one of the named numbers is too small.

    Args:
      config: the dataclass.
      least: 0 or more.
      names: of fields.
      way_out: what the message says at its end.

    Raises:
      UsageError: naming the number and its value.
    """
    rule = f"must be at least {least}, not" if least else "must not be negative, but is"
    for name in names:
        if (value := getattr(config, name)) < least:
            end = f"; {way_out}" if way_out else ""
            raise UsageError(f"{written(config, name)} {rule} {value}{end}")


def check_seed(seed: int) -> None:
    """Refuses a seed that NumPy and Keras do not take.

    Raises:
      UsageError: naming it.
    """
    if not 0 <= seed < 1 << 32:
        raise UsageError(f"`seed=` lies between 0 and {(1 << 32) - 1}, not {seed}")


def describe_differences(
    earlier: Mapping[str, Any],
    present: Mapping[str, Any],
    *,
    labels: Mapping[str, str] = {},
    fields: Mapping[str, dataclasses.Field] = {},
) -> str:
    """Names the settings in which a job differs from an earlier one.

        beam_width is 4 there and 2 here; the files of the corpus differ
        `beam_width=4` there and not here

    Args:
      earlier: the settings of the earlier job by name; it may hold further names.
      present: the settings of this job by name.
      labels: for settings whose values are checksums, what they stand for.
      fields: of settings; those are written as they were given, and a default was not.
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
                differences.append(f"{of_earlier} there and {here} here")
            elif of_earlier:
                differences.append(f"{of_earlier} there and not here")
            else:
                differences.append(f"{of_present} here and not there")
        else:
            differences.append(f"{name} is {there!r} there and {here!r} here")
    if len(differences) > _MOST_DIFFERENCES:
        more = len(differences) - _MOST_DIFFERENCES
        differences = [*differences[:_MOST_DIFFERENCES], f"{more} more settings differ"]
    return "; ".join(differences)


def as_given(field: dataclasses.Field, value: Any) -> str:
    """A setting as it was given: a flag as `FlagInfo` says; "" for its default."""
    if value == field.default:
        return ""
    text = f"{field.name}={value}"
    return f"`{text}`" if flag_info(field).is_flag and "`" not in text else text


def _plain(value: Any) -> str:
    """The value as JSON, in which a tuple equals a list."""
    return json.dumps(value, sort_keys=True)
