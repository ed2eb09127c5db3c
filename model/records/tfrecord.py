"""The framing of records in a TFRecord file.

8 bytes    length of the record, little-endian
4 bytes    masked CRC-32C of these 8 bytes
length     the record
4 bytes    masked CRC-32C of the record
"""

import struct
from collections.abc import Iterator
from typing import IO

import google_crc32c

from precis.model.errors import DataError

_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")


def frame(record: bytes) -> bytes:
    """A record with its length and its checksums, as a TFRecord file holds it."""
    length = _LENGTH.pack(len(record))
    return b"".join(
        (length, _CRC.pack(_masked_crc(length)), record, _CRC.pack(_masked_crc(record)))
    )


def _masked_crc(content: bytes) -> int:
    """CRC-32C, rotated and shifted as TFRecord files define it.

    The mask keeps the checksum useful for content that itself holds checksums.
    """
    crc = google_crc32c.value(content)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def read_frames(file: IO[bytes], *, name: str = "records") -> Iterator[bytes]:
    """Reads the records of a TFRecord file, without TensorFlow.

    Args:
      file: open for reading, at its start.
      name: the path of the file, for messages.

    Raises:
      DataError: a checksum is wrong, or the file ends within a record.
    """
    position = 0
    while head := file.read(12):
        if len(head) < 12:
            raise _truncated(name, position)
        (length,) = _LENGTH.unpack_from(head)
        if _masked_crc(head[:8]) != _CRC.unpack_from(head, 8)[0]:
            raise _damaged(name, position, "length")
        body = file.read(length + 4)
        if len(body) < length + 4:
            raise _truncated(name, position)
        record = body[:length]
        if _masked_crc(record) != _CRC.unpack_from(body, length)[0]:
            raise _damaged(name, position, "record")
        yield record
        position += 12 + len(body)


def _truncated(name: str, position: int) -> DataError:
    return DataError(
        f"{name}: the file ends within a record, at byte {position}; "
        "write it again with `precis prepare`"
    )


def _damaged(name: str, position: int, part: str) -> DataError:
    return DataError(
        f"{name}: damaged at byte {position} (checksum of the {part}); "
        "write it again with `precis prepare`"
    )
