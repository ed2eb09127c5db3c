"""Python and the packages, within the bounds of the installed distribution, and the
extras that a command needs. Beam, which is one of them, may not be there.
"""

import importlib.metadata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from packaging.requirements import Requirement

from precis.model.config import DISTRIBUTION
from precis.model.storage.clients import extra_of
from precis.pipelines.corpus.options import parse_addresses
from precis.pipelines.corpus.schemes import SCHEMES

BEAM_COMMANDS = ("prepare", "summarize", "evaluate")
# They run a network whatever their flags are.
_NETWORK_COMMANDS = (
    *("train", "train-extractor", "train-keyphrases", "train-summarizer"),
    *("prepare", "import", "export", "attention"),
)


def command_extras(
    command: str,
    flags: Mapping[str, Any],
    beam_args: Iterable[str],
    paths: Iterable[str],
) -> set[str]:
    """The extras of pyproject.toml whose packages a command line needs.

    Args:
      command: such as `summarize`.
      flags: of the command, by name.
      beam_args: flags for Beam.
      paths: the files and folders that it reads and writes.

    Raises:
      UsageError: the corpus has no scheme.
    """
    corpus = str(flags.get("corpus") or "")
    addresses = parse_addresses(corpus) if corpus else []
    has_network = flags.get("bundle") or flags.get("extractive_bundle")
    needed = {
        "beam": command in (*BEAM_COMMANDS, "train-summarizer"),
        "train": command in _NETWORK_COMMANDS
        or (command == "summarize" and has_network),
        "report": command == "attention",
        # The table of `loaders` is a name in SQL, which needs no package.
        "tables": command != "loaders" and flags.get("table"),
        # Beam, which knows the names of its runners, may not be installed.
        "dataflow": "dataflow" in " ".join(beam_args).lower(),
        **{SCHEMES[scheme].extra: True for scheme, _ in addresses},
        **{extra_of(path): True for path in paths},
    }
    return {extra for extra, is_needed in needed.items() if extra and is_needed}


def offered_extras() -> list[str]:
    """The extras of the installed distribution, but `all`."""
    offered = importlib.metadata.metadata(DISTRIBUTION).get_all("Provides-Extra") or []
    return [name for name in offered if name != "all"]


def wrong_packages(extra: str, name: str = DISTRIBUTION) -> Iterator[str]:
    """What is wrong with the packages that an extra of a distribution brings; with "",
    those that it always has.
    """
    for line in importlib.metadata.requires(name) or ():
        requirement = Requirement(line)
        marker = requirement.marker
        always = marker is None or marker.evaluate({"extra": ""})
        if always == bool(extra) or (marker and not marker.evaluate({"extra": extra})):
            continue
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            yield f"{requirement.name} is not installed"
            continue
        for inner in requirement.extras:
            if any(wrong_packages(inner, requirement.name)):
                yield f"{requirement.name}[{inner}] is not complete"
        bounds = requirement.specifier
        if not bounds.contains(version, prereleases=True):
            yield f"{requirement.name} is {version}, and {name} works with {bounds}"
