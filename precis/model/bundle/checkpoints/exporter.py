"""Writes a network as a checkpoint of transformers that computes the same.

A network equals BART, PEGASUS or T5 if the config.json that is written for it is read
back as the same network. Lengths, dropout and names may differ.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from precis.model.bundle.checkpoints.importer import FAMILIES
from precis.model.errors import DataError, UsageError
from precis.model.network.config import NetworkConfig, StackConfig, TransformerConfig
from precis.model.search.config import SpecialTokens

_WAY_OUT = (
    "use `precis summarize`, or train a network with `layout=bart` `pointer=False`, or "
    "`layout=t5` `pointer=False`"
)
# Fields that do not change what a network computes from a text that it can read, or
# that a checkpoint states by its tensors.
_FREE_FIELDS = {
    *("decoder_stack", "dropout", "logits_bias", "tied_output"),
    *("max_source_tokens", "max_target_tokens"),
}


def checkpoint_settings(
    config: NetworkConfig, special: SpecialTokens, *, came_from: str = ""
) -> dict[str, Any]:
    """The config.json of a network.

    Args:
      config: the configuration of the network.
      special: the special tokens of the network.
      came_from: the model_type of an imported network, which is tried first.

    Raises:
      UsageError: transformers cannot compute this network.
    """
    if not isinstance(config, TransformerConfig):
        raise UsageError(
            "only an encoder-decoder Transformer can be exported to transformers, but "
            f"this network has a {type(config).__name__}; {_WAY_OUT}"
        )
    differences = {}
    writers = [
        name
        for name, family in FAMILIES.items()
        if family.class_name and family.fields and isinstance(config, family.config)
    ]
    for model_type in sorted(writers, key=lambda name: name != came_from):
        family = FAMILIES[model_type]
        settings = {
            "architectures": [family.class_name],
            "model_type": model_type,
            "is_encoder_decoder": True,
            "dtype": "float32",
            "use_cache": True,
            "eos_token_id": special.end_id,
            "decoder_start_token_id": special.start_id,
            # Without these lines transformers would force the end token of BART.
            "forced_bos_token_id": None,
            "forced_eos_token_id": None,
            **family.settings(config),
        }
        differences[family.title] = _differences(config, settings)
        if not differences[family.title]:
            return settings
    title = min(differences, key=lambda title: len(differences[title]))
    raise UsageError(
        f"transformers has no equal network; the nearest is {title}, with "
        f"differences: {', '.join(differences[title])}; {_WAY_OUT}"
    )


def _differences(config: TransformerConfig, settings: Mapping[str, Any]) -> list[str]:
    """The differences between a network and the network in a config.json."""
    try:
        read: Any = FAMILIES[settings["model_type"]].network(settings)
    except (DataError, UsageError) as error:
        return [str(error)]
    differences: list[str] = []
    for side, ours, theirs in (
        ("", config, read),
        ("decoder ", config.decoder, read.decoder),
    ):
        there = _computation(theirs)
        for name, value in _computation(ours).items():
            text = f"{name} is {value} here, but {there.get(name)} there"
            # A difference of both sides is listed once.
            if value != there.get(name) and text not in differences:
                differences.append(side + text)
    if config.scaled_output and not config.tied_output:
        differences.append("a separate output layer is scaled here, but not there")
    return differences


def _computation(stack: StackConfig) -> dict[str, Any]:
    """The fields that determine what a network or a stack computes."""
    values = {
        field.name: getattr(stack, field.name)
        for field in dataclasses.fields(stack)
        if field.name not in _FREE_FIELDS
    }
    values["head_width"] = stack.head_width or stack.width // stack.heads
    if stack.positions != "relative":  # then these have no effect
        del values["relative_buckets"], values["relative_distance"]
    return values


def checkpoint_tensors(
    weights: Mapping[str, np.ndarray],
    config: TransformerConfig,
    settings: Mapping[str, Any],
) -> dict[str, np.ndarray]:
    """The tensors of a checkpoint by name.

    Args:
      weights: the weights of the network, by path.
      config: the configuration of the network.
      settings: the `checkpoint_settings` of the network.
    """
    family = FAMILIES[settings["model_type"]]
    skipped = family.first_position
    # Both sides have the same number of positions. Rows that are never read are zero:
    # the first rows of BART, and the last rows of the shorter side.
    rows = settings.get("max_position_embeddings", 0)
    tensors = {}
    for path, values in weights.items():
        name = family.tensor_name(path)
        leaf = path.rsplit("/", 1)[1]
        if leaf == "kernel":  # A checkpoint stores linear layers as [out, in].
            values = values.T
        elif leaf == "positions":
            after = rows - len(values)
            values = np.pad(values, ((skipped, after), (0, 0)))
        elif name in family.optional:
            values = values[None]
        tensors[name] = values
    table, *inputs, output = family.embedding
    if config.positions == "relative":
        if not config.scaled_output and output not in tensors:
            tensors[output] = tensors[table].copy()
    elif not config.tied_output:
        # BART then expects separate tables for the inputs too.
        tensors |= {name: tensors[table].copy() for name in inputs}
    if config.positions == "sinusoidal_halves":
        # The position codes of PEGASUS are not weights of a network.
        from precis.model.network.positions import sinusoidal_positions

        for side in ("encoder", "decoder"):
            tensors[f"{side}.embed_positions.weight"] = sinusoidal_positions(
                rows, config.width, in_halves=True
            ).copy()
    has_gate = config.gated_feed_forward
    return {
        family.stored_name(name, has_gate=has_gate): (
            np.ascontiguousarray(values, "float32")
        )
        for name, values in sorted(tensors.items())
    }
