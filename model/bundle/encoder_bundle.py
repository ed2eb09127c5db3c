"""A bundle of an encoder alone, to train other networks from; the encoder of a network
that writes serves as well.
"""

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from precis.model.bundle.network_bundle import (
    ABSTRACTIVE,
    ENCODER,
    has_source_tokenizer,
    open_files,
    open_tokenizer,
    open_weights,
    save_files,
)
from precis.model.errors import UsageError
from precis.model.network.architectures import read_config
from precis.model.network.config import EncoderConfig
from precis.model.tokenization.folder import (
    SOURCE_TOKENIZER_FOLDER,
    TOKENIZER_FOLDER,
    AnyTokenizer,
)

if TYPE_CHECKING:  # as in `bundle`
    from precis.model.network.encoder import Encoder


ENCODER_DECODER = "transformer"  # the architecture that has an encoder of its own


class EncoderBundle(NamedTuple):
    """An encoder and what cuts its text.

    Attributes:
      encoder, tokenizer: what they say.
      model_id: names the bundle, as in `Bundle`.
    """

    encoder: "Encoder"
    tokenizer: AnyTokenizer
    model_id: str


def save_encoder_bundle(
    folder: str,
    *,
    encoder: "Encoder",
    tokenizer: AnyTokenizer,
    provenance: dict[str, Any],
) -> str:
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


class OpenedEncoder(NamedTuple):
    """An encoder that no network was made for.

    Attributes:
      config: its shape.
      weights: by path; of a network that writes, also those of its decoder.
      tokenizer, model_id: as in `EncoderBundle`.
    """

    config: EncoderConfig
    weights: dict[str, np.ndarray]
    tokenizer: AnyTokenizer
    model_id: str


def open_encoder(folder: str) -> OpenedEncoder:
    """Reads an encoder: that of a bundle of one alone, or that of a network that
    writes.

    Raises:
      UsageError: the folder is no complete bundle of either kind.
      DataError: a file differs from the manifest.
    """
    kind, config, model_id = open_files(folder, ENCODER, ABSTRACTIVE)
    if (
        kind == ABSTRACTIVE
        and config.get("architecture", ENCODER_DECODER) != ENCODER_DECODER
    ):
        raise UsageError(
            f"{folder}: a network of the architecture {config['architecture']} has no encoder to take; name another bundle"
        )
    name = SOURCE_TOKENIZER_FOLDER if has_source_tokenizer(folder) else TOKENIZER_FOLDER
    shape = (
        EncoderConfig(**config["encoder"])
        if kind == ENCODER
        else read_config(ENCODER_DECODER, config["network"]).encoder
    )
    return OpenedEncoder(
        shape, open_weights(folder), open_tokenizer(folder, name), model_id
    )


def load_encoder_bundle(folder: str, *, precision: str = "float32") -> EncoderBundle:
    """Reads an encoder and makes its network.

    Args:
      folder, precision: as in `load_bundle`.

    Raises:
      UsageError, DataError: as `open_encoder`.
    """
    config, weights, tokenizer, model_id = open_encoder(folder)
    from precis.model.network.build import build_encoder

    encoder = build_encoder(config, precision=precision)
    by_path = {
        path.split("/", 1)[1]: weight for path, weight in weights.items()
    }  # without the network's own name
    for weight in encoder.weights:
        weight.assign(by_path[weight.path.split("/", 1)[1]])
    return EncoderBundle(encoder, tokenizer, model_id)
