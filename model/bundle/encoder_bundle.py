"""The bundle of an encoder alone, which other networks are trained from.

The files are those of every bundle (`manifest`); config.json holds the configuration
under `encoder`. The bundle of an encoder-decoder network can be opened in its place:
then its encoder is taken.
"""

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from precis.model.bundle.manifest import (
    ABSTRACTIVE,
    ENCODER,
    has_source_tokenizer,
    naming_config,
    open_bundle_config,
    open_tokenizer,
    open_weights,
    save_bundle_files,
)
from precis.model.errors import UsageError
from precis.model.network.architectures import read_config
from precis.model.network.config import EncoderConfig
from precis.model.tokenization.folder import (
    SOURCE_TOKENIZER_FOLDER,
    TOKENIZER_FOLDER,
    AnyTokenizer,
)

# TensorFlow takes seconds to import, and only `load_encoder_bundle` needs it.
if TYPE_CHECKING:
    from precis.model.network.encoder import Encoder

# The only architecture that has a separate encoder.
ENCODER_DECODER = "transformer"


class EncoderBundle(NamedTuple):
    """An encoder and its tokenizer.

    Attributes:
      encoder: the encoder with its weights.
      tokenizer: the tokenizer of its text.
      model_id: names the bundle, as in `BundleConfig`.
    """

    encoder: "Encoder"
    tokenizer: AnyTokenizer
    model_id: str


class StoredEncoder(NamedTuple):
    """An encoder as a bundle stores it, before any Keras layer is built.

    Attributes:
      config: the configuration of the encoder.
      weights: by path. The bundle of an encoder-decoder also holds decoder weights.
      tokenizer, model_id: as in `EncoderBundle`.
    """

    config: EncoderConfig
    weights: dict[str, np.ndarray]
    tokenizer: AnyTokenizer
    model_id: str


def save_encoder_bundle(
    folder: str,
    *,
    encoder: "Encoder",
    tokenizer: AnyTokenizer,
    provenance: dict[str, Any],
) -> str:
    """Writes the bundle of an encoder; the arguments are those of `save_bundle`.

    Returns:
      The model_id.
    """
    return save_bundle_files(
        folder,
        kind=ENCODER,
        config={"encoder": dataclasses.asdict(encoder.config)},
        weights={weight.path: weight.numpy() for weight in encoder.weights},
        provenance=provenance,
        tokenizer=tokenizer,
    )


def open_encoder(folder: str) -> StoredEncoder:
    """Reads the encoder of a bundle: of an encoder alone, or of an encoder-decoder.

    Raises:
      UsageError: the folder is no complete bundle of either kind.
      DataError: a file differs from the manifest.
    """
    kind, config, model_id = open_bundle_config(folder, ENCODER, ABSTRACTIVE)
    architecture = config.get("architecture", ENCODER_DECODER)
    if kind == ABSTRACTIVE and architecture != ENCODER_DECODER:
        raise UsageError(
            f"{folder}: a network of the architecture {architecture} "
            "has no encoder to take; name another bundle"
        )
    with naming_config(folder):
        if kind == ENCODER:
            encoder_config = EncoderConfig(**config["encoder"])
        else:
            encoder_config = read_config(ENCODER_DECODER, config["network"]).encoder
    name = SOURCE_TOKENIZER_FOLDER if has_source_tokenizer(folder) else TOKENIZER_FOLDER
    return StoredEncoder(
        config=encoder_config,
        weights=open_weights(folder),
        tokenizer=open_tokenizer(folder, name),
        model_id=model_id,
    )


def load_encoder_bundle(folder: str, *, precision: str = "float32") -> EncoderBundle:
    """Reads the encoder of a bundle and builds its layers.

    Args:
      folder: the bundle, as in `open_encoder`.
      precision: what the layers compute in, as in `build_network`.

    Raises:
      UsageError, DataError: as `open_encoder`.
    """
    stored = open_encoder(folder)
    from precis.model.network.build import build_network

    with naming_config(folder):
        encoder = build_network(stored.config, precision=precision)
        # The path of a weight begins with the name of its network, which differs
        # between the bundle of an encoder and that of an encoder-decoder.
        weights = {
            path.split("/", 1)[1]: weight for path, weight in stored.weights.items()
        }
        for weight in encoder.weights:
            weight.assign(weights[weight.path.split("/", 1)[1]])
    return EncoderBundle(encoder, stored.tokenizer, stored.model_id)
