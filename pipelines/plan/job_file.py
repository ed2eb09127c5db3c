"""The file of `precis run`: a folder, variables and steps.

    folder: runs/news                   # receipts of finished steps go to _steps in it
    vars:
      corpus: jsonl:news/*.jsonl.gz
    steps:
      - prepare:
          corpus: ${corpus}
          output: ${folder}/records
      - train:
          records: ${folder}/records
          output: ${folder}/bundle
      - name: second-training           # where a command is there twice
        train: {records: ..., output: ...}

`${name}` stands for a variable or the folder. Within a longer value it is the text as
it is written: 1.10 stays 1.10. Where it is the whole value, the flag says whether it is
a number.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import yaml

from precis.model import files
from precis.model.config import suggestion
from precis.model.errors import UsageError

FOLDER = "folder"
_KEYS = (FOLDER, "vars", "steps")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_STEP_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class Scalar(NamedTuple):
    """The value of a variable.

        version: 1.10    value 1.1      text "1.10"
        date: 12:30      value 750      text "12:30"

    Attributes:
      value: as YAML reads it.
      text: as it is written.
    """

    value: Any
    text: str


class GivenStep(NamedTuple):
    """A step as the file has it, with its variables put in.

    Attributes:
      name: as the file names it; its command where it does not.
      command: such as `train`.
      flags: values by name; a `Scalar` where a variable is the whole value.
      lines: the line of each flag in the file, from 1 on.
      line: of the step.
    """

    name: str
    command: str
    flags: Mapping[str, Any]
    lines: Mapping[str, int]
    line: int


class JobFile(NamedTuple):
    """The content of the file.

    Attributes:
      path: the file.
      folder: where the receipts lie.
      steps: in order.
    """

    path: str
    folder: str
    steps: tuple[GivenStep, ...]


class _Entry(NamedTuple):
    """A value of a mapping in the file: `node` as YAML has it, and its line."""

    node: yaml.Node
    line: int


def read_job(path: str, variables: Mapping[str, str]) -> JobFile:
    """Reads the file.

    Args:
      path: the file.
      variables: texts that replace the values of the file.

    Raises:
      UsageError: there is no such file, or it is not laid out as above; the message
        begins with the file and the line.
    """
    reader = _Reader(path)
    entries = reader.mapping(reader.root(), "the file")
    for key, entry in entries.items():
        if key not in _KEYS:
            way_out = suggestion(key, _KEYS) or f"it holds {', '.join(_KEYS)}"
            raise UsageError(f"{path}:{entry.line}: there is no {key!r}; {way_out}")
    for key in (FOLDER, "steps"):
        if key not in entries:
            raise UsageError(f"{path}: {key} is missing; {_EXPLANATIONS[key]}")
    values = _variables(reader, entries.get("vars"), variables)
    folder = _folder(reader, entries[FOLDER], values, variables)
    values[FOLDER] = folder
    steps = entries["steps"]
    if not isinstance(steps.node, yaml.SequenceNode) or not steps.node.value:
        raise UsageError(f"{path}:{steps.line}: {_EXPLANATIONS['steps']}")
    given = [_step(reader, node, values) for node in steps.node.value]
    names: dict[str, int] = {}
    for step in given:
        if step.name in names:
            raise UsageError(
                f"{path}:{step.line}: the step in line {names[step.name]} is named "
                f"{step.name} too; give one of them a `name:`"
            )
        names[step.name] = step.line
    return JobFile(path, folder, tuple(given))


_EXPLANATIONS = {
    FOLDER: "name a folder for the receipts of finished steps, as in `folder: runs/1`",
    "steps": "`steps:` is a list of commands with their flags, as in "
    "`- digest: {run: summaries}`",
}


def _variables(
    reader: "_Reader", entry: _Entry | None, replaced: Mapping[str, str]
) -> dict[str, Any]:
    """The variables, each of which may name those above it."""
    values: dict[str, Any] = {}
    entries = reader.mapping(entry.node, "vars") if entry else {}
    for name in replaced:
        if name not in entries and name != FOLDER:
            way_out = suggestion(name, entries) or "name it below `vars:` first"
            raise UsageError(
                f"--vars {name}: {reader.path} has no such variable; {way_out}"
            )
    for name, (node, line) in entries.items():
        if name == FOLDER:
            raise UsageError(
                f"{reader.path}:{line}: {FOLDER} stands beside `vars:`, not in it"
            )
        if name in replaced:
            values[name] = _scalar(replaced[name])
            continue
        value = _put_in(reader.value(node), values, f"{reader.path}:{line}")
        is_written = isinstance(node, yaml.ScalarNode) and not isinstance(value, str)
        if is_written and not isinstance(value, Scalar):
            value = Scalar(value, node.value)
        values[name] = value
    return values


def _folder(
    reader: "_Reader",
    entry: _Entry,
    values: Mapping[str, Any],
    replaced: Mapping[str, str],
) -> str:
    place = f"{reader.path}:{entry.line}"
    folder = replaced.get(FOLDER) or _put_in(reader.value(entry.node), values, place)
    folder = _as_text(folder) if isinstance(folder, Scalar) else folder
    if not isinstance(folder, str) or not folder:
        raise UsageError(f"{place}: {_EXPLANATIONS[FOLDER]}")
    return folder.rstrip("/") or folder


def _step(
    reader: "_Reader", node: yaml.Node, variables: Mapping[str, Any]
) -> GivenStep:
    """A step of the list: a mapping of a command to its flags, with a name perhaps."""
    line = node.start_mark.line + 1
    entries = reader.mapping(node, "a step")
    name_entry = entries.pop("name", None)
    if len(entries) != 1:
        raise UsageError(
            f"{reader.path}:{line}: a step has one command, and this one "
            f"{', '.join(entries) or 'none'}; begin each with `- `"
        )
    ((command, entry),) = entries.items()
    name = reader.value(name_entry.node) if name_entry else command
    if not isinstance(name, str) or not _STEP_NAME.fullmatch(name):
        raise UsageError(
            f"{reader.path}:{line}: {name!r} cannot name a step; take letters, digits, "
            "`-`, `_` and `.`"
        )
    flags = reader.mapping(entry.node, f"the flags of {command}")
    values = {
        flag: _put_in(reader.value(each.node), variables, f"{reader.path}:{each.line}")
        for flag, each in flags.items()
    }
    lines = {flag: each.line for flag, each in flags.items()}
    return GivenStep(name, command, values, lines, line)


def _put_in(value: Any, variables: Mapping[str, Any], place: str) -> Any:
    """A value with its variables replaced.

    Raises:
      UsageError: a variable that is not there.
    """
    if isinstance(value, list):
        parts = [_put_in(part, variables, place) for part in value]
        return [_as_text(p) if isinstance(p, Scalar) else p for p in parts]
    if not isinstance(value, str):
        return value
    for name in _VARIABLE.findall(value):
        if name not in variables:
            way_out = suggestion(name, variables) or "name it below `vars:`, above"
            raise UsageError(f"{place}: there is no variable {name!r}; {way_out}")
    whole = _VARIABLE.fullmatch(value)
    if whole:
        return variables[whole[1]]
    return _VARIABLE.sub(lambda match: _as_text(variables[match[1]]), value)


def _as_text(value: Any) -> str:
    """A value of a variable within a longer text."""
    return value.text if isinstance(value, Scalar) else str(value)


def _scalar(text: str) -> Scalar:
    """The value of --vars."""
    try:
        value = yaml.safe_load(text)
    except (ValueError, yaml.YAMLError):
        value = text
    return Scalar(value if isinstance(value, bool | int | float) else text, text)


class _Reader:
    """Reads YAML and knows the lines."""

    def __init__(self, path: str) -> None:
        self.path = path
        if not files.exists(path):
            raise UsageError(f"{path}: there is no such file; name one with steps")
        try:
            self._loader = yaml.SafeLoader(files.read_bytes(path).decode())
        except IsADirectoryError as error:
            raise UsageError(
                f"{path} is a folder; name the file with the steps, such as job.yaml"
            ) from error
        except (ValueError, yaml.YAMLError) as error:
            raise self._not_yaml(error) from error

    def root(self) -> yaml.Node:
        """The document of the file."""
        try:
            node = self._loader.get_single_node()
        except yaml.YAMLError as error:
            raise self._not_yaml(error) from error
        if node is None:
            raise UsageError(f"{self.path} is empty; {_EXPLANATIONS['steps']}")
        return node

    def mapping(self, node: yaml.Node, what: str) -> dict[str, _Entry]:
        """The values of a mapping by name; an empty value is one without names.

        Raises:
          UsageError: it is no mapping, or has a name twice.
        """
        line = node.start_mark.line + 1
        if isinstance(node, yaml.ScalarNode) and not node.value:
            return {}
        if not isinstance(node, yaml.MappingNode):
            raise UsageError(
                f"{self.path}:{line}: {what} must have names with values, as in "
                "`name: value`"
            )
        entries: dict[str, _Entry] = {}
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            if name in entries:
                raise UsageError(
                    f"{self.path}:{line}: {name} is there twice, first in line "
                    f"{entries[name].line}; take one out"
                )
            entries[name] = _Entry(value, line)
        return entries

    def value(self, node: yaml.Node) -> Any:
        """What a node stands for.

        Raises:
          UsageError: YAML cannot read it.
        """
        try:
            return self._loader.construct_object(node, deep=True)
        except (ValueError, yaml.YAMLError) as error:
            raise self._not_yaml(error) from error

    def _not_yaml(self, error: Exception) -> UsageError:
        reason = " ".join(str(error).split())
        return UsageError(f"{self.path} is not YAML: {reason}; correct the file")
