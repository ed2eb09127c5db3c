"""Builds networks from their configurations."""

from collections.abc import Callable, Mapping
from typing import Any

import keras

from precis.model.network.config import (
    DecoderOnlyConfig,
    EncoderConfig,
    RecurrentConfig,
    SelectorConfig,
    TransformerConfig,
)
from precis.model.network.decoder_only import DecoderOnly
from precis.model.network.recurrent import Recurrent
from precis.model.network.selector import Selector
from precis.model.network.transformer import Encoder, Transformer

# By configuration: the class of its network, and the name with which the paths of its
# weights begin.
_NETWORKS: Mapping[type[Any], tuple[Callable[..., Any], str]] = {
    TransformerConfig: (Transformer, "transformer"),
    DecoderOnlyConfig: (DecoderOnly, "decoder_only"),
    RecurrentConfig: (Recurrent, "recurrent"),
    EncoderConfig: (Encoder, "encoder"),
    SelectorConfig: (Selector, "extractor"),
}


def build_network(config: Any, *, seed: int = 0, precision: str = "float32") -> Any:
    """Builds a network with random weights.

    Args:
      config: its shape.
      seed: the seed of weights and dropout.
      precision: what the layers compute in: float32, mixed_bfloat16 or mixed_float16.
          Weights, softmax, norms and logits are always float32.

    Returns:
      A `Generator` for a `NetworkConfig`, otherwise an `Encoder` or a `Selector`.
    """
    make, name = _NETWORKS[type(config)]
    policy_before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(precision)
    try:
        keras.utils.set_random_seed(seed)
        network = make(config, name=name)
        network.build()
    finally:
        keras.config.set_dtype_policy(policy_before)
    return network
