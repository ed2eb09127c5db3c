"""Assigns the tensors of a checkpoint to the weights of a network.

Each tensor is looked up by its current name, checked, and transposed where a checkpoint
stores it the other way round.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from precis.model.bundle.converters.architecture import (
    CheckpointArchitecture,
    is_ignored,
    tensor_name,
)
from precis.model.bundle.converters.tensors import Tensor
from precis.model.errors import DataError

# TensorFlow takes seconds to import. Tensors that do not fit together are refused
# earlier.
if TYPE_CHECKING:
    from precis.model.network.encoder import Encoder
    from precis.model.network.transformer import Transformer


def join_embedding(
    tensors: dict[str, Tensor],
    architecture: CheckpointArchitecture[Any],
    *,
    is_tied: bool,
) -> bool:
    """Puts the embedding table of an encoder-decoder under its first name.

    Args:
      tensors: by current name. The copies of the table are removed.
      architecture: gives the names of the table.
      is_tied: whether config.json says that the output layer is the embedding table.

    Returns:
      Whether the output layer is the table, because no other tensor is stored for it.

    Raises:
      DataError: the copies of the table differ.
    """
    table, *inputs, output = architecture.embedding
    if is_tied and output in tensors:
        is_tied = all(
            tensors[name] == tensors[output]
            for name in (table, *inputs)
            if name in tensors
        )
    copies = [*inputs, output] if is_tied else inputs
    stored = [name for name in copies if name in tensors]
    if not stored:
        return is_tied
    first = table if is_tied and table in tensors else stored[0]
    others = [name for name in stored if tensors[name] != tensors[first]]
    if others:
        raise DataError(
            f"{' and '.join([first, *others])} differ, and a network here has one "
            "embedding for source and target; it cannot be imported"
        )
    tensors[table] = tensors[first]
    for name in stored:
        del tensors[name]
    return is_tied


def cut_positions(
    tensors: dict[str, Tensor],
    architecture: CheckpointArchitecture[Any],
    *,
    learned_positions: int,
    kept_positions: int,
) -> None:
    """Reduces the position table of the source, if there is one, to its first rows.

    Args:
      tensors: by current name.
      architecture: gives the name of the table.
      learned_positions: the number of positions in config.json. A table with another
          number stays as it is, and `assign` refuses it.
      kept_positions: the number of positions that stay.
    """
    name = tensor_name("source_input/positions", architecture)
    skipped = architecture.first_position
    if name not in tensors:
        return
    tensor = tensors[name]
    if tensor.shape[:1] != (learned_positions + skipped,):
        return
    rows = kept_positions + skipped
    row_bytes = len(tensor.content) // tensor.shape[0]
    tensors[name] = Tensor(
        tensor.format, (rows, *tensor.shape[1:]), tensor.content[: rows * row_bytes]
    )


def assign(
    network: "Transformer | Encoder",
    tensors: Mapping[str, Tensor],
    architecture: CheckpointArchitecture[Any],
) -> None:
    """Sets all weights of a network from the tensors of a checkpoint.

    Args:
      network: the network with its weights built.
      tensors: by current name.
      architecture: gives the names.

    Raises:
      DataError: a tensor is missing, unexpected or of another shape.
    """
    names = {
        weight.path: tensor_name(weight.path.split("/", 1)[1], architecture)
        for weight in network.weights
    }
    needed = {*names.values(), *architecture.added.values()}
    _check_names(tensors, needed, architecture)
    for weight in network.weights:
        name = names[weight.path]
        if name in tensors:
            weight.assign(_weight_values(weight, name, tensors, architecture))
        else:
            weight.assign(np.zeros(weight.shape, "float32"))


def _check_names(
    tensors: Mapping[str, Tensor],
    needed: set[str],
    architecture: CheckpointArchitecture[Any],
) -> None:
    """Refuses a checkpoint that lacks tensors or holds unknown ones."""
    missing = needed - tensors.keys() - set(architecture.optional)
    if missing:
        raise DataError(
            f"the checkpoint lacks {_listed(missing)}, which config.json asks for; "
            "download both again"
        )
    others = tensors.keys() - needed - set(architecture.optional)
    unexpected = [name for name in others if not is_ignored(name, architecture)]
    if unexpected:
        raise DataError(
            f"the checkpoint holds {_listed(unexpected)}, which no network of this "
            "kind has; take one of the plain architecture"
        )


def _weight_values(
    weight: Any,
    name: str,
    tensors: Mapping[str, Tensor],
    architecture: CheckpointArchitecture[Any],
) -> np.ndarray:
    """The values of a weight, float32, in the shape of the weight.

    A checkpoint stores linear layers as [out, in]. Its position tables may begin with
    rows that are never read.
    """
    leaf = weight.path.rsplit("/", 1)[1]
    shape = tuple(weight.shape)
    skipped = architecture.first_position if leaf == "positions" else 0
    if leaf == "kernel":
        expected = shape[::-1]
    elif leaf == "positions":
        expected = (shape[0] + skipped, shape[1])
    elif name in architecture.optional:
        expected = (1, *shape)
    else:
        expected = shape
    values = _values(name, tensors[name], expected)
    if name in architecture.added:
        other = architecture.added[name]
        rows = tensors[other].shape[0]
        values = values + _values(other, tensors[other], (rows, *expected[1:]))[0]
    return values.T if leaf == "kernel" else values[skipped:].reshape(shape)


def _values(name: str, tensor: Tensor, expected: tuple[int, ...]) -> np.ndarray:
    """The values of a tensor, float32, if it has the expected shape."""
    if tensor.shape != expected:
        raise DataError(
            f"{name} has the shape {list(tensor.shape)}, and config.json asks for "
            f"{list(expected)}; download both again"
        )
    try:
        return tensor.numbers()
    except ValueError as error:
        raise DataError(
            f"{name}: {error}, and only floating-point weights of 16, 32 or 64 bits "
            "are read; take the checkpoint in one"
        ) from error


def _listed(names: Iterable[str]) -> str:
    """At most five of the names, and the number of the others."""
    ordered = sorted(names)
    text = ", ".join(ordered[:5])
    return f"{text} and {len(ordered) - 5} more" if len(ordered) > 5 else text
