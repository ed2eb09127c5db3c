"""The parser of a command's flags, made from dataclasses, and its help.

`--help` shows the flags that most people need, `--help all` shows every flag.
"""

import argparse
import dataclasses
import functools
import shutil
import textwrap
import typing
from collections.abc import Sequence
from typing import Any, NoReturn

from precis.model.config import FlagInfo, flag_name
from precis.pipelines.flags.flags import flag_info, value_type

_BEAM_NOTE = (
    "Flags that precis does not know go to Beam, as in --runner DataflowRunner or "
    "--direct_num_workers 2."
)
# The flags that every command has.
GENERAL_FLAGS = ("config", "verbose", "help")
# What a number is called where the field has no name for its unit.
_METAVARS = {int: "N", float: "X", str: "TEXT"}


class HelpText(typing.NamedTuple):
    """What the help of a command says around its flags.

    Attributes:
      summary: one sentence, what the command does.
      examples: command lines.
      uses_beam: whether flags that it does not know go to Beam.
    """

    summary: str
    examples: Sequence[str]
    uses_beam: bool


def command_parser(
    name: str,
    concerns: Sequence[type],
    text: HelpText,
    *,
    shows_all: bool = False,
) -> argparse.ArgumentParser:
    """The parser of a command.

    Only flags that are given have a value, and no flag is required, as a configuration
    file may hold it.

    Args:
      name: the command.
      concerns: the dataclasses whose fields are its flags, a group for each.
      text: the rest of the help.
      shows_all: whether the help shows all flags, and not only the common ones.
    """
    parser = _Parser(
        prog=f"precis {name}",
        usage=_usage(name, concerns),
        description=text.summary,
        epilog=_epilog(name, concerns, text, shows_all),
        formatter_class=functools.partial(_HelpFormatter, max_help_position=30),
        # Abbreviated flags would take Beam's: --split for --splittable_something.
        allow_abbrev=False,
        add_help=False,
    )
    for concern in concerns:
        _add_concern(parser, concern, shows_all)
    _add_general_flags(parser, name, concerns, text)
    return parser


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong; argparse would print the usage before it."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see `{self.prog} --help`\n")


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of the examples and puts one flag on a line."""

    def _format_action_invocation(self, action: argparse.Action) -> str:
        names = [name for name in action.option_strings if not name.startswith("--no-")]
        if isinstance(action, argparse.BooleanOptionalAction):
            return f"--[no-]{names[0].removeprefix('--')}"
        return super()._format_action_invocation(action)


class _Once(argparse.Action):
    """Refuses a second value, which would replace the first in silence."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        _set_once(self, parser, namespace, values)


class _Listed(argparse.Action):
    """Several values of a flag that takes a list."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        earlier = getattr(namespace, self.dest, None)
        value = values if earlier is None else f"{earlier},{values}"
        setattr(namespace, self.dest, value)


class _BooleanOnce(argparse.BooleanOptionalAction):
    """`_Once` for a flag without a value."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        is_given = not (option_string or "").startswith("--no-")
        _set_once(self, parser, namespace, is_given)


def _set_once(
    action: argparse.Action,
    parser: argparse.ArgumentParser,
    namespace: argparse.Namespace,
    value: Any,
) -> None:
    if hasattr(namespace, action.dest):
        name = action.option_strings[0]
        parser.error(f"{name} is there twice; leave one of them out")
    setattr(namespace, action.dest, value)


class _HelpAction(argparse.Action):
    """Prints the help: the common flags, or with `all` every flag."""

    def __init__(self, *, show: typing.Callable[[bool], str], **settings: Any) -> None:
        super().__init__(nargs="?", **settings)
        self._show = show

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        print(self._show(values == "all"), end="")
        parser.exit()


def _usage(name: str, concerns: Sequence[type]) -> str:
    """The required flags; the others stand below."""
    words = [f"precis {name}"]
    rest = []
    for concern in concerns:
        for field in dataclasses.fields(concern):
            info = flag_info(field)
            if info.takes_rest:
                rest.append(f"[{info.metavar} ...]")
            elif field.default is dataclasses.MISSING:
                flag = "" if info.is_positional else f"--{flag_name(field.name)} "
                words.append(flag + info.metavar)
    return " ".join([*words, "[FLAGS]", *rest])


def _epilog(
    name: str, concerns: Sequence[type], text: HelpText, shows_all: bool
) -> str:
    """The examples, where the other flags are, and what Beam takes."""
    width = shutil.get_terminal_size().columns - 2
    heading = "example:" if len(text.examples) == 1 else "examples:"
    lines = [heading, *(f"  {line}" for line in text.examples)]
    fields = [field for concern in concerns for field in dataclasses.fields(concern)]
    has_more = any(not flag_info(field).is_common for field in fields)
    notes = []
    if has_more and not shows_all:
        notes.append(f"`precis {name} --help all` shows all {len(fields)} flags.")
    if text.uses_beam:
        notes.append(_BEAM_NOTE)
    for note in notes:
        lines += ["", *textwrap.wrap(note, width)]
    return "\n".join(lines)


def _add_concern(
    parser: argparse.ArgumentParser, concern: type, shows_all: bool
) -> None:
    """Adds a group with a flag for every field; argparse leaves out empty groups."""
    title = (concern.__doc__ or concern.__name__).splitlines()[0].rstrip(".")
    group = parser.add_argument_group(title)
    hints = typing.get_type_hints(concern)
    for field in dataclasses.fields(concern):
        info = flag_info(field)
        is_shown = shows_all or info.is_common
        text = _help_text(field, info) if is_shown else argparse.SUPPRESS
        _add_flag(group, field.name, value_type(hints[field.name]), info, text)


def _add_flag(group: Any, name: str, kind: type, info: FlagInfo, text: str) -> None:
    settings: dict[str, Any] = {"help": text, "default": argparse.SUPPRESS}
    if info.takes_rest:
        settings |= {"nargs": argparse.REMAINDER, "metavar": info.metavar}
        group.add_argument(name, **settings)
        return
    if info.is_positional:
        metavar = info.metavar
        group.add_argument(name, nargs="?", type=kind, metavar=metavar, **settings)
        return
    if kind is bool:
        settings["action"] = _BooleanOnce
    else:
        settings["action"] = _Listed if info.takes_list else _Once
        settings["type"] = _or_word(info.word_for_zero, kind)
        if info.choices:
            settings["metavar"] = "|".join(info.choices)
        else:
            settings["metavar"] = info.metavar or _METAVARS[kind]
    group.add_argument(f"--{flag_name(name)}", dest=name, **settings)


def _or_word(word: str, kind: type) -> typing.Callable[[str], Any]:
    """The type of a value that may be a word too."""
    if not word:
        return kind

    def read(text: str) -> Any:
        return text if text == word else kind(text)

    read.__name__ = kind.__name__  # What a message calls it.
    return read


def _help_text(field: dataclasses.Field, info: FlagInfo) -> str:
    """The text of a flag with its default."""
    default = field.default
    if isinstance(default, bool):
        shown = "on" if default else "off"
    elif default is dataclasses.MISSING or default is None:
        shown = ""
    else:
        shown = info.default_text or str(default)
    text = info.help + (f" (default: {shown})" if shown else "")
    return text.replace("%", "%%")


def _add_general_flags(
    parser: argparse.ArgumentParser,
    name: str,
    concerns: Sequence[type],
    text: HelpText,
) -> None:
    group = parser.add_argument_group("General")
    group.add_argument(
        "--config",
        action=_Once,
        default=argparse.SUPPRESS,
        metavar="FILE",
        help="YAML or JSON file with flags by name, or the manifest of an earlier "
        "result, whose flags are taken over; flags beside it win",
    )
    group.add_argument(
        "--verbose",
        action="store_true",
        help="show the libraries' logs and the cause of an error",
    )
    group.add_argument(
        "-h",
        "--help",
        action=_HelpAction,
        metavar="all",
        dest=argparse.SUPPRESS,
        help="show these flags, or with `all` every flag",
        show=lambda shows_all: command_parser(
            name, concerns, text, shows_all=shows_all
        ).format_help(),
    )
