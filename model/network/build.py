"""Makes a network from its configuration."""

import keras

from model.config import NetworkConfig
from model.network.transformer import Transformer


def build_network(config: NetworkConfig, *, seed: int = 0, precision: str = "float32") -> Transformer:
    """A network with fresh weights; the same seed gives the same weights and the same dropout.

    Args:
      config: its shape.
      seed: of the weights and of dropout.
      precision: what the layers compute in: float32, mixed_bfloat16 or mixed_float16. Weights, softmax, norms and logits are float32.
    """
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(precision)
    try:
        keras.utils.set_random_seed(seed)
        network = Transformer(config, name="transformer")
        network.build()
    finally:
        keras.config.set_dtype_policy(before)
    return network
