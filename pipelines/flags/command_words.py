"""The flags of a command line, together with those of its `--config`."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from precis.model.config import flag_name, suggestion
from precis.model.errors import UsageError
from precis.pipelines.flags.command_parser import (
    GENERAL_FLAGS,
    HelpText,
    command_parser,
)
from precis.pipelines.flags.config_file import GivenFlags, read_config
from precis.pipelines.flags.flags import flag_info, replace_zero_words

# Flags of `train` that chose what is now a command of its own.
_TASK_COMMANDS = {
    "extractive": "train-extractor",
    "keyphrases": "train-keyphrases",
    "abstractive": "train",
}


class ParsedWords(NamedTuple):
    """The words behind a command, divided.

    Attributes:
      flags: of the command, those that are given, by name.
      rest: the words that it does not know.
      config: the file of --config; "" without one.
      is_verbose: the flag --verbose.
    """

    flags: dict[str, Any]
    rest: list[str]
    config: str
    is_verbose: bool


def parse_words(
    name: str, concerns: Sequence[type], text: HelpText, words: Sequence[str]
) -> ParsedWords:
    """Divides the words behind a command; ends the process where it cannot.

    Args:
      name: the command.
      concerns: the dataclasses whose fields are its flags.
      text: its help.
      words: as the shell gives them.
    """
    parser = command_parser(name, concerns, text, takes_arguments=not text.uses_beam)
    known, rest = parser.parse_known_args(words)
    flags = vars(known)
    if text.uses_beam:
        arguments, rest = _take_arguments(concerns, words, rest)
        flags = {**flags, **arguments}
    is_verbose, config = flags.pop("verbose"), flags.pop("config")
    return ParsedWords(flags, rest, config or "", is_verbose)


def _take_arguments(
    concerns: Sequence[type], words: Sequence[str], rest: Sequence[str]
) -> tuple[dict[str, str], list[str]]:
    """The arguments without a flag, and the other words that the command has not.

    Behind a flag that the command does not know stands a value of that flag: in
    `--runner FlinkRunner article.txt` the last word is the argument.

    Args:
      concerns: of the command.
      words: all of the command line.
      rest: those of them that are no flags of the command, nor values of such.
    """
    names = [
        field.name for field in _fields(concerns) if flag_info(field).is_positional
    ]
    taken: dict[str, str] = {}
    others: list[str] = []
    for word in rest:
        before = words[words.index(word) - 1] if words[0] != word else ""
        is_value = before.startswith("--") and "=" not in before and before in rest
        is_flag = word.startswith("-") and word != "-"
        if is_value or is_flag or len(taken) == len(names):
            others.append(word)
        else:
            taken[names[len(taken)]] = word
    return taken, others


def _fields(concerns: Sequence[type]) -> Iterator[dataclasses.Field]:
    """The fields of all the given dataclasses."""
    for concern in concerns:
        yield from dataclasses.fields(concern)


def read_command_line(
    name: str, concerns: Sequence[type], text: HelpText, parsed: ParsedWords
) -> GivenFlags:
    """The flags of a command line over those of its `--config`.

    Args:
      name: the command.
      concerns: the dataclasses whose fields are its flags.
      text: its help.
      parsed: the words behind it.

    Raises:
      UsageError: a flag that the command does not have, a 0 that has a word, or a file
        that `read_config` refuses.
    """
    if parsed.rest and not text.uses_beam:
        _refuse(name, concerns, parsed.rest)
    flags = replace_zero_words(parsed.flags, concerns)
    if not parsed.config:
        return GivenFlags(flags, parsed.rest)
    from_file = read_config(
        parsed.config, command=name, concerns=concerns, uses_beam=text.uses_beam
    )
    # The last value of a flag counts, so those of the command line win.
    return GivenFlags(
        {**from_file.flags, **flags}, [*from_file.beam_args, *parsed.rest]
    )


def _refuse(name: str, concerns: Sequence[type], rest: Sequence[str]) -> None:
    """Refuses flags that the command does not have.

    Raises:
      UsageError: always.
    """
    if name == "train":
        _refuse_task(rest)
    flag = rest[0].partition("=")[0]
    if not flag.startswith("-"):
        raise UsageError(f"{flag!r} is no flag; a flag begins with --")
    way_out = f"`precis {name} --help all` shows those that there are"
    flags = [f"--{other}" for other in GENERAL_FLAGS]
    for field in _fields(concerns):
        info = flag_info(field)
        if not (info.is_positional or info.takes_rest):
            flags.append(f"--{flag_name(field.name)}")
        elif flag == f"--{flag_name(field.name)}":
            raise UsageError(
                f"there is no flag {flag}; write {info.metavar} without one, as in "
                f"`precis {name} {info.metavar}`"
            )
    raise UsageError(f"there is no flag {flag}; {suggestion(flag, flags) or way_out}")


def _refuse_task(rest: Sequence[str]) -> None:
    """Names the command that took the place of `--task`.

    Raises:
      UsageError: the flag is there.
    """
    for index, word in enumerate(rest):
        flag, _, value = word.partition("=")
        if flag == "--task":
            task = value or "".join(rest[index + 1 : index + 2])
            successors = (
                [_TASK_COMMANDS[task]]
                if task in _TASK_COMMANDS
                else (_TASK_COMMANDS.values())
            )
            known = ", ".join(f"`precis {successor}`" for successor in successors)
            raise UsageError(f"the flag --task is gone; take {known} without it")
