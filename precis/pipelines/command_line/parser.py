"""Parses the flags of a command, which dataclasses define, and `--config`.

`--help` shows common flags, `--help all` shows every flag. A configuration file
contains flags by name, in YAML or JSON:

    corpus: jsonl:news/*.jsonl.gz
    extractive: [lead, lexrank]
    sentences: 2
    runner: DataflowRunner         # a flag of Beam, for commands that run on Beam

The manifest of a run or bundle, and the dataset.json of records, contain the flags of
the command that wrote them, so they can be used as such files. Flags of the command
line have precedence over the file.
"""

import argparse
import dataclasses
import functools
import json
import shutil
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from precis.model import files
from precis.model.config import flag_name, suggestion
from precis.model.errors import UsageError
from precis.pipelines.run.options import (
    GENERAL_FLAGS,
    check_values,
    flag_fields,
    flag_info,
    option_names,
    value_types,
    with_dashes,
)

_BEAM_NOTE = (
    "Other flags go to Beam, such as --runner DataflowRunner or --num_workers 20."
)
# The flags that name the input of a command.
_INPUT_FLAGS = ("--text", "--corpus", "--input")
# The placeholder of a value, if the field does not name a unit.
_METAVARS = {int: "N", float: "X", str: "TEXT"}


class Command(NamedTuple):
    """A command.

    Attributes:
      summary: one sentence that says what the command does.
      option_groups: the dataclasses whose fields are its flags.
      show: prints the result of its function, given the result and the flags; may
          return an exit code.
      examples: example arguments.
      uses_beam: whether unknown flags are passed to Beam.
      uses_tensorflow: whether TensorFlow is imported first, which takes seconds.
    """

    summary: str
    option_groups: tuple[type, ...]
    show: Callable[[Any, dict[str, Any]], int | None]
    examples: Sequence[str]
    uses_beam: bool = False
    uses_tensorflow: bool = False


class CommandLine(NamedTuple):
    """The parsed words after a command's name.

    Attributes:
      flags: the given flags of the command, by name.
      beam_args: the flags for Beam, as words.
      is_verbose: the value of --verbose.
    """

    flags: dict[str, Any]
    beam_args: list[str]
    is_verbose: bool


def read_arguments(name: str, command: Command, words: Sequence[str]) -> CommandLine:
    """Parses the words after a command's name; on request prints the help and exits.

    Raises:
      UsageError: an unknown or repeated flag, a refused value, a word without a flag,
          or a refused configuration file.
    """
    groups = command.option_groups
    parser = command_parser(name, command)
    try:
        known, rest = parser.parse_known_args(words)
    except argparse.ArgumentError as error:
        raise UsageError(f"{error}; see `precis {name} --help`") from error
    values = vars(known)
    if "help" in values:
        shows_all = values["help"] == "all"
        command_parser(name, command, shows_all=shows_all).print_help()
        parser.exit()
    _check_unknown(name, command, rest)
    lists = {field.name for field in flag_fields(groups) if flag_info(field).takes_list}
    for flag, value in values.items():
        if isinstance(value, list) and flag not in lists:
            if len(value) > 1:
                raise UsageError(f"--{flag_name(flag)} is given twice; leave one out")
            values[flag] = value[0]
    is_verbose, config = values.pop("verbose", False), values.pop("config", "")
    flags = check_values(groups, values)
    if not config:
        return CommandLine(flags, rest, is_verbose)
    of_file, beam_args = read_config_file(config, name, command)
    # For repeated flags, Beam uses the last value.
    return CommandLine({**of_file, **flags}, [*beam_args, *rest], is_verbose)


def command_parser(
    name: str, command: Command, *, shows_all: bool = False
) -> argparse.ArgumentParser:
    """Makes the parser of a command, which reads every value as text.

    Only given flags have a value, and no flag is required, because a configuration file
    may contain it.

    Args:
      name: the name of the command.
      command: its definition.
      shows_all: whether the help shows all flags, not only the common ones.
    """
    parser = argparse.ArgumentParser(
        prog=f"precis {name}",
        usage=_usage(name, command),
        description=command.summary,
        epilog=_epilog(name, command, shows_all),
        formatter_class=functools.partial(
            argparse.RawDescriptionHelpFormatter, max_help_position=30
        ),
        # Abbreviations would match flags of Beam: --split for --splittable_something.
        allow_abbrev=False,
        add_help=False,
        argument_default=argparse.SUPPRESS,
        exit_on_error=False,
    )
    types = value_types(command.option_groups)
    for group in command.option_groups:
        title = (group.__doc__ or group.__name__).splitlines()[0].rstrip(".")
        shown = parser.add_argument_group(title)
        for field in flag_fields([group]):
            is_shown = shows_all or flag_info(field).is_common
            _add_flag(shown, field, types[field.name], is_shown)
    general = parser.add_argument_group("General")
    general.add_argument(
        "--config",
        action="append",
        metavar="FILE",
        help="YAML or JSON file that holds flags and their values, or the manifest of "
        "an earlier result; flags of the command line override it",
    )
    general.add_argument(
        "--verbose",
        action="store_true",
        help="show the logs of the libraries and the cause of an error",
    )
    text = "show the common flags, or with `all` every flag"
    general.add_argument("-h", "--help", nargs="?", const="", metavar="all", help=text)
    return parser


def _add_flag(group: Any, field: dataclasses.Field, kind: type, is_shown: bool) -> None:
    info = flag_info(field)
    text = _help_text(field) if is_shown else argparse.SUPPRESS
    if info.is_positional:
        group.add_argument(field.name, nargs="?", metavar=info.metavar, help=text)
        return
    settings: dict[str, Any] = {"action": argparse.BooleanOptionalAction}
    if kind is not bool:
        metavar = "|".join(info.choices) or info.metavar or _METAVARS[kind]
        settings = {"action": "append", "metavar": metavar}
    flag = f"--{flag_name(field.name)}"
    group.add_argument(flag, dest=field.name, help=text, **settings)


def _usage(name: str, command: Command) -> str:
    """The usage with the required flags; the others are listed below."""
    words = [f"precis {name}"]
    for field in flag_fields(command.option_groups):
        info = flag_info(field)
        if field.default is dataclasses.MISSING:
            flag = "" if info.is_positional else f"--{flag_name(field.name)} "
            words.append(flag + info.metavar)
        elif info.is_positional:
            words.append(f"[{info.metavar}]")
    return " ".join([*words, "[FLAGS]"])


def _epilog(name: str, command: Command, shows_all: bool) -> str:
    """The examples, a pointer to the other flags, and a note on Beam's flags."""
    width = shutil.get_terminal_size().columns - 2
    lines = ["examples:" if command.examples[1:] else "example:"]
    lines += [f"  precis {name} {words}".rstrip() for words in command.examples]
    fields = list(flag_fields(command.option_groups))
    if not shows_all and not all(flag_info(field).is_common for field in fields):
        lines += ["", f"`precis {name} --help all` shows all {len(fields)} flags."]
    if command.uses_beam:
        lines += ["", *textwrap.wrap(_BEAM_NOTE, width)]
    return "\n".join(lines)


def _help_text(field: dataclasses.Field) -> str:
    """The help of a flag, with its default."""
    default, info = field.default, flag_info(field)
    if isinstance(default, bool):
        shown = "on" if default else "off"
    elif default is dataclasses.MISSING or default is None:
        shown = ""
    else:
        shown = info.default_text or str(default)
    text = info.help + (f" (default: {shown})" if shown else "")
    return with_dashes(text).replace("%", "%%")


def _check_unknown(name: str, command: Command, words: Sequence[str]) -> None:
    """Refuses words that are not flags of the command; if it uses Beam, Beam refuses
    unknown flags.

    Raises:
      UsageError: the message names the word, and a flag that may be meant.
    """
    groups = command.option_groups
    named = [each for each in flag_fields(groups) if not flag_info(each).is_positional]
    names = [*GENERAL_FLAGS, *(field.name for field in named)]
    flags = [f"--{flag_name(each)}" for each in names]
    settings = {*option_names(groups)} - {field.name for field in flag_fields(groups)}
    for before, word in zip(["", *words], words, strict=False):
        flag = word.partition("=")[0]
        is_flag = flag.startswith("-") and flag != "-"
        if flag.removeprefix("--") in settings:
            raise UsageError(
                f"{flag} can only be set in a file; write `{flag.removeprefix('--')}: "
                "VALUE` into it and name it with --config"
            )
        if not command.uses_beam and is_flag:
            lists_all = f"`precis {name} --help all` lists the flags"
            way_out = suggestion(flag, flags) or lists_all
            raise UsageError(f"unknown flag {flag}; {way_out}")
        # No flag of Beam takes two values.
        is_value = before.startswith("--") and "=" not in before
        if not is_flag and not (command.uses_beam and is_value):
            inputs = [f"{each} {word}" for each in _INPUT_FLAGS if each in flags]
            way_out = f"did you mean {' or '.join(inputs)}?"
            if not inputs:
                way_out = f"see `precis {name} --help`"
            raise UsageError(f"unexpected argument {word!r}; {way_out}")


def read_config_file(
    path: str, name: str, command: Command
) -> tuple[dict[str, Any], list[str]]:
    """Reads the flags in a file; returns them, and Beam's flags as words.

    Raises:
      UsageError: the file is missing, is not a mapping, was written by another command,
          or has an unknown flag or a refused value.
    """
    content = _read_mapping(path)
    if isinstance(content.get("provenance"), Mapping):
        content = content["provenance"]
    if "command" in content and isinstance(content.get("flags"), Mapping):
        if content["command"] != name:
            raise UsageError(
                f"--config {path} holds flags of `precis {content['command']}`, not of "
                f"`precis {name}`; name another file"
            )
        content = content["flags"]
    fields = {flag_name(field): field for field in option_names(command.option_groups)}
    flags: dict[str, Any] = {}
    beam_args: list[str] = []
    for flag, value in content.items():
        # An empty value in YAML is None, and the flag keeps its default.
        if value is None:
            continue
        if flag in fields:
            flags[fields[flag]] = value
        elif command.uses_beam and flag not in GENERAL_FLAGS:
            beam_args += _beam_flag(flag, value)
        else:
            way_out = suggestion(str(flag), fields) or "remove it"
            raise UsageError(
                f"--config {path}: precis {name} has no flag {flag!r}; {way_out}"
            )
    try:
        return check_values(command.option_groups, flags), beam_args
    except UsageError as error:
        raise UsageError(f"--config {path}: {error}") from error


def _read_mapping(path: str) -> Mapping[str, Any]:
    """Reads the mapping in a file.

    Raises:
      UsageError: the file does not exist, or its content is not a mapping.
    """
    if not files.exists(path):
        raise UsageError(f"--config {path}: no such file; name a YAML or JSON file")
    try:
        # A manifest may list thousands of files, for which YAML would take minutes.
        is_json = path.endswith(".json")
        content = (json.loads if is_json else _load_yaml)(files.read_bytes(path))
        if not isinstance(content, Mapping):
            raise ValueError("it must hold lines such as `beam_width: 4`")
    # PyYAML raises these for invalid content, such as `!!int x`, or for deeply nested
    # lists.
    except (ValueError, LookupError, AttributeError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(
            f"--config {path} cannot be read as YAML or JSON: {reason}; correct the "
            "file"
        ) from error
    return content


def _load_yaml(content: bytes) -> Any:
    """Reads the content of a YAML file.

    Raises:
      ValueError: a name is repeated, or the content is not YAML.
    """
    import yaml

    try:
        node = yaml.compose(content, yaml.SafeLoader)
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        names = Counter(str(key.value) for key, _ in pairs)
        for name, count in names.most_common(1):
            if count > 1:
                raise ValueError(f"{name} is given twice; remove one")
        loaded = yaml.safe_load(content)
        if isinstance(loaded, dict) and None in loaded:  # YAML's `null`
            loaded["null"] = {key.value: text.value for key, text in pairs}["null"]
            del loaded[None]
        return loaded
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _beam_flag(name: str, value: Any) -> list[str]:
    """Writes a flag of Beam as words; a repeatable flag has a list."""
    if isinstance(value, list):
        return [part for item in value for part in _beam_flag(name, item)]
    if isinstance(value, bool):
        return [f"--{name}"] if value else []
    return [f"--{name}={value}"]
