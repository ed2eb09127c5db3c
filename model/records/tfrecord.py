"""The framing of TFRecord files: length, checksum, content, checksum."""

import struct
from collections.abc import Iterator
from typing import IO

import google_crc32c

from precis.model.errors import DataError

_LENGTH, _CRC = struct.Struct("<Q"), struct.Struct("<I")


def frame(record: bytes) -> bytes:
    """A record as it stands in a TFRecord file: length, its checksum, the record, its
    checksum.
    """
    length = _LENGTH.pack(len(record))
    return b"".join(
        (length, _CRC.pack(_masked_crc(length)), record, _CRC.pack(_masked_crc(record)))
    )


def _masked_crc(content: bytes) -> int:
    """CRC-32C, rotated and shifted as TFRecord files have it, so that a checksum of
    checksums stays a good one.
    """
    crc = google_crc32c.value(content)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def read_frames(file: IO[bytes], *, name: str = "records") -> Iterator[bytes]:
    """The records of a TFRecord file, without TensorFlow.

    Args:
      file: open for reading, at its start.
      name: the file's path, for messages.

    Raises:
      DataError: a checksum is wrong or the file ends within a record.
    """
    position = 0
    while head := file.read(12):
        if len(head) < 12:
            raise DataError(
                f"{name}: the file ends within a record, at byte {position}; write it again with `precis prepare`"
            )
        (length,) = _LENGTH.unpack_from(head)
        if _masked_crc(head[:8]) != _CRC.unpack_from(head, 8)[0]:
            raise DataError(
                f"{name}: damaged at byte {position} (checksum of the length); write it again with `precis prepare`"
            )
        body = file.read(length + 4)
        if len(body) < length + 4:
            raise DataError(
                f"{name}: the file ends within a record, at byte {position}; write it again with `precis prepare`"
            )
        record = body[:length]
        if _masked_crc(record) != _CRC.unpack_from(body, length)[0]:
            raise DataError(
                f"{name}: damaged at byte {position} (checksum of the record); write it again with `precis prepare`"
            )
        yield record
        position += 12 + len(body)
