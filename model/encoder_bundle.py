"""A bundle of an encoder alone, to train other networks from; the encoder of a network that writes serves as well."""

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

from model.bundle import ABSTRACTIVE, ENCODER, open_files, open_tokenizer, open_weights, save_files
from model.config import EncoderConfig, NetworkConfig
from model.foreign.tokenizer import ForeignTokenizer
from model.tokenizer import Tokenizer

if TYPE_CHECKING:  # as in `bundle`
    from model.network.encoder import Encoder


class EncoderBundle(NamedTuple):
    """An encoder and what cuts its text.

    Attributes:
      encoder, tokenizer: what they say.
      model_id: names the bundle, as in `Bundle`.
    """

    encoder: "Encoder"
    tokenizer: Tokenizer | ForeignTokenizer
    model_id: str


def save_encoder_bundle(folder: str, *, encoder: "Encoder", tokenizer: Tokenizer | ForeignTokenizer, provenance: dict[str, Any]) -> str:
    """Writes a bundle of an encoder alone; the arguments are those of `save_bundle`.

    Returns:
      The model_id.
    """
    return save_files(
        folder,
        kind=ENCODER,
        config={"encoder": dataclasses.asdict(encoder.config)},
        weights={weight.path: weight.numpy() for weight in encoder.weights},
        provenance=provenance,
        tokenizer=tokenizer,
    )


def load_encoder_bundle(folder: str, *, precision: str = "float32") -> EncoderBundle:
    """Reads an encoder: that of a bundle of one alone, or that of a network that writes.

    Args:
      folder, precision: as in `load_bundle`.

    Raises:
      UsageError: the folder is no complete bundle of either kind.
      DataError: a file differs from the manifest.
    """
    kind, config, model_id = open_files(folder, ENCODER, ABSTRACTIVE)
    tokenizer, weights = open_tokenizer(folder), open_weights(folder)
    from model.network.build import build_encoder

    shape = EncoderConfig(**config["encoder"]) if kind == ENCODER else NetworkConfig(**config["network"]).encoder
    encoder = build_encoder(shape, precision=precision)
    by_path = {path.split("/", 1)[1]: weight for path, weight in weights.items()}  # without the network's own name
    for weight in encoder.weights:
        weight.assign(by_path[weight.path.split("/", 1)[1]])
    return EncoderBundle(encoder, tokenizer, model_id)
