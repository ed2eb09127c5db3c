"""The states between the blocks of an encoder.

Not part of `small_encoder_checkpoint`, which a process without TensorFlow imports.
"""

import numpy as np

from precis.model.network.layers import padding_mask, score_bias, source_tokens
from precis.model.network.transformer import Encoder


def states_of(encoder: Encoder, ids: np.ndarray) -> list[np.ndarray]:
    """The input of the first block and the output of each, float32 [B, S, D]."""
    bias = score_bias(padding_mask(ids))
    tokens = source_tokens(ids, encoder.config.pad_id)
    positions = np.arange(ids.shape[1], dtype="int32")
    all_states = [encoder.source_input(encoder.embedding(tokens), positions)]
    for block in encoder.encoder:
        states, _, _ = block(all_states[-1], bias)
        all_states.append(states)
    return [np.asarray(states) for states in all_states]
