"""The check that weights are finite numbers."""

from collections.abc import Iterable

import numpy as np

from precis.model.errors import DataError

# Values that are checked at once, so that a large tensor needs little more memory.
_BLOCK = 1 << 22


def check_finite(
    path: str, tensors: Iterable[tuple[str, np.ndarray]], *, way_out: str
) -> None:
    """Refuses weights with NaN or infinity, which would end every search in NaN.

    Args:
      path: the file of the weights, for the message.
      tensors: names and values.
      way_out: what to do about the file.

    Raises:
      DataError: naming the file and the first such tensor.
    """
    for name, values in tensors:
        flat = values.reshape(-1)
        for first in range(0, flat.size, _BLOCK):
            block = flat[first : first + _BLOCK]
            if not np.isfinite(block).all():
                kind = "NaN" if np.isnan(block).any() else "infinity"
                raise DataError(f"{path}: the tensor {name} holds {kind}; {way_out}")
