"""The weights of a network as the tensors of a checkpoint: `converters.weights` the
other way round.
"""

from collections.abc import Mapping

import numpy as np

from precis.model.bundle.converters.architecture import tensor_name
from precis.model.bundle.converters.checkpoint import ENCODER_DECODERS
from precis.model.bundle.exporters.architecture import position_count
from precis.model.network.config import TransformerConfig

# Tensors whose names stand without the prefix of the others.
_WITHOUT_PREFIX = ("final_logits_bias", "lm_head.weight")


def checkpoint_tensors(
    weights: Mapping[str, np.ndarray], config: TransformerConfig, model_type: str
) -> dict[str, np.ndarray]:
    """The tensors of a checkpoint by name.

    Args:
      weights: those of the network, by path.
      config: the shape of the network.
      model_type: that of `checkpoint_config`.
    """
    architecture = ENCODER_DECODERS[model_type]
    rows = position_count(config)
    tensors = {}
    for path, values in weights.items():
        name = tensor_name(path.split("/", 1)[1], architecture)
        leaf = path.rsplit("/", 1)[1]
        if leaf == "kernel":  # A checkpoint stores linear layers as [out, in].
            values = values.T
        elif leaf == "positions":
            values = _position_table(values, rows, architecture.first_position)
        elif name in architecture.optional:
            values = values[None]
        if not config.gated_feed_forward:
            name = _name_without_gate(name, architecture.older)
        tensors[name] = values
    table, *inputs, output = architecture.embedding
    is_t5 = model_type in ("t5", "mt5")
    if is_t5 and not config.scaled_output and output not in tensors:
        tensors[output] = tensors[table].copy()
    if not (is_t5 or config.tied_output):
        # BART then takes its inputs for separate tables too.
        tensors |= {name: tensors[table].copy() for name in inputs}
    if config.positions == "sinusoidal_halves":
        codes = _computed_positions(rows, config.width)
        for side in ("encoder", "decoder"):
            tensors[f"{side}.embed_positions.weight"] = codes.copy()
    return {
        name if name in _WITHOUT_PREFIX else architecture.prefix + name: (
            np.ascontiguousarray(values, "float32")
        )
        for name, values in sorted(tensors.items())
    }


def _name_without_gate(name: str, older: Mapping[str, str]) -> str:
    """The name that older T5 networks, which have no gate, give a tensor."""
    for end, current in older.items():
        if name.endswith(current):
            return name.removesuffix(current) + end
    return name


def _position_table(values: np.ndarray, rows: int, skipped: int) -> np.ndarray:
    """A table of positions with the rows that are never read.

    These are the first rows of BART, and the rows at the end of the shorter table of
    the two sides. They are zero.
    """
    table = np.zeros((rows + skipped, values.shape[1]), "float32")
    table[skipped : skipped + len(values)] = values
    return table


def _computed_positions(rows: int, width: int) -> np.ndarray:
    """The position codes of PEGASUS, which no weight of a network holds."""
    from precis.model.network.positions import sinusoidal_positions

    return sinusoidal_positions(rows, width, in_halves=True)
