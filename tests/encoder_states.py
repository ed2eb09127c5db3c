"""What enters and leaves each block of an encoder; apart from the small checkpoints,
which a process without TensorFlow writes.
"""

import numpy as np

from precis.model.network.encoder import Encoder
from precis.model.network.layers import padding_mask, score_bias


def states_of(encoder: Encoder, ids: np.ndarray) -> list[np.ndarray]:
    """What enters the first block and what leaves each, float32 [B, S, D]."""
    found, bias = (
        [encoder.source_input(encoder.embedding(ids))],
        score_bias(padding_mask(ids, encoder.config.pad_id)),
    )
    for block in encoder.encoder:
        states, _ = block(found[-1], bias)
        found.append(states)
    return [np.asarray(states) for states in found]
