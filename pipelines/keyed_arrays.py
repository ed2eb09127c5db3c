"""Files of numpy records in numbered groups, of which each group is read by itself.

    [records of group 0][records of group 3][index as JSON][length of the index]

The steps of a job hand keys to each other in such files: one task writes a group for
each of its readers, so nothing is shuffled through memory.
"""

import json
import zlib
from collections.abc import Mapping

import numpy as np

from precis.model import files
from precis.model.errors import DataError

_LENGTH_BYTES = 8


def write_groups(path: str, groups: Mapping[int, np.ndarray]) -> None:
    """Publishes a file; empty groups are left out.

    Args:
      path: the file.
      groups: structured arrays [N] by the number of the group.
    """
    index: dict[str, list[int]] = {}
    position = 0
    with files.write_aside(path) as file:
        for number, records in groups.items():
            content = records.tobytes()
            if content:
                file.write(content)
                index[str(number)] = [position, len(content), zlib.crc32(content)]
                position += len(content)
        described = json.dumps(index).encode()
        file.write(described)
        file.write(len(described).to_bytes(_LENGTH_BYTES, "little"))


def read_group(path: str, number: int, dtype: np.dtype) -> np.ndarray:
    """The records of one group; none where the file has no such group.

    Args:
      path: a file of `write_groups`.
      number: the group.
      dtype: that of the records.

    Raises:
      DataError: the file is damaged.
    """
    with files.open_read(path) as file:
        end = file.seek(0, 2) - _LENGTH_BYTES
        file.seek(max(end, 0))
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        if not 0 < length <= end:
            raise _damaged(path)
        file.seek(end - length)
        try:
            index = json.loads(file.read(length))
        except ValueError as error:
            raise _damaged(path) from error
        if str(number) not in index:
            return np.empty(0, dtype)
        start, size, checksum = index[str(number)]
        file.seek(start)
        content = file.read(size)
    if len(content) != size or zlib.crc32(content) != checksum:
        raise _damaged(path)
    return np.frombuffer(content, dtype)


def _damaged(path: str) -> DataError:
    return DataError(
        f"{path} is damaged; remove it and run the same command again, which writes it "
        "anew"
    )
