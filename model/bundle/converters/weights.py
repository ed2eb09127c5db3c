"""Every tensor of a checkpoint in its place in a network: found by its name, checked,
and turned round where it is stored the other way.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from precis.model.bundle.converters.architecture import (
    Architecture,
    is_ignored,
    tensor_name,
)
from precis.model.bundle.converters.tensors import Tensor
from precis.model.errors import DataError

# TensorFlow takes seconds to import: tensors that do not fit together are refused
# without it.
if TYPE_CHECKING:
    from precis.model.network.encoder import Encoder
    from precis.model.network.transformer import Transformer


def join_embedding(
    found: dict[str, Tensor], architecture: Architecture[Any], *, is_tied: bool
) -> bool:
    """Finds the embedding table of an encoder-decoder, whichever of its names it stands
    under, and puts it under the first.

    Args:
      found: the tensors by their names of today; the repeats of the table are taken
          out.
      architecture: gives the names.
      is_tied: whether config.json says that the output layer reads the table, too.

    Returns:
      Whether the output layer reads the table: not if it has a tensor of its own.

    Raises:
      DataError: there are several tables.
    """
    table, *inputs, output = architecture.embedding
    is_tied = is_tied and not (
        output in found
        and any(
            found[name] != found[output] for name in (table, *inputs) if name in found
        )
    )
    repeats = [
        name for name in ((*inputs, output) if is_tied else inputs) if name in found
    ]
    if not repeats:
        return is_tied
    first = table if is_tied and table in found else repeats[0]
    if others := [name for name in repeats if found[name] != found[first]]:
        raise DataError(
            f"{' and '.join([first, *others])} differ, and a network here has one embedding for source and target; it cannot be imported"
        )
    found[table] = found[first]
    for name in repeats:
        del found[name]
    return is_tied


def cut_positions(
    found: dict[str, Tensor],
    architecture: Architecture[Any],
    *,
    learned: int,
    kept: int,
) -> None:
    """Leaves the first positions of a source's table, if it is stored.

    Args:
      found: the tensors by their names of today.
      architecture: gives the name.
      learned: the positions that config.json speaks of; a table with another number of
          them is left as it is, to be refused.
      kept: how many are left.
    """
    name, skipped = (
        tensor_name("source_input/positions", architecture),
        architecture.first_position,
    )
    if name in found and found[name].shape[:1] == (learned + skipped,):
        tensor, rows = found[name], kept + skipped
        size = len(tensor.content) // tensor.shape[0]
        found[name] = Tensor(
            tensor.format, (rows, *tensor.shape[1:]), tensor.content[: rows * size]
        )


def assign(
    network: "Transformer | Encoder",
    found: Mapping[str, Tensor],
    architecture: Architecture[Any],
) -> None:
    """Puts every tensor in its place.

    Args:
      network: gets them.
      found: the tensors by their names of today.
      architecture: gives the names.

    Raises:
      DataError: one is missing, unexpected or of another shape.
    """
    needed = {
        weight.path: tensor_name(weight.path.split("/", 1)[1], architecture)
        for weight in network.weights
    }
    _check_names(found, {*needed.values(), *architecture.added.values()}, architecture)
    for weight in network.weights:
        name = needed[weight.path]
        if name in found:
            weight.assign(_laid_out(weight, name, found, architecture))
        else:
            weight.assign(np.zeros(weight.shape, "float32"))


def _check_names(
    found: Mapping[str, Tensor], needed: set[str], architecture: Architecture[Any]
) -> None:
    """Refuses a checkpoint with other tensors than a network needs."""
    if missing := needed - found.keys() - set(architecture.optional):
        raise DataError(
            f"the checkpoint lacks {_listed(missing)}, which config.json asks for; download both again"
        )
    others = found.keys() - needed - set(architecture.optional)
    if unexpected := [name for name in others if not is_ignored(name, architecture)]:
        raise DataError(
            f"the checkpoint holds {_listed(unexpected)}, which no network of this kind has; take one of the plain architecture"
        )


def _laid_out(
    weight: Any, name: str, found: Mapping[str, Tensor], architecture: Architecture[Any]
) -> np.ndarray:
    """A tensor as its weight: linear layers are stored [out, in], some position tables
    begin with rows that are never read.
    """
    leaf, shape = weight.path.rsplit("/", 1)[1], tuple(weight.shape)
    expected, skipped = shape, 0
    if leaf == "kernel":
        expected = shape[::-1]
    elif leaf == "positions":
        skipped = architecture.first_position
        expected = (shape[0] + skipped, shape[1])
    elif name in architecture.optional:
        expected = (1, *shape)
    numbers = _numbers(name, found[name], expected)
    if name in architecture.added:
        other = architecture.added[name]
        numbers = (
            numbers
            + _numbers(other, found[other], (found[other].shape[0], *expected[1:]))[0]
        )
    return numbers.T if leaf == "kernel" else numbers[skipped:].reshape(shape)


def _numbers(name: str, tensor: Tensor, expected: tuple[int, ...]) -> np.ndarray:
    """A tensor's values, float32, if it has the shape that is expected."""
    if tensor.shape != expected:
        raise DataError(
            f"{name} has the shape {list(tensor.shape)}, and config.json asks for {list(expected)}; download both again"
        )
    try:
        return tensor.numbers()
    except ValueError as error:
        raise DataError(
            f"{name}: {error}, and only floating-point weights of 16, 32 or 64 bits are read; take the checkpoint in one"
        ) from error


def _listed(names: Iterable[str]) -> str:
    """Some names and how many more there are."""
    ordered = sorted(names)
    shown = ", ".join(ordered[:5])
    return f"{shown} and {len(ordered) - 5} more" if len(ordered) > 5 else shown
