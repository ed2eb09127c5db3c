"""The command line that is checked: the flags of a command, read as it reads them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from precis.model.config import suggestion
from precis.model.errors import PrecisError, UsageError
from precis.pipelines.corpus.options import parse_addresses
from precis.pipelines.corpus.schemes import SCHEMES
from precis.pipelines.flags.command_parser import HelpText
from precis.pipelines.flags.command_words import parse_words, read_command_line
from precis.pipelines.flags.flags import option_names, read_flags, recorded_flags
from precis.pipelines.options.bundles import ATTENTION, CARD, EXPORT, IMPORT
from precis.pipelines.options.evaluate import EVALUATE
from precis.pipelines.options.extras import command_extras
from precis.pipelines.options.load import LOAD
from precis.pipelines.options.loaders import LOADERS
from precis.pipelines.options.prepare import PREPARE
from precis.pipelines.options.progress import ProgressOptions, split_progress
from precis.pipelines.options.recipes import RECIPES
from precis.pipelines.options.report import REPORT
from precis.pipelines.options.summarize import SUMMARIZE
from precis.pipelines.options.train import TRAIN, TRAIN_EXTRACTOR, TRAIN_KEYPHRASES
from precis.pipelines.options.train_summarizer import TRAIN_SUMMARIZER
from precis.pipelines.options.verify import DIGEST, VERIFY

# The dataclasses whose fields are the flags of each command.
CONCERNS: Mapping[str, Sequence[type]] = {
    "attention": ATTENTION,
    "card": CARD,
    "digest": DIGEST,
    "evaluate": EVALUATE,
    "export": EXPORT,
    "import": IMPORT,
    "load": LOAD,
    "loaders": LOADERS,
    "prepare": PREPARE,
    "report": REPORT,
    "summarize": SUMMARIZE,
    "train": TRAIN,
    "train-extractor": TRAIN_EXTRACTOR,
    "train-keyphrases": TRAIN_KEYPHRASES,
    "train-summarizer": TRAIN_SUMMARIZER,
    "verify": VERIFY,
}
# Flags and arguments that name what a command reads.
_BUNDLE_FLAGS = (
    *("bundle", "extractive_bundle", "keyphrase_bundle"),
    *("init_from", "encoder"),
)
_INPUT_FLAGS = (
    *(
        *_BUNDLE_FLAGS,
        "records",
        "input",
        "evaluation",
        "run",
        "compare",
        "folder",
        "checkpoint",
        "text",
    ),
    *("summary", "word_vectors", "tokenizer", "source_tokenizer", "reuse"),
    *("retry_failures", "data_dir"),
)

ConcernT = TypeVar("ConcernT")


class CheckedCommand(Protocol):
    """What the doctor needs to know of a command.

    `command_line.commands.Command` has it.
    """

    @property
    def text(self) -> HelpText: ...

    @property
    def concerns(self) -> tuple[type, ...]: ...


class CommandLine(NamedTuple):
    """The words behind `precis doctor`, parsed.

    Attributes:
      command: its name; "" where the installation alone is checked.
      flags: the flags that are given, by name.
      beam_args: the flags for Beam.
    """

    command: str = ""
    flags: Mapping[str, Any] = {}
    beam_args: Sequence[str] = ()


class Request(NamedTuple):
    """A command and its flags.

    Attributes:
      command: its name; "" where the installation alone is checked.
      concerns: the dataclasses with its flags.
      beam_args: the flags for Beam.
    """

    command: str
    concerns: Sequence[Any]
    beam_args: Sequence[str]

    def options(self, kind: type[ConcernT]) -> ConcernT:
        """The flags of one of the command's dataclasses."""
        return next(concern for concern in self.concerns if type(concern) is kind)

    def value(self, name: str, default: Any = "") -> Any:
        """The value of a flag; the default where the command does not have it."""
        for concern in self.concerns:
            if name in option_names([type(concern)]):
                return getattr(concern, name)
        return default

    @property
    def output(self) -> str:
        """Where the result goes; "" where nothing is written or the name is implied."""
        return str(self.value("output"))

    @property
    def bundles(self) -> dict[str, str]:
        """The bundles that are read, by flag."""
        named = {name: str(self.value(name)) for name in _BUNDLE_FLAGS}
        return {name: path for name, path in named.items() if path}

    @property
    def runs(self) -> list[str]:
        """The finished runs that are read, but for the input of `evaluate`."""
        named = (str(self.value(name)) for name in ("run", "compare"))
        return [path for path in named if path]

    @property
    def is_network_used(self) -> bool:
        """Whether TensorFlow is needed."""
        return not self.extras.isdisjoint(("inference", "network"))

    @property
    def extras(self) -> set[str]:
        """The extras of setup.py with the packages that do the work."""
        flags = recorded_flags(self.concerns)
        return command_extras(self.command, flags, self.paths)

    @property
    def paths(self) -> list[str]:
        """All files and folders that the flags name, without patterns resolved."""
        named: list[str] = []
        for name in _INPUT_FLAGS:
            named += str(self.value(name)).split(",")
        corpus = str(self.value("corpus"))
        for scheme, where in parse_addresses(corpus) if corpus else ():
            named += [where] if SCHEMES[scheme].files else []
        for name in ("temp_location", "staging_location"):
            named.append(self.beam_flag(name))
        return [name.strip() for name in [*named, self.output] if name.strip()]

    def beam_flag(self, name: str, default: str = "") -> str:
        """The value of a flag of Beam, as the last one on the command line gives it."""
        value = default
        words = list(self.beam_args)
        for number, word in enumerate(words):
            if word == f"--{name}":
                value = "".join(words[number + 1 : number + 2])
            elif word.startswith(f"--{name}="):
                value = word.partition("=")[2]
        return value

    @property
    def runner(self) -> str:
        """The runner that is named; "" for the local one."""
        return self.beam_flag("runner")

    @property
    def is_local(self) -> bool:
        """Whether Beam runs on this machine, in this process or its children."""
        from precis.pipelines.engines.beam_runner import (
            LOCAL_RUNNER,
            LOCAL_RUNNERS,
            canonical_runner,
        )

        return canonical_runner(self.runner or LOCAL_RUNNER) in LOCAL_RUNNERS


def read_words(
    words: Sequence[str], commands: Mapping[str, CheckedCommand]
) -> CommandLine:
    """Reads the words behind `precis doctor`: a command line without `precis`.

    Raises:
      UsageError: there is no such command, or it has no such flag.
    """
    if not words:
        return CommandLine()
    name, *arguments = words
    check_command(name)
    command = commands[name]
    concerns = (*command.concerns, ProgressOptions)
    parsed = parse_words(name, concerns, command.text, arguments)
    given = read_command_line(name, concerns, command.text, parsed)
    _, flags = split_progress(given.flags)
    return CommandLine(name, flags, given.beam_args)


def check_command(name: str) -> None:
    """Refuses the name of no command.

    Raises:
      UsageError: naming the closest one.
    """
    if name not in CONCERNS:
        way_out = suggestion(name, CONCERNS) or "`precis --help` shows them"
        raise UsageError(f"there is no command {name!r} to check; {way_out}")


def read_request(line: CommandLine) -> Request:
    """Reads the flags of a command as the command does.

    Raises:
      UsageError: a flag that there is not, or a value that cannot be.
    """
    if not line.command:
        return Request("", (), ())
    flags: Mapping[str, Any] = line.flags
    if line.command == "summarize" and "text" in flags:
        raise UsageError(
            f"--text {flags['text']}: doctor checks jobs over a corpus, and one "
            "document is summarized in seconds; name a --corpus in its place"
        )
    if line.command == "train":
        flags = {**RECIPES.get(str(flags.get("recipe", "")), {}), **flags}
    if line.command in ("summarize", "export"):
        flags = _with_bundle(line.command, flags)
    concerns = read_flags(CONCERNS[line.command], dict(flags))
    return Request(line.command, concerns, line.beam_args)


def _with_bundle(command: str, flags: Mapping[str, Any]) -> Mapping[str, Any]:
    """The flags with what the bundle says; without it where the bundle is damaged,
    which the check of bundles reports.
    """
    from precis.model.bundle.network_bundle import with_decoding_of_bundle
    from precis.model.bundle.summarizer_bundle import with_flags_of_bundle

    try:
        if command == "export":
            return with_decoding_of_bundle(flags)
        return with_flags_of_bundle(flags)
    except (PrecisError, OSError):
        return flags
