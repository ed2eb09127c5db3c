"""A checkpoint in the layout of Hugging Face as a network or an encoder of ours:
config.json, generation_config.json, model.safetensors.

A preset of keras-hub is read as one (`keras_preset`).
"""

import contextlib
import dataclasses
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from precis.model import files
from precis.model.bundle.converters.architecture import (
    Architecture,
    Config,
    current_name,
)
from precis.model.bundle.converters.bart import BART
from precis.model.bundle.converters.bert import BERT, DISTILBERT, ROBERTA
from precis.model.bundle.converters.generation import read_generation, task_settings
from precis.model.bundle.converters.keras_preset import (
    is_preset,
    preset_settings,
    preset_tensors,
)
from precis.model.bundle.converters.pegasus import PEGASUS
from precis.model.bundle.converters.t5 import MT5, T5
from precis.model.bundle.converters.tensors import Tensor, read_tensors
from precis.model.bundle.converters.weights import assign, cut_positions, join_embedding
from precis.model.errors import DataError, UsageError
from precis.model.network.config import EncoderConfig, TransformerConfig
from precis.model.search.config import SearchConfig, SpecialTokens

# TensorFlow takes seconds to import: a folder that cannot be read is refused without
# it.
if TYPE_CHECKING:
    from precis.model.network.encoder import Encoder
    from precis.model.network.transformer import Transformer

CONFIG_FILE, GENERATION_FILE = "config.json", "generation_config.json"
# By model_type: what writes summaries, and what only reads.
ENCODER_DECODERS: Mapping[str, Architecture[TransformerConfig]] = {
    "bart": BART,
    "mt5": MT5,
    "pegasus": PEGASUS,
    "t5": T5,
}
ENCODERS: Mapping[str, Architecture[EncoderConfig]] = {
    "bert": BERT,
    "distilbert": DISTILBERT,
    "roberta": ROBERTA,
}


class Checkpoint(NamedTuple):
    """What a checkpoint holds besides its tokenizer.

    Attributes:
      network: with the checkpoint's weights.
      decoding, special: how it wants to be searched.
      task_prefix: what it wants to read in front of every document.
    """

    network: "Transformer"
    decoding: SearchConfig
    special: SpecialTokens
    task_prefix: str


def read_settings(
    folder: str, *, among: Collection[str] = (*ENCODER_DECODERS, *ENCODERS)
) -> dict[str, Any]:
    """The config.json of a checkpoint that can be imported; of a preset, what it would
    be.

    Args:
      folder: the checkpoint.
      among: the model_types that it may have.

    Raises:
      UsageError: the folder is no checkpoint, or one of another model_type.
      DataError: config.json is damaged.
    """
    if not files.exists(folder):
        raise UsageError(
            f"{folder}: there is no such folder; name one that a checkpoint was downloaded to"
        )
    if not files.exists(files.join(folder, CONFIG_FILE)):
        raise UsageError(
            f"{folder}: this is no checkpoint (no {CONFIG_FILE}); name the folder that holds {CONFIG_FILE} and the weights"
        )
    settings = _read_object(files.join(folder, CONFIG_FILE))
    if is_preset(settings):
        with _naming(folder):
            settings = preset_settings(settings)
    if (kind := settings.get("model_type")) not in among:
        raise UsageError(
            f"{folder}: model_type is {kind!r}, and what can be imported is {', '.join(among)}; take such a checkpoint"
        )
    return settings


def load_checkpoint(
    folder: str, *, precision: str = "float32", max_source_tokens: int = 0
) -> Checkpoint:
    """Reads the network of a checkpoint that writes, and its generation settings; its
    tokenizer is not needed.

    Args:
      folder: the checkpoint.
      precision: what the layers compute in; the weights are float32, whatever the
          checkpoint's are.
      max_source_tokens: longer sources are cut; 0 is the length that the checkpoint
          names.

    Raises:
      UsageError: the folder is no checkpoint that can be imported, or it has learned
          fewer positions than are asked for.
      DataError: a file is damaged, a tensor missing, unexpected or of another shape, or
          a setting not supported.
    """
    settings = read_settings(folder, among=ENCODER_DECODERS)
    architecture, path = (
        ENCODER_DECODERS[settings["model_type"]],
        files.join(folder, GENERATION_FILE),
    )
    generation = _read_object(path) if files.exists(path) else None
    with _naming(folder):
        if settings.get("is_encoder_decoder") is False:
            raise DataError(
                f"{CONFIG_FILE}: is_encoder_decoder is false, and one side alone writes no summaries; take the whole checkpoint"
            )
        config = _network_config(settings, architecture)
        decoding, special = read_generation(settings, generation)
        task_prefix = task_settings(settings).get("prefix") or ""
    if config.positions != "learned":  # nothing ends there
        longest = max(config.max_target_tokens, decoding.max_summary_tokens)
        config = dataclasses.replace(config, max_target_tokens=longest)
    config, tensors = _read(folder, config, architecture, max_source_tokens)
    with _naming(folder):
        config = _with_output(config, tensors, architecture)
    from precis.model.network.build import build_network

    network = build_network(config, precision=precision)
    with _naming(folder):
        assign(network, tensors, architecture)
    return Checkpoint(network, decoding, special, task_prefix)


def load_encoder(
    folder: str, *, precision: str = "float32", max_source_tokens: int = 0
) -> "Encoder":
    """Reads the encoder of a checkpoint of the BERT type; its tokenizer is not needed.

    Args:
      folder, precision, max_source_tokens: as in `load_checkpoint`.

    Raises:
      UsageError, DataError: as there.
    """
    settings = read_settings(folder, among=ENCODERS)
    architecture = ENCODERS[settings["model_type"]]
    with _naming(folder):
        config = _network_config(settings, architecture)
    config, tensors = _read(folder, config, architecture, max_source_tokens)
    from precis.model.network.build import build_encoder

    encoder = build_encoder(config, precision=precision)
    with _naming(folder):
        assign(encoder, tensors, architecture)
    return encoder


def _network_config(
    settings: Mapping[str, Any], architecture: Architecture[Config]
) -> Config:
    try:
        return architecture.network(settings)
    except KeyError as error:
        raise DataError(
            f"{CONFIG_FILE}: {error.args[0]} is missing; download the checkpoint again"
        ) from error


def _read(
    folder: str, config: Config, architecture: Architecture[Config], asked: int
) -> tuple[Config, dict[str, Tensor]]:
    """The configuration with the source length that is asked for, if any, and the
    tensors that fit it by their names of today.
    """
    learned = config.max_source_tokens if config.positions == "learned" else None
    if learned and asked > learned:
        raise UsageError(
            f"{folder}: --max_source_tokens is {asked}, and this checkpoint has learned {learned} positions; ask for no more, "
            "or leave it at 0 for all of them"
        )
    tensors = read_tensors(folder)
    if is_preset(_read_object(files.join(folder, CONFIG_FILE))):
        with _naming(folder):
            tensors = preset_tensors(tensors, config, architecture)
    found = {
        current_name(name, architecture): tensor for name, tensor in tensors.items()
    }
    if not asked:
        return config, found
    if learned:
        cut_positions(found, architecture, learned=learned, kept=asked)
    return dataclasses.replace(config, max_source_tokens=asked), found


def _with_output(
    config: TransformerConfig,
    tensors: dict[str, Tensor],
    architecture: Architecture[Any],
) -> TransformerConfig:
    """The configuration with an output layer where the tensors hold one; the embedding
    table is put under one name.
    """
    is_tied = join_embedding(tensors, architecture, is_tied=config.tied_output)
    if is_tied == config.tied_output:
        return config
    if config.scaled_output:
        *_, output = architecture.embedding
        raise DataError(
            f"{output} differs from the embedding table, and {CONFIG_FILE} scales the output as where they are one; if it was trained "
            "apart, say so there: tie_word_embeddings false"
        )
    return dataclasses.replace(
        config, tied_output=is_tied, logits_bias=False
    )  # the output layer has a bias already


@contextlib.contextmanager
def _naming(folder: str) -> Iterator[None]:
    """Names the folder in what is wrong with it."""
    try:
        yield
    except (DataError, UsageError) as error:
        raise DataError(f"{folder}: {error}") from error


def _read_object(path: str) -> dict[str, Any]:
    try:
        content = files.read_json(path)
    except ValueError as error:
        raise DataError(
            f"{path}: not JSON ({error}); download the checkpoint again"
        ) from error
    if not isinstance(content, dict):
        raise DataError(f"{path}: no JSON object; download the checkpoint again")
    return content
