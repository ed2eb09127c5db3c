"""Flags from a file: `--config run.yaml`, or the manifest of an earlier result.

    corpus: jsonl:news/*.jsonl.gz
    extractive: [lead, lexrank]
    beam_width: 6
    runner: DataflowRunner         # a flag of Beam, for commands that run on Beam

The manifest of a run or a bundle and the dataset.json of records hold the flags of the
command that wrote them, so each of them is such a file too.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from precis.model import files
from precis.model.config import REMOVED_FLAGS, flag_name, suggestion
from precis.model.errors import UsageError
from precis.pipelines.flags.command_parser import GENERAL_FLAGS
from precis.pipelines.flags.flags import (
    check_values,
    flag_info,
    option_names,
    replace_zero_words,
    value_types,
)


class GivenFlags(NamedTuple):
    """Flags, as a file or a command line gives them.

    Attributes:
      flags: the flags of the command by name.
      beam_args: flags for Beam, as words of a command line.
    """

    flags: dict[str, Any]
    beam_args: list[str]


def read_config(
    path: str, *, command: str, concerns: Sequence[type], uses_beam: bool
) -> GivenFlags:
    """Reads a configuration file of a command.

    Args:
      path: a file in YAML or JSON.
      command: such as `summarize`.
      concerns: the dataclasses whose fields are its flags.
      uses_beam: whether other names are flags of Beam.

    Raises:
      UsageError: the file is missing, is no mapping, was written by another command, or
          names a flag that the command does not have.
    """
    content = _read_mapping(path)
    if isinstance(content.get("provenance"), Mapping):
        content = content["provenance"]
    if "command" in content and isinstance(content.get("flags"), Mapping):
        if content["command"] != command:
            raise UsageError(
                f"--config {path} was written by `precis {content['command']}`, and "
                f"its flags are not those of `precis {command}`; name another file"
            )
        content = _without_zeros(content["flags"], concerns)
    return divide_flags(
        content,
        command=command,
        concerns=concerns,
        uses_beam=uses_beam,
        source=f"--config {path}",
    )


def divide_flags(
    content: Mapping[str, Any],
    *,
    command: str,
    concerns: Sequence[type],
    uses_beam: bool,
    source: str,
) -> GivenFlags:
    """Divides values by name into the flags of a command and those of Beam.

    Args:
      content: the values; None leaves a flag at its default.
      command: such as `summarize`.
      concerns: the dataclasses whose fields are its flags.
      uses_beam: whether other names are flags of Beam.
      source: what holds the values, for the message.

    Raises:
      UsageError: a name that is no flag of the command, a value of another type than
        the flag's, or a 0 that has a word.
    """
    names = {flag_name(name): name for name in option_names(concerns)}
    flags: dict[str, Any] = {}
    beam_args: list[str] = []
    types = value_types(concerns)
    for name, value in content.items():
        # An empty value in YAML is None, and leaves the flag at its default.
        if value is None:
            continue
        if name in names:
            field = names[name]
            flags[field] = _as_number(value, types[field])
        elif name in GENERAL_FLAGS:
            raise UsageError(
                f"{source}: {name} is a flag for the command line alone; take it out"
            )
        elif uses_beam:
            beam_args += _beam_flag(name, value)
        else:
            way_out = suggestion(str(name), names) or "take it out"
            raise UsageError(
                f"{source}: precis {command} has no flag {name!r}; {way_out}"
            )
    try:
        flags = replace_zero_words(flags, concerns)
        return GivenFlags(check_values(concerns, flags), beam_args)
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from error


def _without_zeros(
    recorded: Mapping[str, Any], concerns: Sequence[type]
) -> Mapping[str, Any]:
    """The flags of a manifest, without those that were not given and that a command
    line cannot give as they are: 0 where a word stands for it, and removed flags.
    """
    fields = [field for concern in concerns for field in dataclasses.fields(concern)]
    worded = [field.name for field in fields if flag_info(field).word_for_zero]
    left_out = {*worded, *REMOVED_FLAGS}
    return {
        name: None if name in left_out and not value else value
        for name, value in recorded.items()
    }


def _read_mapping(path: str) -> Mapping[str, Any]:
    """The content of the file.

    Raises:
      UsageError: there is no such file, or it holds no mapping or a name twice.
    """
    import yaml

    from precis.pipelines.flags.strict_yaml import YAML_ERRORS, StrictLoader

    if not files.exists(path):
        raise UsageError(
            f"--config {path}: there is no such file; name one in YAML or JSON"
        )
    try:
        # A manifest may list thousands of files, for which YAML takes minutes.
        if path.endswith(".json"):
            text = files.read_bytes(path)
            content = json.loads(text, object_pairs_hook=_each_name_once)
        else:
            content = yaml.load(files.read_bytes(path).decode(), StrictLoader)
    except IsADirectoryError as error:
        raise UsageError(
            f"--config {path} is a folder; name a file in YAML or JSON, such as the "
            "manifest.json in it"
        ) from error
    except YAML_ERRORS as error:
        reason = " ".join(str(error).split())
        raise UsageError(
            f"--config {path} cannot be read as YAML or JSON: {reason}; correct the "
            "file"
        ) from error
    if not isinstance(content, Mapping):
        raise UsageError(
            f"--config {path} holds no names with values; write lines such as "
            "`beam_width: 4`"
        )
    return content


def _each_name_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A mapping of JSON.

    Raises:
      ValueError: it has a name twice.
    """
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice} is there twice; take one out")
    return content


def _as_number(value: Any, kind: type) -> Any:
    """A number that YAML takes for a text, as 1e-4, which has no point."""
    if isinstance(value, str) and kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            return value  # `read_flags` says what is wrong with it.
    return value


def _beam_flag(name: str, value: Any) -> list[str]:
    """A flag of Beam; one that may be repeated comes as a list."""
    if isinstance(value, list):
        return [part for item in value for part in _beam_flag(name, item)]
    if isinstance(value, bool):
        return [f"--{name}"] if value else []
    return [f"--{name}={value}"]
