"""Builds networks from their configurations."""

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

Model = TypeVar("Model", bound=keras.Model)

# The network of each configuration and its name, with which the paths of its weights
# begin.
_NETWORKS: Mapping[type[Any], tuple[Callable[..., Generator], str]] = {
    TransformerConfig: (Transformer, "transformer"),
    DecoderOnlyConfig: (DecoderOnly, "decoder_only"),
    RecurrentConfig: (Recurrent, "recurrent"),
}


def build_network(
    config: NetworkConfig, *, seed: int = 0, precision: str = "float32"
) -> Generator:
    """Builds a network with fresh weights; a seed fixes the weights and the dropout.

    Args:
      config: its shape.
      seed: of the weights and of dropout.
      precision: what the layers compute in: float32, mixed_bfloat16 or mixed_float16.
          Weights, softmax, norms and logits are float32.
    """
    make, name = _NETWORKS[type(config)]
    return _build(make, config, name=name, seed=seed, precision=precision)


def build_encoder(
    config: EncoderConfig, *, seed: int = 0, precision: str = "float32"
) -> Encoder:
    """Builds an encoder with fresh weights; the arguments are those of
    `build_network`.
    """
    return _build(Encoder, config, name="encoder", seed=seed, precision=precision)


def build_extractor(config: ExtractorConfig, *, seed: int = 0) -> Extractor:
    """Builds the network that scores sentences, with fresh weights and in float32."""
    return _build(Extractor, config, name="extractor", seed=seed, precision="float32")


def _build(
    make: Callable[..., Model], config: Any, *, name: str, seed: int, precision: str
) -> Model:
    policy_before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(precision)
    try:
        keras.utils.set_random_seed(seed)
        network = make(config, name=name)
        network.build()
    finally:
        keras.config.set_dtype_policy(policy_before)
    return network
