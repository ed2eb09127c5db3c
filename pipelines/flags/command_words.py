"""The flags of a command line, together with those of its `--config`."""

import dataclasses
import shlex
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from precis.model.config import flag_name, suggestion
from precis.model.errors import UsageError
from precis.pipelines.flags.command_parser import (
    GENERAL_FLAGS,
    HelpText,
    command_parser,
)
from precis.pipelines.flags.config_file import GivenFlags, read_config
from precis.pipelines.flags.flags import (
    flag_info,
    option_names,
    replace_zero_words,
)

# Flags of `train` that chose what is now a command of its own.
_TASK_COMMANDS = {
    "extractive": "train-extractor",
    "keyphrases": "train-keyphrases",
    "abstractive": "train",
}
# The flags that take what a command reads: what to write, and what it names.
_INPUTS = (
    ("text", "--text WORD", "one document"),
    ("corpus", "--corpus SCHEME:WHERE", "a corpus"),
    ("input", "--input WORD", "a run"),
)


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
    known, rest = command_parser(name, concerns, text).parse_known_args(words)
    flags = vars(known)
    is_verbose, config = flags.pop("verbose"), flags.pop("config", "")
    return ParsedWords(flags, rest, config, is_verbose)


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
      UsageError: a flag that the command does not have, a word without a flag, a 0 that
        has a word, or a file that `read_config` refuses.
    """
    if parsed.rest and not text.uses_beam:
        _refuse(name, concerns, parsed.rest)
    refuse_strays(parsed.rest, option_names(concerns))
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


def refuse_strays(words: Sequence[str], flags: Collection[str]) -> None:
    """Refuses a word that stands behind no flag; no flag of Beam takes two values.

    Args:
      words: flags that are not known, and their values.
      flags: names of those of the command.

    Raises:
      UsageError: naming the flags that take what the word may stand for.
    """
    values = (
        word
        for before, word in zip(["", *words], words, strict=False)
        if not before.startswith("--") or "=" in before
    )
    strays = [word for word in values if word == "-" or not word.startswith("-")]
    if not strays:
        return
    word = strays[0]
    ways = [f"{way} for {what}" for flag, way, what in _INPUTS if flag in flags]
    way_out = " or ".join(ways).replace("WORD", shlex.quote(word))
    raise UsageError(
        f"{word!r} stands behind no flag; name one before it"
        + (f", as in {way_out}" if ways else "")
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
