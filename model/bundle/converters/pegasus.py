"""PEGASUS (Zhang et al. 2020).

A pre-norm Transformer with sinusoidal positions, all sines before all cosines. Its
tensors have the names of those of BART.
"""

from collections.abc import Mapping
from typing import Any

from precis.model.bundle.converters.bart import BART, sized_config
from precis.model.network.config import TransformerConfig


def pegasus_config(settings: Mapping[str, Any]) -> TransformerConfig:
    """The network that a config.json describes."""
    return sized_config(
        settings,
        pad_id=settings.get("pad_token_id", 0),
        positions="sinusoidal_halves",
        norm_first=True,
    )


PEGASUS = BART._replace(
    network=pegasus_config,
    names={
        **BART.names,
        "encoder_norm": "encoder.layer_norm",
        "decoder_norm": "decoder.layer_norm",
    },
    # Sinusoidal positions are computed, not read.
    ignored=("encoder.embed_positions.", "decoder.embed_positions."),
)
