"""One training record as a `tf.train.Example`.

A record holds these features; in this example, tokens of BART are shown for their ids:

    document_id    bytes [1]   9f2c...
    source         int64 [S]   <s> Rain Ġfell Ġon ĠMonday </s>
    target         int64 [T]   <s> It Ġrained .
    source_tokens  int64 [1]   845
    highlights     bytes [1]   It rained.

A text that is not English also has its language:

    language       bytes [1]   de

The source is cut at max_source_tokens and includes the special tokens that an imported
tokenizer puts around a text; `source_tokens` is its length before the cut. The target
is cut at max_target_tokens and has no special tokens at its end. `highlights` is the
text of the target: a summary has one sentence per line.

Records with oracle labels hold two more features:

    sentences      bytes [N]   Rain fell on Monday. | The town was wet. | ...
    oracle         int64 [K]   4 0

`sentences` are all sentences of the article. `oracle` are the positions of the
sentences that match the reference best, in the order in which greedy search takes them.

Records are written without TensorFlow, which is faster. `tf.train.Example` would give
other bytes, as it puts source_tokens before source. The wire format is defined by
https://protobuf.dev/programming-guides/encoding and
tensorflow/core/example/{example,feature}.proto.

A TFRecord file frames each record:

    8 bytes    length of the record, little-endian
    4 bytes    masked CRC-32C of these 8 bytes
    length     the record
    4 bytes    masked CRC-32C of the record
"""

import functools
import itertools
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any, NamedTuple

import google_crc32c
import numpy as np

from precis.model import files
from precis.model.errors import DataError
from precis.model.text.language import ENGLISH, is_english
from precis.model.text.words import sums_before

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

    The mask keeps the checksum useful for content that holds checksums.
    """
    crc = google_crc32c.value(content)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def read_frames(file: IO[bytes], *, name: str = "records") -> Iterator[bytes]:
    """Reads the records of a TFRecord file, without TensorFlow.

    Args:
      file: the open file, at its start.
      name: the path of the file, for messages.

    Raises:
      DataError: a checksum is wrong, or the file ends within a record.
    """
    position = 0

    def error(what: str) -> DataError:
        return DataError(
            f"{name}: {what.format(position)}; run the same `precis prepare` command "
            "again"
        )

    while head := file.read(12):
        if len(head) < 12:
            raise error("the file ends within a record, at byte {}")
        (length,) = _LENGTH.unpack_from(head)
        if _masked_crc(head[:8]) != _CRC.unpack_from(head, 8)[0]:
            raise error("damaged at byte {} (checksum of the length)")
        body = file.read(length + 4)
        if len(body) < length + 4:
            raise error("the file ends within a record, at byte {}")
        record = body[:length]
        if _masked_crc(record) != _CRC.unpack_from(body, length)[0]:
            raise error("damaged at byte {} (checksum of the record)")
        yield record
        position += 12 + len(body)


FEATURES = {
    "document_id": "bytes",
    "source": "int64",
    "target": "int64",
    "source_tokens": "int64",
    "highlights": "bytes",
}
# Only records of texts that are not English have it.
LANGUAGE = "language"
ORACLE_FEATURES = {"sentences": "bytes", "oracle": "int64"}

# The first byte of a protobuf field is its number and its wire type. Type 2 is a length
# in bytes followed by the bytes.
_FIELD_1, _FIELD_2, _FIELD_3 = b"\x0a", b"\x12", b"\x1a"  # number << 3 | wire type


class LabelledSentences(NamedTuple):
    """The sentences of an article with oracle labels.

    Attributes:
      sentences: all sentences, N of them.
      oracle: the positions of the best K sentences, in the order of the greedy search.
    """

    sentences: tuple[str, ...]
    oracle: tuple[int, ...]


class Example(NamedTuple):
    """One document as a network is trained on it.

    Attributes:
      document_id: the id of the document.
      source: int [S], the token ids of the task prefix, if any, and the article.
      target: int [T], the token ids of the text that the network learns to write.
      source_tokens: the number of tokens of the source before the cut.
      highlights: the text of the target; a summary has one sentence per line.
      labelled: the sentences of the article with oracle labels, if requested.
      language: the language of the article; None if it is not known.
    """

    document_id: str
    source: np.ndarray
    target: np.ndarray
    source_tokens: int
    highlights: str
    labelled: LabelledSentences | None = None
    language: str | None = None


def serialise(examples: Sequence[Example]) -> list[bytes]:
    """The bytes of the `tf.train.Example` of each example.

    Features are in the order of their names, so equal examples give equal bytes.
    """
    sources = _int64_lists([example.source for example in examples])
    targets = _int64_lists([example.target for example in examples])
    return list(map(_serialise, examples, sources, targets))


def _serialise(example: Example, source: bytes, target: bytes) -> bytes:
    """The bytes of an example, given the features of its source and its target."""
    features = {
        b"document_id": _bytes_list([example.document_id]),
        b"highlights": _bytes_list([example.highlights]),
        b"source": source,
        b"source_tokens": _packed(_varint(example.source_tokens)),
        b"target": target,
    }
    if example.labelled:
        places = np.asarray(example.labelled.oracle, np.int64)
        (features[b"oracle"],) = _int64_lists([places])
        features[b"sentences"] = _bytes_list(example.labelled.sentences)
    if not is_english(example.language):
        features[LANGUAGE.encode()] = _bytes_list([str(example.language)])
    entries = [_map_entry(name, feature) for name, feature in sorted(features.items())]
    return _field(_FIELD_1, b"".join(entries))


def _bytes_list(values: Iterable[str]) -> bytes:
    """A message Feature with the field bytes_list."""
    content = b"".join([_field(_FIELD_1, value.encode()) for value in values])
    return _field(_FIELD_1, content)


def _int64_lists(rows: Sequence[np.ndarray]) -> list[bytes]:
    """For each row, a message Feature with the field int64_list, with packed values."""
    return [
        _packed(varints) if varints else _field(_FIELD_3, b"")
        for varints in _varints(rows)
    ]


def _packed(varints: bytes) -> bytes:
    """A message Feature with one or more varints."""
    return _field(_FIELD_3, _field(_FIELD_1, varints))


def _map_entry(name: bytes, feature: bytes) -> bytes:
    """One entry of the map Features.feature: the key is field 1, the value field 2."""
    return _field(_FIELD_1, _field(_FIELD_1, name) + _field(_FIELD_2, feature))


def _field(tag: bytes, content: bytes) -> bytes:
    return tag + _varint(len(content)) + content


@functools.lru_cache(1 << 14)
def _varint(value: int) -> bytes:
    """The varint of a number that is at least 0.

    Each byte holds seven bits, the lowest first. The high bit means that more bytes
    follow.
    """
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _varints(rows: Sequence[np.ndarray]) -> list[bytes]:
    """The joined varints of each row.

    Every value is first written in as many bytes as the largest value needs; then its
    unused last bytes are dropped.
    """
    values = np.concatenate([*rows, np.zeros(0, np.int32)])
    if values.min(initial=0) < 0:
        raise ValueError(f"token ids must not be negative, but one is {values.min()}")
    width = max(1, -(-int(values.max(initial=0)).bit_length() // 7))
    encoded = np.empty((len(values), width), np.uint8)
    is_used = np.ones((len(values), width), bool)
    sizes = np.ones(len(values), np.int64)
    for place in range(width):
        rest = values >> 7 * place
        encoded[:, place] = rest & 0x7F
        if place:
            is_used[:, place] = rest > 0
            encoded[:, place - 1] |= is_used[:, place].view(np.uint8) << 7
            sizes += is_used[:, place]
    joined = encoded[is_used].tobytes()
    ends = sums_before(sizes)[np.cumsum([0, *map(len, rows)])].tolist()
    return [joined[start:end] for start, end in itertools.pairwise(ends)]


def feature_spec() -> dict[str, Any]:
    """The features for `tf.io.parse_example`; token ids are ragged."""
    import tensorflow as tf

    return {
        "document_id": tf.io.FixedLenFeature([], tf.string),
        "source": tf.io.RaggedFeature(tf.int64),
        "target": tf.io.RaggedFeature(tf.int64),
        "source_tokens": tf.io.FixedLenFeature([], tf.int64),
        "highlights": tf.io.FixedLenFeature([], tf.string),
        LANGUAGE: tf.io.FixedLenFeature([], tf.string, default_value=ENGLISH),
    }


class LabelledArticle(NamedTuple):
    """The part of a record that extractive methods are trained on.

    Attributes:
      sentences, oracle: as in `LabelledSentences`.
      highlights: the reference, one sentence per line.
      language: the language of the article.
    """

    sentences: tuple[str, ...]
    oracle: tuple[int, ...]
    highlights: str
    language: str


def read_labelled(path: str) -> Iterator[LabelledArticle]:
    """Reads the articles of a shard with their oracle labels.

    Raises:
      DataError: the shard is damaged.
    """
    import tensorflow as tf

    with files.open_read(path) as file:
        for record in read_frames(file, name=path):
            features = tf.train.Example.FromString(record).features.feature
            sentences = features["sentences"].bytes_list.value
            (highlights,) = features["highlights"].bytes_list.value
            (language,) = features[LANGUAGE].bytes_list.value or (ENGLISH.encode(),)
            yield LabelledArticle(
                sentences=tuple(sentence.decode() for sentence in sentences),
                oracle=tuple(features["oracle"].int64_list.value),
                highlights=highlights.decode(),
                language=language.decode(),
            )
