"""Files of numpy records in numbered groups, of which each group is read by itself.

    [records of group 0][records of group 3][index, by group][its checksum, its length]

The steps of a job hand keys to each other in such files: one task writes a group for
each of its readers, so nothing is shuffled through memory.
"""

import struct
import zlib
from collections.abc import Mapping

import numpy as np

from precis.model import files
from precis.model.errors import DataError

# The end of a file: the CRC-32 of the index, and its length in bytes.
_TRAILER = struct.Struct("<IQ")
# Thousands of tasks read one group each of thousands of files: the index is searched,
# and not parsed.
_MARK = b"index"  # zeros are no index without groups
_INDEX = np.dtype(
    [("group", "<u4"), ("start", "<u8"), ("size", "<u8"), ("checksum", "<u4")]
)


def write_groups(path: str, groups: Mapping[int, np.ndarray]) -> None:
    """Publishes a file; empty groups are left out.

    Args:
      path: the file.
      groups: structured arrays [N] by the number of the group.
    """
    index: list[tuple[int, int, int, int]] = []
    position = 0
    with files.write_aside(path) as file:
        for number in sorted(groups):
            content = groups[number].tobytes()
            if content:
                file.write(content)
                index.append((number, position, len(content), zlib.crc32(content)))
                position += len(content)
        described = _MARK + np.array(index, _INDEX).tobytes()
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
        if not len(_MARK) <= length <= end:
            raise _damaged(path)
        file.seek(end - length)
        described = file.read(length)
        # A damaged index may name other groups, which would seem to be empty.
        if zlib.crc32(described) != checksum:
            raise _damaged(path)
        index = np.frombuffer(described, _INDEX, offset=len(_MARK))
        place = int(np.searchsorted(index["group"], number))
        if place == len(index) or index["group"][place] != number:
            return np.empty(0, dtype)
        _, start, size, checksum = index[place].tolist()
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
