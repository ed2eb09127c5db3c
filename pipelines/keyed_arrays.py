"""Files of numpy records in numbered groups, of which each group is read by itself.

    [records of group 0][records of group 3][index as JSON][its checksum, its length]

The steps of a job hand keys to each other in such files: one task writes a group for
each of its readers, so nothing is shuffled through memory.
"""

import json
import struct
import zlib
from collections.abc import Mapping

import numpy as np

from precis.model import files
from precis.model.errors import DataError

# The end of a file: the CRC-32 of the index, and its length in bytes.
_TRAILER = struct.Struct("<IQ")


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
        file.write(_TRAILER.pack(zlib.crc32(described), len(described)))


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
        end = file.seek(0, 2) - _TRAILER.size
        if end < 0:
            raise _damaged(path)
        file.seek(end)
        checksum, length = _TRAILER.unpack(file.read())
        if not 0 < length <= end:
            raise _damaged(path)
        file.seek(end - length)
        described = file.read(length)
        # A damaged index may name other groups, which would seem to be empty.
        if zlib.crc32(described) != checksum:
            raise _damaged(path)
        index = json.loads(described)
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
