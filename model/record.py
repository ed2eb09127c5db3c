"""What one training example is, the TFRecord files that hold examples, and the
`dataset.json` that describes a folder of them.

    document_id       bytes [1]
    source            int64 [S]   token ids, cut at max_source_tokens, among them the special tokens that an imported tokenizer puts around
    target            int64 [T]   token ids, cut at max_target_tokens, without special tokens behind them
    source_tokens     int64 [1]   length before the cut
    highlights        bytes [1]   the target as text: the reference, one sentence a line, or what else was to be learned of it

and, where the records were prepared with oracle labels,

    sentences         bytes [N]   all sentences of the article, each on one line
    oracle            int64 [K]   positions of the sentences that make the best extractive summary, in the order of the greedy search

Records are written without TensorFlow: the wire format is a page long, and writing
    token ids as one array is faster.
https://protobuf.dev/programming-guides/encoding and
tensorflow/core/example/{example,feature}.proto define it.
"""

import dataclasses
import struct
from collections.abc import Iterator, Mapping
from typing import IO, Any, NamedTuple

import google_crc32c
import numpy as np

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.model.tokenizers import (
    SOURCE_TOKENIZER_FOLDER,
    TOKENIZER_FOLDER,
    load_tokenizers,
)

FEATURES = {
    "document_id": "bytes",
    "source": "int64",
    "target": "int64",
    "source_tokens": "int64",
    "highlights": "bytes",
}
ORACLE_FEATURES = {"sentences": "bytes", "oracle": "int64"}

FORMAT_VERSION = 1
DATASET_FILE, SUCCESS_FILE = "dataset.json", "_SUCCESS"

_LENGTH, _CRC = struct.Struct("<Q"), struct.Struct("<I")
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


def require_oracle(info: "DatasetInfo", folder: str) -> None:
    """Checks that records hold oracle labels.

    Raises:
      UsageError: they do not.
    """
    if "oracle" not in info.features:
        raise UsageError(
            f"{folder}: these records hold no oracle labels; prepare them with --oracle_sentences 5"
        )


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


class Shard(NamedTuple):
    """One TFRecord file of a split; `file` is its name within the folder."""

    file: str
    records: int
    bytes: int
    sha256: str


class Lengths(NamedTuple):
    """How long the sequences of a record set are, in tokens before the cut.

    Attributes:
      mean, max: over all records.
      deciles: 11 numbers: the least, the length that 10 % of the records do not exceed,
          20 %, ..., the greatest.
    """

    mean: float
    max: int
    deciles: tuple[int, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """The content of `dataset.json`: what the records are, where they are, and what
    they were made from.
    """

    format_version: int = FORMAT_VERSION
    # Name and type of every feature of a record.
    features: Mapping[str, str] = dataclasses.field(
        default_factory=lambda: dict(FEATURES)
    )
    # The shards of each split, in order.
    splits: Mapping[str, tuple[Shard, ...]]
    source_lengths: Lengths
    target_lengths: Lengths
    # Documents by what became of them: read, written, duplicates, failed, skipped; and
    # why they were skipped.
    counts: Mapping[str, int]
    # Dead letters by stage and reason.
    failures: Mapping[str, int] = dataclasses.field(default_factory=dict)
    max_source_tokens: int
    max_target_tokens: int
    # The seed of the splits.
    seed: int
    # What stands before every article, and what of the reference is the target: a name
    # of `precis prepare --target`.
    task_prefix: str = ""
    target: str = "highlights"
    # Of the tokenizer that encoded the records; it lies in the same folder.
    tokenizer_fingerprint: str
    # Of the one that encoded the sources, where it is another.
    source_tokenizer_fingerprint: str | None = None
    # Of everything the records depend on; equal fingerprints mean equal bytes.
    fingerprint: str

    def records(self, split: str) -> int:
        """The number of records of a split.

        Raises:
          UsageError: there is no such split.
        """
        if split not in self.splits:
            raise UsageError(
                f"there is no split {split!r} in these records; they have {', '.join(sorted(self.splits))}"
            )
        return sum(shard.records for shard in self.splits[split])

    def to_json(self) -> dict[str, Any]:
        """The content of `dataset.json`."""
        content = {
            field.name: getattr(self, field.name) for field in dataclasses.fields(self)
        }
        splits = {
            split: [shard._asdict() for shard in shards]
            for split, shards in self.splits.items()
        }
        content["splits"] = {
            split: {"records": self.records(split), "shards": shards}
            for split, shards in splits.items()
        }
        for name in ("source_lengths", "target_lengths"):
            content[name] = {
                **content[name]._asdict(),
                "deciles": list(content[name].deciles),
            }
        return content

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "DatasetInfo":
        """The description that `to_json` gave; KeyError and TypeError where a field is
        missing or unknown.
        """
        values = dict(content)
        values["splits"] = {
            split: tuple(Shard(**shard) for shard in entry["shards"])
            for split, entry in content["splits"].items()
        }
        for name in ("source_lengths", "target_lengths"):
            values[name] = Lengths(
                **{**content[name], "deciles": tuple(content[name]["deciles"])}
            )
        return cls(**values)


def summarise_lengths(records_of_length: Mapping[int, int]) -> Lengths:
    """The statistics of lengths from how many records have each; all zero where there
    are no records.
    """
    total = sum(records_of_length.values())
    if not total:
        return Lengths(mean=0.0, max=0, deciles=(0,) * 11)
    lengths = np.array(sorted(records_of_length))
    cumulative = np.cumsum([records_of_length[length] for length in lengths.tolist()])
    ranks = [
        -(-total * tenth // 10) for tenth in range(11)
    ]  # Nearest rank, counted from 1: no interpolation.
    deciles = lengths[np.searchsorted(cumulative, ranks)].tolist()
    mean = sum(length * count for length, count in records_of_length.items()) / total
    return Lengths(mean=round(mean, 3), max=int(lengths[-1]), deciles=tuple(deciles))


def shard_name(split: str, index: int, count: int) -> str:
    """The file name of a shard, as in `train-00000-of-00016.tfrecord`."""
    return f"{split}-{index:05d}-of-{count:05d}.tfrecord"


def load_dataset(folder: str) -> DatasetInfo:
    """Reads the description of a folder of records and checks that the folder is
    complete and belongs together.

    Raises:
      UsageError: the folder holds no records.
      DataError: the folder is unfinished, of another format version, or a tokenizer is
          not the one that encoded the records.
    """
    path = files.join(folder, DATASET_FILE)
    again = "run the same `precis prepare` command again"
    if not files.exists(path):
        raise UsageError(
            f"{folder}: there are no records here (no {DATASET_FILE}); name the folder that `precis prepare` wrote"
        )
    if not files.exists(files.join(folder, SUCCESS_FILE)):
        raise DataError(
            f"{folder}: unfinished (no {SUCCESS_FILE}); {again}, it goes on where it stopped"
        )
    try:
        content = files.read_json(path)
        version = content["format_version"]
        if version != FORMAT_VERSION:
            raise DataError(
                f"{path}: format_version is {version} and this precis reads {FORMAT_VERSION}; {again}"
            )
        info = DatasetInfo.from_json(content)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path}: damaged ({type(error).__name__}: {error}); {again} into an empty folder"
        ) from error
    tokenizers, target = load_tokenizers(folder), info.tokenizer_fingerprint
    for name, found, expected in (
        (TOKENIZER_FOLDER, tokenizers.target, target),
        (
            SOURCE_TOKENIZER_FOLDER,
            tokenizers.source,
            info.source_tokenizer_fingerprint or target,
        ),
    ):
        if found.fingerprint != expected:
            raise DataError(
                f"{files.join(folder, name)}: fingerprint {found.fingerprint[:12]} is not {expected[:12]}, that of the tokenizer the "
                f"records were encoded with; restore the tokenizer folder or {again} into an empty folder"
            )
    return info
