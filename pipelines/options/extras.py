"""The extras of setup.py that a command needs, by its flags."""

from collections.abc import Iterable, Mapping
from typing import Any

from precis.model.storage.clients import extra_of
from precis.pipelines.corpus.options import parse_addresses
from precis.pipelines.corpus.schemes import SCHEMES

BEAM_COMMANDS = ("prepare", "summarize", "evaluate")
TRAINING_COMMANDS = ("train", "train-extractor", "train-keyphrases")
# It prepares records and trains on them.
_RECIPE_COMMAND = "train-summarizer"
# They run a network whatever their flags are.
_NETWORK_COMMANDS = ("prepare", "import", "export", "attention")


def command_extras(
    command: str, flags: Mapping[str, Any], paths: Iterable[str]
) -> set[str]:
    """The extras whose packages do the work of a command.

    Dataflow and tables, which the process that starts a job needs, are left out.

    Args:
      command: such as `summarize`.
      flags: of the command, by name.
      paths: the files and folders that it reads and writes.

    Raises:
      UsageError: the corpus has no scheme.
    """
    extras = {extra_of(path) for path in paths} - {""}
    if command in (*BEAM_COMMANDS, _RECIPE_COMMAND):
        extras.add("beam")
    has_network = flags.get("bundle") or flags.get("extractive_bundle")
    if command in (*TRAINING_COMMANDS, _RECIPE_COMMAND):
        extras.add("network")
    elif command in _NETWORK_COMMANDS or (command == "summarize" and has_network):
        extras.add("inference")
    if command == "attention":
        extras.add("plot")
    if command == "report":
        extras.add("report")
    corpus = str(flags.get("corpus") or "")
    addresses = parse_addresses(corpus) if corpus else []
    extras |= {SCHEMES[scheme].extra for scheme, _ in addresses} - {""}
    return extras
