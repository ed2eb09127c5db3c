"""Reads a checkpoint in the layout of Hugging Face as a network or as an encoder.

config.json               the architecture and its sizes
generation_config.json    how to search; optional
model.safetensors         the tensors, in one file or in several
"""

import contextlib
import dataclasses
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from precis.model import files
from precis.model.bundle.converters.architecture import (
    CheckpointArchitecture,
    Config,
    current_name,
)
from precis.model.bundle.converters.bart import BART
from precis.model.bundle.converters.bert import BERT, DISTILBERT, ROBERTA
from precis.model.bundle.converters.generation import read_generation, task_settings
from precis.model.bundle.converters.pegasus import PEGASUS
from precis.model.bundle.converters.t5 import MT5, T5
from precis.model.bundle.converters.tensors import Tensor, read_tensors
from precis.model.bundle.converters.weights import assign, cut_positions, join_embedding
from precis.model.errors import DataError, UsageError
from precis.model.network.config import EncoderConfig, TransformerConfig
from precis.model.search.config import SearchConfig, SpecialTokens

# TensorFlow takes seconds to import. A folder that cannot be read is refused earlier.
if TYPE_CHECKING:
    from precis.model.network.encoder import Encoder
    from precis.model.network.transformer import Transformer

CONFIG_FILE = "config.json"
GENERATION_FILE = "generation_config.json"
_WAY_OUT = "download the checkpoint again"
# The architectures by model_type.
ENCODER_DECODERS: Mapping[str, CheckpointArchitecture[TransformerConfig]] = {
    "bart": BART,
    "mt5": MT5,
    "pegasus": PEGASUS,
    "t5": T5,
}
ENCODERS: Mapping[str, CheckpointArchitecture[EncoderConfig]] = {
    "bert": BERT,
    "distilbert": DISTILBERT,
    "roberta": ROBERTA,
}


class Checkpoint(NamedTuple):
    """An encoder-decoder of a checkpoint; its tokenizer is not included.

    Attributes:
      network: the network with the weights of the checkpoint.
      decoding: its search settings.
      special: its special tokens.
      task_prefix: the text that it expects in front of every document, or "".
    """

    network: "Transformer"
    decoding: SearchConfig
    special: SpecialTokens
    task_prefix: str


def read_settings(
    folder: str, *, among: Collection[str] = (*ENCODER_DECODERS, *ENCODERS)
) -> dict[str, Any]:
    """Reads the config.json of a checkpoint.

    Args:
      folder: the checkpoint.
      among: the accepted model_types.

    Raises:
      UsageError: the folder is no checkpoint, or has another model_type.
      DataError: config.json is damaged.
    """
    if not files.exists(folder):
        raise UsageError(
            f"{folder}: there is no such folder; "
            "name one that a checkpoint was downloaded to"
        )
    if not files.exists(files.join(folder, CONFIG_FILE)):
        raise UsageError(
            f"{folder}: this is no checkpoint (no {CONFIG_FILE}); "
            f"name the folder that holds {CONFIG_FILE} and the weights"
        )
    settings = files.read_object(files.join(folder, CONFIG_FILE), way_out=_WAY_OUT)
    model_type = settings.get("model_type")
    if not isinstance(model_type, str) or model_type not in among:
        raise UsageError(
            f"{folder}: model_type is {model_type!r}, and what can be imported is "
            f"{', '.join(among)}; take such a checkpoint"
        )
    return settings


def load_checkpoint(
    folder: str, *, precision: str = "float32", max_source_tokens: int = 0
) -> Checkpoint:
    """Reads the encoder-decoder of a checkpoint and its generation settings.

    Args:
      folder: the checkpoint; its tokenizer is not read.
      precision: what the layers compute in. The weights are float32, whatever the
          precision of the checkpoint.
      max_source_tokens: where sources are cut; 0 is the length in config.json.

    Raises:
      UsageError: the folder is no checkpoint that can be imported, or it has fewer
          learned positions than `max_source_tokens`.
      DataError: a file is damaged, a tensor is missing, unexpected or of another shape,
          or a setting is not supported.
    """
    settings = read_settings(folder, among=ENCODER_DECODERS)
    architecture = ENCODER_DECODERS[settings["model_type"]]
    path = files.join(folder, GENERATION_FILE)
    generation = None
    if files.exists(path):
        generation = files.read_object(path, way_out=_WAY_OUT)
    with _naming(folder):
        if settings.get("is_encoder_decoder") is False:
            raise DataError(
                f"{CONFIG_FILE}: is_encoder_decoder is false, and one side alone "
                "writes no summaries; take the whole checkpoint"
            )
        config = _network_config(settings, architecture)
        name = CONFIG_FILE if generation is None else GENERATION_FILE
        with files.naming_damage(name, way_out=_WAY_OUT):
            decoding, special = read_generation(settings, generation)
        task_prefix = task_settings(settings).get("prefix") or ""
    if config.positions != "learned":  # The number of positions is no limit.
        longest = max(config.max_target_tokens, decoding.max_summary_tokens)
        config = dataclasses.replace(config, max_target_tokens=longest)
    config, tensors = _read_tensors(folder, config, architecture, max_source_tokens)
    with _naming(folder):
        config = _with_output(config, tensors, architecture)
    from precis.model.network.build import build_network

    with _naming(folder), files.naming_damage(CONFIG_FILE, way_out=_WAY_OUT):
        network = build_network(config, precision=precision)
    with _naming(folder):
        assign(network, tensors, architecture)
    return Checkpoint(network, decoding, special, task_prefix)


def load_encoder(
    folder: str, *, precision: str = "float32", max_source_tokens: int = 0
) -> "Encoder":
    """Reads the encoder of a BERT, RoBERTa or DistilBERT checkpoint.

    Args:
      folder, precision, max_source_tokens: as in `load_checkpoint`.

    Raises:
      UsageError, DataError: as there.
    """
    settings = read_settings(folder, among=ENCODERS)
    architecture = ENCODERS[settings["model_type"]]
    with _naming(folder):
        config = _network_config(settings, architecture)
    config, tensors = _read_tensors(folder, config, architecture, max_source_tokens)
    from precis.model.network.build import build_encoder

    with _naming(folder), files.naming_damage(CONFIG_FILE, way_out=_WAY_OUT):
        encoder = build_encoder(config, precision=precision)
    with _naming(folder):
        assign(encoder, tensors, architecture)
    return encoder


def _network_config(
    settings: Mapping[str, Any], architecture: CheckpointArchitecture[Config]
) -> Config:
    try:
        return architecture.network(settings)
    except KeyError as error:
        raise DataError(
            f"{CONFIG_FILE}: {error.args[0]} is missing; {_WAY_OUT}"
        ) from error
    except (TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{CONFIG_FILE}: damaged ({error}); {_WAY_OUT}") from error


def _read_tensors(
    folder: str,
    config: Config,
    architecture: CheckpointArchitecture[Config],
    max_source_tokens: int,
) -> tuple[Config, dict[str, Tensor]]:
    """Reads the tensors and applies `max_source_tokens`, unless it is 0.

    Returns:
      The configuration with the source length, and the tensors by current name.
    """
    learned_positions = config.positions == "learned"
    if learned_positions and max_source_tokens > config.max_source_tokens:
        raise UsageError(
            f"{folder}: --max_source_tokens is {max_source_tokens}, "
            f"and this checkpoint has learned {config.max_source_tokens} positions; "
            "ask for no more, or leave it at 0 for all of them"
        )
    tensors = {
        current_name(name, architecture): tensor
        for name, tensor in read_tensors(folder).items()
    }
    if not max_source_tokens:
        return config, tensors
    if learned_positions:
        cut_positions(
            tensors,
            architecture,
            learned_positions=config.max_source_tokens,
            kept_positions=max_source_tokens,
        )
    return dataclasses.replace(config, max_source_tokens=max_source_tokens), tensors


def _with_output(
    config: TransformerConfig,
    tensors: dict[str, Tensor],
    architecture: CheckpointArchitecture[Any],
) -> TransformerConfig:
    """The configuration with a separate output layer where the tensors hold one.

    The embedding table in `tensors` is put under one name.
    """
    is_tied = join_embedding(tensors, architecture, is_tied=config.tied_output)
    if is_tied == config.tied_output:
        return config
    if config.scaled_output:
        *_, output = architecture.embedding
        raise DataError(
            f"{output} differs from the embedding table, and {CONFIG_FILE} scales the "
            "output as where they are one; if it was trained apart, say so there: "
            "tie_word_embeddings false"
        )
    # A separate output layer has its own bias.
    return dataclasses.replace(config, tied_output=is_tied, logits_bias=False)


@contextlib.contextmanager
def _naming(folder: str) -> Iterator[None]:
    """Puts the folder in front of the messages of errors."""
    try:
        yield
    except (DataError, UsageError) as error:
        raise DataError(f"{folder}: {error}") from error
