"""The bundle of a network that writes summaries.

The files are those of every bundle (`manifest`). config.json holds further fields:

    architecture     transformer, decoder_only or recurrent
    network          the configuration of the network
    decoding         how to search, of an imported network
    special          the special tokens, of an imported network
    task_prefixes    the task prefixes that the network was trained with, if any

`open_bundle` reads everything but the weights and needs no TensorFlow. `load_bundle`
also builds the network.
"""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from precis.model import files
from precis.model.bundle.manifest import (
    ABSTRACTIVE,
    has_source_tokenizer,
    naming_config,
    open_bundle_config,
    open_tokenizer,
    open_weights,
    save_bundle_files,
)
from precis.model.errors import UsageError
from precis.model.network.architectures import architecture_of, read_config
from precis.model.network.config import NetworkConfig
from precis.model.search.config import (
    REMOVED_SETTINGS,
    SearchConfig,
    SpecialTokens,
)
from precis.model.tokenization.folder import SOURCE_TOKENIZER_FOLDER, AnyTokenizer

# TensorFlow takes seconds to import, and only `load_bundle` needs it.
if TYPE_CHECKING:
    from precis.model.network.generator import Generator


class Bundle(NamedTuple):
    """A network that is ready to summarize.

    Attributes:
      network: the network with its weights.
      tokenizer: the tokenizer of summaries.
      source_tokenizer: the tokenizer of sources; most often the same object.
      model_id: as in `BundleConfig`.
      special: the special tokens of an imported network; None where the tokenizer
          defines them.
      task_prefixes: the texts that name the task, each put in front of a document. The
          first is the default.
    """

    network: "Generator"
    tokenizer: AnyTokenizer
    source_tokenizer: AnyTokenizer
    model_id: str
    special: SpecialTokens | None
    task_prefixes: tuple[str, ...] = ()


class BundleWithoutWeights(NamedTuple):
    """Everything in the bundle of a network except its weights.

    Attributes:
      config: the configuration of the network.
      tokenizer, source_tokenizer, model_id, special, task_prefixes: as in `Bundle`.
    """

    config: NetworkConfig
    tokenizer: AnyTokenizer
    source_tokenizer: AnyTokenizer
    model_id: str
    special: SpecialTokens | None
    task_prefixes: tuple[str, ...]


def save_bundle(
    folder: str,
    *,
    network: "Generator",
    tokenizer: AnyTokenizer,
    provenance: dict[str, Any],
    source_tokenizer: AnyTokenizer | None = None,
    decoding: SearchConfig | None = None,
    special: SpecialTokens | None = None,
    task_prefixes: Sequence[str] = (),
) -> str:
    """Writes the bundle of a network.

    Args:
      folder: the bundle; files of the same names are replaced.
      network: the network.
      tokenizer: the tokenizer of summaries, and of sources unless `source_tokenizer`
          is given.
      provenance: what the network was trained on and how, for the manifest.
      source_tokenizer: the tokenizer of sources, where it is a different one.
      decoding: how to search an imported network.
      special: the special tokens of an imported network.
      task_prefixes: as in `Bundle`.

    Returns:
      The model_id.
    """
    config: dict[str, Any] = {
        "architecture": architecture_of(network.config),
        "network": dataclasses.asdict(network.config),
    }
    if decoding is not None:
        config["decoding"] = dataclasses.asdict(decoding)
    if special is not None:
        config["special"] = dataclasses.asdict(special)
    if any(task_prefixes):
        config["task_prefixes"] = list(task_prefixes)
    return save_bundle_files(
        folder,
        kind=ABSTRACTIVE,
        config=config,
        weights={weight.path: np.asarray(weight.numpy()) for weight in network.weights},
        provenance=provenance,
        tokenizer=tokenizer,
        source_tokenizer=source_tokenizer,
    )


def open_bundle(folder: str) -> BundleWithoutWeights:
    """Reads the bundle of a network, without its weights.

    Raises:
      UsageError: the folder is no complete bundle of a network.
      DataError: a file differs from the manifest.
    """
    _, config, model_id = open_bundle_config(folder, ABSTRACTIVE)
    with naming_config(folder):
        files.check_fields(config, {"network": dict})
        architecture = config.get("architecture", "transformer")
        network = read_config(architecture, config["network"])
        special = _special_tokens(config.get("special", {}))
        task_prefixes = tuple(config.get("task_prefixes", ()))
    tokenizer = open_tokenizer(folder)
    source_tokenizer = tokenizer
    if has_source_tokenizer(folder):
        source_tokenizer = open_tokenizer(folder, SOURCE_TOKENIZER_FOLDER)
    return BundleWithoutWeights(
        config=network,
        tokenizer=tokenizer,
        source_tokenizer=source_tokenizer,
        model_id=model_id,
        special=special,
        task_prefixes=task_prefixes,
    )


def _special_tokens(fields: Mapping[str, Any]) -> SpecialTokens | None:
    """The special tokens from their JSON, where tuples are lists; None without any."""
    if not fields:
        return None
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in fields.items()
    }
    return SpecialTokens(**values)


def load_bundle(folder: str, *, precision: str = "float32") -> Bundle:
    """Reads the bundle of a network and checks it against its manifest.

    Args:
      folder: the bundle.
      precision: what the layers compute in, as in `build_network`.

    Raises:
      UsageError: the folder is no complete bundle of a network.
      DataError: a file differs from the manifest.
    """
    contents = open_bundle(folder)
    weights = open_weights(folder)
    from precis.model.network.build import build_network

    with naming_config(folder):
        network = build_network(contents.config, precision=precision)
        for weight in network.weights:
            weight.assign(weights[weight.path])
    return Bundle(
        network=network,
        tokenizer=contents.tokenizer,
        source_tokenizer=contents.source_tokenizer,
        model_id=contents.model_id,
        special=contents.special,
        task_prefixes=contents.task_prefixes,
    )


def read_decoding(folder: str) -> dict[str, Any]:
    """Reads the flags that a bundle sets itself, without reading its weights.

    These are the search settings of an imported network and the default task prefix.

    Raises:
      UsageError: the folder is no complete bundle of a network.
      DataError: config.json differs from the manifest.
    """
    config = open_bundle_config(folder, ABSTRACTIVE).config
    with naming_config(folder):
        flags = {
            name: value
            for name, value in config.get("decoding", {}).items()
            if REMOVED_SETTINGS.get(name) != value
        }
        if config.get("task_prefixes"):
            flags["task_prefix"] = config["task_prefixes"][0]
    return flags


def with_decoding_of_bundle(flags: Mapping[str, Any]) -> dict[str, Any]:
    """The flags, and for those that are not given the search of the bundle.

    An imported network brings the search that its checkpoint recommends.

    Raises:
      UsageError: `bundle` names no complete bundle of a network.
    """
    bundle = flags.get("bundle")
    # A value of another type is refused where the flags are read.
    if not bundle or not isinstance(bundle, str | os.PathLike):
        return dict(flags)
    return {**read_decoding(os.fspath(bundle)), **flags}


def check_prefix(prefix: str, contents: BundleWithoutWeights) -> None:
    """Refuses a task prefix that a network was not trained with.

    An imported network takes any prefix: its checkpoint does not list all of them.

    Raises:
      UsageError: the network does not know the prefix.
    """
    if contents.special is not None:
        return
    if prefix not in (contents.task_prefixes or ("",)):
        known = ", ".join(map(repr, contents.task_prefixes)) or "none"
        raise UsageError(
            f"--task_prefix {prefix!r} is not one that the network was trained with; "
            f"it knows {known}"
        )
