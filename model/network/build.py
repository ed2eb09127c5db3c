"""Makes a network from its configuration."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import keras

from precis.model.network.config import (
    DecoderOnlyConfig,
    EncoderConfig,
    ExtractorConfig,
    NetworkConfig,
    RecurrentConfig,
    TransformerConfig,
)
from precis.model.network.decoder_only import DecoderOnly
from precis.model.network.encoder import Encoder
from precis.model.network.extractor import Extractor
from precis.model.network.generator import Generator
from precis.model.network.recurrent import Recurrent
from precis.model.network.transformer import Transformer

Network = TypeVar("Network", bound=keras.Model)

# What each configuration describes, and the name of such a network: its weights' paths
# begin with it.
NETWORKS: Mapping[type[Any], tuple[Callable[..., Generator], str]] = {
    TransformerConfig: (Transformer, "transformer"),
    DecoderOnlyConfig: (DecoderOnly, "decoder_only"),
    RecurrentConfig: (Recurrent, "recurrent"),
}


def build_network(
    config: NetworkConfig, *, seed: int = 0, precision: str = "float32"
) -> Generator:
    """A network with fresh weights; the same seed gives the same weights and the same
    dropout.

    Args:
      config: its shape.
      seed: of the weights and of dropout.
      precision: what the layers compute in: float32, mixed_bfloat16 or mixed_float16.
          Weights, softmax, norms and logits are float32.
    """
    make, name = NETWORKS[type(config)]
    return _build(make, config, name=name, seed=seed, precision=precision)


def build_encoder(
    config: EncoderConfig, *, seed: int = 0, precision: str = "float32"
) -> Encoder:
    """An encoder with fresh weights; the arguments are those of `build_network`."""
    return _build(Encoder, config, name="encoder", seed=seed, precision=precision)


def build_extractor(config: ExtractorConfig, *, seed: int = 0) -> Extractor:
    """A network that scores sentences, with fresh weights; in float32, as it is small."""
    return _build(Extractor, config, name="extractor", seed=seed, precision="float32")


def _build(
    make: Callable[..., Network], config: Any, *, name: str, seed: int, precision: str
) -> Network:
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(precision)
    try:
        keras.utils.set_random_seed(seed)
        network = make(config, name=name)
        network.build()
    finally:
        keras.config.set_dtype_policy(before)
    return network
