"""Command-line flags as dataclass fields, and checks of configurations."""

import dataclasses
import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from precis.model.errors import UsageError

PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16")
# The precision that searches fastest on a machine, one of those above.
AUTO = "auto"
# A refusal names this many settings that differ.
_MOST_DIFFERENCES = 4
# Flags that there were, and what does their work now.
REMOVED_FLAGS = {
    "redact": "it was removed; replace personal data in the texts before precis reads "
    "them",
    "estimate": "it was removed; a run with --limit 1000 shows how fast the job is",
    "price_per_hour": "it was removed with --estimate; leave it out",
}


class FlagInfo(NamedTuple):
    """What the command line says of a field; the value of `metadata["flag"]`.

    Attributes:
      help: the help text.
      choices: the allowed values; empty allows all.
      metavar: what the help calls the value, such as DIR or TOKENS.
      default_text: what the default means, where its value does not say it, such as
          "the records' limit" for 0.
      word_for_zero: the word that is written for a default of 0, as in `--limit all`; 0
          itself is refused, as it reads like none.
      is_common: whether `--help` shows the flag; `--help all` shows every flag.
      takes_list: the value is a list; functions and configuration files take it as a
          list too.
      is_positional: it is an argument without a flag.
      takes_rest: it takes all words from its own on, flags included, as a list.
      beside: where the flag is empty, the path is that of another field with a suffix,
          as in ("run", "-report.html").
      is_written: the path, beside that of `output`, is written and not read.
    """

    help: str
    choices: Sequence[str] = ()
    metavar: str = ""
    default_text: str = ""
    word_for_zero: str = ""
    is_common: bool = False
    takes_list: bool = False
    is_positional: bool = False
    takes_rest: bool = False
    beside: tuple[str, str] | None = None
    is_written: bool = False


def flag(default: Any, text: str, **info: Any) -> Any:
    """A dataclass field that is a command-line flag too.

    Args:
      default: the value without the flag.
      text: the help text.
      info: the other fields of `FlagInfo`.
    """
    metadata = {"flag": FlagInfo(text, **info)}
    return dataclasses.field(default=default, metadata=metadata)


def required(text: str, **info: Any) -> Any:
    """A flag without a default.

    Args:
      text: the help text.
      info: the other fields of `FlagInfo`.
    """
    return dataclasses.field(metadata={"flag": FlagInfo(text, **info)})


def flag_name(field: str) -> str:
    """The name of a field's flag: `for` for the field `for_`.

    Python keeps some words for itself, and no field can have them.
    """
    return field.removesuffix("_")


def suggestion(name: str, names: Iterable[str]) -> str:
    """The known name that is closest to a mistyped one, as "did you mean ...?".

    Returns:
      The question, what to do instead of a flag that was removed, or an empty text
      where no name is close.
    """
    if name.lstrip("-") in REMOVED_FLAGS:
        return REMOVED_FLAGS[name.lstrip("-")]
    close = difflib.get_close_matches(name, list(names), n=1)
    return f"did you mean {close[0]}?" if close else ""


def check_choices(config: Any) -> None:
    """Refuses a configuration in which a flag has none of its choices.

    The default is always allowed.

    Raises:
      UsageError: naming the flag, its choices and the closest one.
    """
    for field in dataclasses.fields(config):
        choices = field.metadata["flag"].choices if "flag" in field.metadata else ()
        value = getattr(config, field.name)
        if choices and value not in (*choices, field.default):
            question = suggestion(str(value), choices)
            raise UsageError(
                f"--{flag_name(field.name)} is one of {', '.join(choices)}, not "
                f"{value!r}" + (f"; {question}" if question else "")
            )


def check_at_least_one(config: Any, *names: str) -> None:
    """Refuses a configuration in which one of the named numbers is less than one.

    Raises:
      UsageError: naming the number and its value.
    """
    for name in names:
        if getattr(config, name) < 1:
            raise UsageError(f"{name} must be at least 1, not {getattr(config, name)}")


def describe_differences(
    earlier: Mapping[str, Any],
    present: Mapping[str, Any],
    *,
    labels: Mapping[str, str] | None = None,
) -> str:
    """Names the settings in which a job differs from an earlier one.

        beam_width is 4 there and 2 here; the files of the corpus differ

    Args:
      earlier: the settings of the earlier job by name; it may hold further names.
      present: the settings of this job by name.
      labels: for settings whose values are checksums, what they stand for.
    """
    labels = labels or {}
    differences = []
    for name, value in present.items():
        other = earlier.get(name)
        if _plain(other) == _plain(value):
            continue
        if name in labels and None not in (other, value):
            differences.append(f"{labels[name]} differ")
        elif name in labels:
            place = "here" if other is None else "there"
            differences.append(f"{labels[name]} are {place} alone")
        else:
            differences.append(f"{name} is {other!r} there and {value!r} here")
    if len(differences) > _MOST_DIFFERENCES:
        more = len(differences) - _MOST_DIFFERENCES
        differences = [*differences[:_MOST_DIFFERENCES], f"{more} more settings differ"]
    return "; ".join(differences)


def _plain(value: Any) -> str:
    """The value as JSON, in which a tuple equals a list."""
    return json.dumps(value, sort_keys=True)
