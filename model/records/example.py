"""One training example as a `tf.train.Example`.

    document_id       bytes [1]
    source            int64 [S]   token ids, cut at max_source_tokens, among them the special tokens that an imported tokenizer puts around
    target            int64 [T]   token ids, cut at max_target_tokens, without special tokens behind them
    source_tokens     int64 [1]   length before the cut
    highlights        bytes [1]   the target as text: the reference, one sentence a line, or what else was to be learned of it

and, where the records were prepared with oracle labels,

    sentences         bytes [N]   all sentences of the article, each on one line
    oracle            int64 [K]   positions of the sentences that make the best extractive summary, in the order of the greedy search

Records are written without TensorFlow: the wire format is a page long, and writing
token ids as one array is faster. https://protobuf.dev/programming-guides/encoding and
tensorflow/core/example/{example,feature}.proto define it.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from precis.model import files
from precis.model.records.tfrecord import read_frames

FEATURES = {
    "document_id": "bytes",
    "source": "int64",
    "target": "int64",
    "source_tokens": "int64",
    "highlights": "bytes",
}
ORACLE_FEATURES = {"sentences": "bytes", "oracle": "int64"}

# The first byte of a protobuf field is its number and its type; 2 is "a length, then
# that many bytes".
_FIELD_1, _FIELD_2, _FIELD_3 = (number << 3 | 2 for number in (1, 2, 3))


class Example(NamedTuple):
    """One document as the network sees it.

    Attributes:
      document_id: the document's id.
      source: int [S], token ids of the article, behind the task prefix if there is one.
      target: int [T], token ids of what is to be written.
      source_tokens: length of the article in tokens before it was cut at the network's
          source length.
      highlights: what is to be written as text, of a summary one sentence a line.
      labelled: the article's sentences with their oracle labels, if they were asked
          for.
    """

    document_id: str
    source: np.ndarray
    target: np.ndarray
    source_tokens: int
    highlights: str
    labelled: "LabelledSentences | None" = None


class LabelledSentences(NamedTuple):
    """The sentences of an article, and the positions of those that the oracle takes, in
    the order it takes them.
    """

    sentences: tuple[str, ...]
    oracle: tuple[int, ...]


def serialise(example: Example) -> bytes:
    """The example as a serialised `tf.train.Example`; the features are in the order of
    their names, so equal examples are equal bytes.
    """
    labelled = example.labelled
    features = (
        _bytes_feature(b"document_id", example.document_id.encode()),
        _bytes_feature(b"highlights", example.highlights.encode()),
        _int64_feature(b"oracle", np.asarray(labelled.oracle)) if labelled else b"",
        _bytes_feature(
            b"sentences", *(sentence.encode() for sentence in labelled.sentences)
        )
        if labelled
        else b"",
        _int64_feature(b"source", example.source),
        _int64_feature(b"source_tokens", np.asarray([example.source_tokens])),
        _int64_feature(b"target", example.target),
    )
    return _field(_FIELD_1, b"".join(features))


def _bytes_feature(name: bytes, *values: bytes) -> bytes:
    return _named(
        name, _field(_FIELD_1, b"".join(_field(_FIELD_1, value) for value in values))
    )  # Feature.bytes_list.value


def _int64_feature(name: bytes, values: np.ndarray) -> bytes:
    packed = _field(_FIELD_1, _varints(values)) if len(values) else b""
    return _named(name, _field(_FIELD_3, packed))  # Feature.int64_list.value


def _named(name: bytes, feature: bytes) -> bytes:
    """One entry of the map Features.feature: the key is field 1, the value field 2."""
    return _field(_FIELD_1, _field(_FIELD_1, name) + _field(_FIELD_2, feature))


def _field(tag: int, content: bytes) -> bytes:
    return bytes((tag,)) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """A non-negative number, seven bits a byte, the lowest first; the high bit says
    that more bytes follow.
    """
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _varints(values: np.ndarray) -> bytes:
    """`_varint` of each value, joined: the bytes of all values side by side, then those
    that carry nothing left out.
    """
    values = np.asarray(values, dtype=np.int64)
    largest = int(values.max())
    if values.min() < 0:
        raise ValueError(
            f"a token id or a length is not negative, this one is {values.min()}"
        )
    if largest < 0x80:
        return values.astype(np.uint8).tobytes()
    width = -(-largest.bit_length() // 7)
    groups = values[:, None] >> np.arange(0, 7 * width, 7)  # [N, width]
    is_last = groups < 0x80
    is_used = np.ones_like(is_last)
    is_used[:, 1:] = ~is_last[:, :-1]
    encoded = (groups & 0x7F).astype(np.uint8) | (~is_last).astype(np.uint8) << 7
    return encoded[is_used].tobytes()


def feature_spec() -> dict[str, Any]:
    """What `tf.io.parse_example` needs to know; token ids are ragged."""
    import tensorflow as tf

    return {
        "document_id": tf.io.FixedLenFeature([], tf.string),
        "source": tf.io.RaggedFeature(tf.int64),
        "target": tf.io.RaggedFeature(tf.int64),
        "source_tokens": tf.io.FixedLenFeature([], tf.int64),
        "highlights": tf.io.FixedLenFeature([], tf.string),
    }


class LabelledArticle(NamedTuple):
    """What a training of extractive methods reads of a record.

    Attributes:
      sentences, oracle: as in `LabelledSentences`.
      highlights: the reference summary, one sentence a line.
    """

    sentences: tuple[str, ...]
    oracle: tuple[int, ...]
    highlights: str


def read_labelled(path: str) -> Iterator[LabelledArticle]:
    """The articles of a shard with their oracle labels.

    Raises:
      DataError: the shard is damaged.
    """
    import tensorflow as tf

    with files.open_read(path) as file:
        for frame_ in read_frames(file, name=path):
            features = tf.train.Example.FromString(frame_).features.feature
            sentences = tuple(
                sentence.decode() for sentence in features["sentences"].bytes_list.value
            )
            oracle = tuple(features["oracle"].int64_list.value)
            yield LabelledArticle(
                sentences, oracle, features["highlights"].bytes_list.value[0].decode()
            )
