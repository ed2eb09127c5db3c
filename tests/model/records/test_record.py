"""Records against the writer and the reader of TensorFlow, and damaged records."""

import io
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from precis.model import files
from precis.model.errors import DataError
from precis.model.records.example import (
    FEATURES,
    ORACLE_FEATURES,
    Example,
    LabelledSentences,
    feature_spec,
    frame,
    read_frames,
    read_labelled,
    serialise,
)

NUMBERS = np.array([1, 127, 128, 16383, 16384, 2097151, 2097152])
EXAMPLES = [
    Example("a", NUMBERS, np.array([5, 200], np.int32), 900, "One.\nTwo é."),
    Example("b" * 200, np.arange(512, dtype=np.int32) * 62, np.array([127]), 512, ""),
    Example("ü", np.array([], np.int32), np.array([2**40, 0]), 0, "long " * 4000),
]
LABELS = [
    LabelledSentences(("One.", "Two é.", "", "Three " * 3000), oracle=(2, 0, 300)),
    LabelledSentences((), ()),
    LabelledSentences(("One.",), ()),
]
BOTH = zip(EXAMPLES, LABELS, strict=True)
LABELLED = [example._replace(labelled=labels) for example, labels in BOTH]


def by_tensorflow(example: Example) -> tf.train.Example:
    """An independent route: the message as protobuf builds it."""

    def integers(values) -> tf.train.Feature:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    def text(*values: str) -> tf.train.Feature:
        encoded = tf.train.BytesList(value=list(map(str.encode, values)))
        return tf.train.Feature(bytes_list=encoded)

    features = {
        "document_id": text(example.document_id),
        "source": integers(example.source),
        "target": integers(example.target),
        "source_tokens": integers([example.source_tokens]),
        "highlights": text(example.highlights),
    }
    if example.labelled is not None:
        features |= {
            "sentences": text(*example.labelled.sentences),
            "oracle": integers(example.labelled.oracle),
        }
    return tf.train.Example(features=tf.train.Features(feature=features))


@pytest.mark.parametrize("example", EXAMPLES + LABELLED)
def test_bytes_are_the_message_of_protobuf(example):
    (serialised,) = serialise([example])
    expected = by_tensorflow(example)
    assert tf.train.Example.FromString(serialised) == expected
    # Features stand once and numbers in their shortest form,
    assert len(serialised) == expected.ByteSize()
    # in the order of their names.
    names = sorted([*FEATURES, *(ORACLE_FEATURES if example.labelled else ())])
    positions = [serialised.index(name.encode() + b"\x12") for name in names]
    assert positions == sorted(positions)


@pytest.mark.parametrize("examples", [EXAMPLES, LABELLED])
def test_records_parse_back(examples):
    """With labels as without; a network that writes does not read them."""
    parsed = tf.io.parse_example(serialise(examples), feature_spec())
    assert set(parsed) == {*FEATURES, "language"}
    for name in ("source", "target"):
        expected = [getattr(example, name).tolist() for example in examples]
        assert parsed[name].to_list() == expected and parsed[name].dtype == tf.int64
    assert parsed["source_tokens"].numpy().tolist() == [900, 512, 0]
    for name in ("document_id", "highlights"):
        texts = [value.decode() for value in parsed[name].numpy()]
        assert texts == [getattr(example, name) for example in examples]


def test_labelled_articles_read_back_and_damage_is_found(tmp_path):
    path = str(tmp_path / "train.tfrecord")
    files.write_bytes(path, b"".join(map(frame, serialise(LABELLED))))
    assert list(read_labelled(path)) == [
        (*example.labelled, example.highlights, example.language or "en")
        for example in LABELLED
    ]
    files.write_bytes(path, frame(*serialise(LABELLED[:1])).replace(b"Two", b"Ten"))
    message = r"train.tfrecord: damaged at byte 0 \(checksum of the record\)"
    with pytest.raises(DataError, match=message):
        list(read_labelled(path))


def test_a_negative_token_is_refused():
    with pytest.raises(ValueError, match="must not be negative, but one is -3"):
        serialise([EXAMPLES[0]._replace(source=np.array([4, -3]))])


def test_frames_are_those_of_tensorflow(tmp_path):
    records = [b"", b"one", b"x" * 100_000]
    with tf.io.TFRecordWriter(str(tmp_path / "tensorflow")) as writer:
        for content in records:
            writer.write(content)
    content = b"".join(map(frame, records))
    assert content == (tmp_path / "tensorflow").read_bytes()
    assert list(read_frames(io.BytesIO(content))) == records


FIRST, SECOND = frame(b"first"), frame(b"second")
ENDS = f"x: the file ends within a record, at byte {len(FIRST)}"
DAMAGED = rf"x: damaged at byte {len(FIRST)} \(checksum of the"


DAMAGES = [
    (SECOND[:-1], ENDS),
    (SECOND[:7], ENDS),
    (SECOND.replace(b"e", b"E"), rf"{DAMAGED} record\)"),
    (b"\x07" + SECOND[1:], rf"{DAMAGED} length\)"),
]


@pytest.mark.parametrize(("content", "message"), DAMAGES)
def test_damage_is_found(content, message):
    frames = read_frames(io.BytesIO(FIRST + content), name="x")
    assert next(frames) == b"first"
    with pytest.raises(DataError, match=message):
        next(frames)


def test_writing_needs_no_tensorflow():
    program = (
        "import sys, numpy; from precis.model.records.example import *; "
        "frame(*serialise([Example('a', numpy.arange(9), numpy.arange(3), 9, '')])); "
        "print('tensorflow' in sys.modules)"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
