"""The steps of a job file, checked as command lines before anything runs."""

import dataclasses
import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from precis.model.config import flag_name, suggestion
from precis.model.errors import UsageError
from precis.pipelines.corpus.options import parse_address
from precis.pipelines.flags.command_parser import HelpText
from precis.pipelines.flags.config_file import divide_flags
from precis.pipelines.flags.flags import (
    flag_info,
    option_names,
    read_flags,
    value_types,
)
from precis.pipelines.options.results import normal_path
from precis.pipelines.plan.job_file import GivenStep, JobFile, Scalar

# A job within a job would look for its own receipts.
_NO_STEP = ("run",)
# The units of flags that name what a command reads.
_PATH_UNIT = re.compile(r"\b(DIR|FILE|GLOB|RUN)\b")
_CORPUS_UNIT = "SCHEME:WHERE"
# Corpora without files.
_MADE_SCHEMES = ("sample", "tfds")


class StepCommand(Protocol):
    """What is needed to know of a command.

    `command_line.commands.Command` has it.
    """

    @property
    def text(self) -> HelpText: ...

    @property
    def concerns(self) -> tuple[type, ...]: ...


class Step(NamedTuple):
    """A command line.

    Attributes:
      name: of the step.
      place: the file and line of the step.
      command: such as `train`.
      words: what stands behind the command.
      output: what it writes, by its flags or by their defaults; "" where there is none.
      inputs: the other files and folders of its flags and their defaults.
    """

    name: str
    place: str
    command: str
    words: tuple[str, ...]
    output: str
    inputs: tuple[str, ...]

    def line(self) -> str:
        """The command line for a shell."""
        return shlex.join(["precis", self.command, *self.words])

    def reads(self, other: "Step") -> bool:
        """Whether it reads what another step writes."""
        return bool(other.output) and any(
            path == other.output or path.startswith(posixpath.join(other.output, ""))
            for path in self.inputs
        )


def read_steps(job: JobFile, commands: Mapping[str, StepCommand]) -> list[Step]:
    """Turns the steps of a file into command lines.

    Args:
      job: the file.
      commands: all commands by name, as `command_line.commands.COMMANDS` has them.

    Raises:
      UsageError: a command or a flag that there is not, a value that it refuses, an
        output that two steps write, or one that is read before it is written.
    """
    steps = [_read_step(job, given, commands) for given in job.steps]
    _check_outputs(job.folder, steps)
    for number, step in enumerate(steps):
        for later in steps[number:]:
            if step.reads(later):
                raise UsageError(
                    f"{step.place}: {step.name} reads {later.output}, which "
                    f"{later.name} ({later.place}) writes; put it behind that step"
                )
    return steps


def _read_step(
    job: JobFile, given: GivenStep, commands: Mapping[str, StepCommand]
) -> Step:
    place = f"{job.path}:{given.line}"
    known = [name for name in commands if name not in _NO_STEP]
    if given.command not in known:
        way_out = suggestion(given.command, known) or f"known: {', '.join(known)}"
        raise UsageError(f"{place}: there is no command {given.command!r}; {way_out}")
    command = commands[given.command]
    flags: dict[str, Any] = {}
    beam_args: list[str] = []
    types = value_types(command.concerns)
    kinds = {flag_name(name): kind for name, kind in types.items()}
    for name, value in given.flags.items():
        if isinstance(value, Scalar):
            value = _value_for(kinds.get(name), value)
        divided = divide_flags(
            {name: value},
            command=given.command,
            concerns=command.concerns,
            uses_beam=command.text.uses_beam,
            source=f"{job.path}:{given.lines[name]}",
        )
        flags |= divided.flags
        beam_args += divided.beam_args
    try:
        read_flags(command.concerns, flags)
        if beam_args:
            _check_beam_flags(beam_args, command.concerns)
    except UsageError as error:
        raise UsageError(f"{place}: {given.name}: {error}") from error
    paths = {**flags, **_default_paths(flags, command.concerns)}
    return Step(
        given.name,
        place,
        given.command,
        (*step_words(flags, command.concerns), *beam_args),
        normal_path(paths["output"]) if paths.get("output") else "",
        tuple(_inputs(paths, command.concerns)),
    )


def _value_for(kind: type | None, given: Scalar) -> Any:
    """The value of a variable for a flag, which is one of Beam without a type.

    A number is read from the text, as the command line does it.
    """
    if isinstance(given.value, bool) and kind in (bool, None):
        return given.value
    return None if given.value is None else given.text


def _check_beam_flags(beam_args: Sequence[str], concerns: Sequence[type]) -> None:
    """Refuses flags that Beam does not know either; it takes seconds to import."""
    from precis.pipelines.beam.beam_runner import pipeline_options

    pipeline_options(beam_args, own_flags=option_names(concerns))


def step_words(flags: Mapping[str, Any], concerns: Sequence[type]) -> list[str]:
    """The words of a command line, arguments without a flag last."""
    words: list[str] = []
    arguments: list[str] = []
    for field in _given(flags, concerns):
        info, value = flag_info(field), flags[field.name]
        name = flag_name(field.name)
        if info.takes_list and isinstance(value, list):
            value = info.separator.join(map(str, value))
        if info.takes_rest:
            arguments += shlex.split(value)
        elif info.is_positional:
            arguments.append(str(value))
        elif info.word_for_zero and not value:
            words += [f"--{name}", info.word_for_zero]
        elif isinstance(value, bool):
            words.append(f"--{name}" if value else f"--no-{name}")
        elif str(value).startswith("-"):
            words.append(f"--{name}={value}")
        else:
            words += [f"--{name}", str(value)]
    return [*words, *arguments]


def _given(
    flags: Mapping[str, Any], concerns: Sequence[type]
) -> Iterator[dataclasses.Field]:
    """The fields that have a value."""
    for concern in concerns:
        for field in dataclasses.fields(concern):
            if field.name in flags:
                yield field


def _default_paths(
    flags: Mapping[str, Any], concerns: Sequence[type]
) -> dict[str, str]:
    """The paths of fields that are not given and lie beside the path of another."""
    paths: dict[str, str] = {}
    for concern in concerns:
        for field in dataclasses.fields(concern):
            beside = flag_info(field).beside
            if beside and not flags.get(field.name):
                other, suffix = beside
                paths[field.name] = normal_path(str(flags[other])) + suffix
    return paths


def _inputs(flags: Mapping[str, Any], concerns: Sequence[type]) -> Iterator[str]:
    """The files, folders and patterns of files that a command reads."""
    for field in _given(flags, concerns):
        info, value = flag_info(field), flags[field.name]
        if field.name == "output" or info.is_written:
            continue
        if info.metavar == _CORPUS_UNIT:
            for corpus in str(value).split("\n"):
                scheme, where = parse_address(corpus)
                if scheme not in _MADE_SCHEMES:
                    yield normal_path(where)
        elif _PATH_UNIT.search(info.metavar):
            names = value if isinstance(value, list) else re.split("[,\n]", str(value))
            for name in names:
                if name.strip():
                    yield normal_path(name.strip())


def _check_outputs(folder: str, steps: Sequence[Step]) -> None:
    """Refuses two steps with one output, and one that writes where the receipts lie."""
    writers: dict[str, Step] = {}
    for step in steps:
        if step.output == normal_path(folder):
            raise UsageError(
                f"{step.place}: {step.name} writes {step.output}, the folder of the "
                "job itself; name one below it"
            )
        if step.output and step.output in writers:
            other = writers[step.output]
            raise UsageError(
                f"{step.place}: {step.name} writes {step.output}, as {other.name} "
                f"({other.place}) does; name another output"
            )
        writers[step.output] = step
