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
    LabelledArticle,
    LabelledSentences,
    feature_spec,
    read_labelled,
    serialise,
)
from precis.model.records.tfrecord import frame, read_frames

EXAMPLES = [
    Example(
        "a",
        np.array([1, 127, 128, 16383, 16384, 2097151, 2097152]),
        np.array([5, 200], np.int32),
        900,
        "One.\nTwo é.",
    ),
    Example("b" * 200, np.arange(512, dtype=np.int32) * 62, np.array([127]), 512, ""),
    Example("ü", np.array([], np.int32), np.array([2**40, 0]), 0, "long " * 4000),
]
LABELLED = [
    EXAMPLES[0]._replace(
        labelled=LabelledSentences(
            ("One.", "Two é.", "", "Three " * 3000), oracle=(2, 0, 300)
        )
    ),
    EXAMPLES[1]._replace(labelled=LabelledSentences((), ())),
    EXAMPLES[2]._replace(labelled=LabelledSentences(("One.",), ())),
]


def by_tensorflow(example: Example) -> tf.train.Example:
    """An independent route: the message as protobuf builds it."""

    def integers(values) -> tf.train.Feature:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    def text(*values: str) -> tf.train.Feature:
        return tf.train.Feature(
            bytes_list=tf.train.BytesList(value=[value.encode() for value in values])
        )

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


LABELLED_IDS = ["labelled", "labelled_no_sentence", "labelled_no_oracle"]


@pytest.mark.parametrize(
    "example", EXAMPLES + LABELLED, ids=["edges", "usual", "empty", *LABELLED_IDS]
)
def test_bytes_are_the_message_of_protobuf(example):
    serialised = serialise(example)
    expected = by_tensorflow(example)
    assert tf.train.Example.FromString(serialised) == expected
    assert (
        len(serialised) == expected.ByteSize()
    )  # Features stand once and numbers in their shortest form.


def test_features_are_in_the_order_of_their_names():
    serialised = serialise(EXAMPLES[1])
    positions = [
        serialised.index(name)
        for name in (
            b"document_id",
            b"highlights",
            b"source\x12",
            b"source_tokens",
            b"target",
        )
    ]
    assert positions == sorted(positions)
    names = (
        b"document_id",
        b"highlights",
        b"oracle",
        b"sentences",
        b"source\x12",
        b"source_tokens",
        b"target",
    )
    positions = [serialise(LABELLED[0]).index(name) for name in names]
    assert positions == sorted(positions)


def test_labels_are_further_features_of_the_same_record():
    assert set(ORACLE_FEATURES) & set(FEATURES) == set()
    plain, labelled = (
        tf.io.parse_example([serialise(example)], feature_spec())
        for example in (EXAMPLES[0], LABELLED[0])
    )
    assert set(plain) == set(labelled) == set(FEATURES)
    for name in ("source", "target"):
        assert plain[name].to_list() == labelled[name].to_list()
    assert all(
        plain[name].numpy() == labelled[name].numpy()
        for name in ("document_id", "source_tokens", "highlights")
    )


def test_labelled_articles_read_back(tmp_path):
    path = str(tmp_path / "train.tfrecord")
    files.write_bytes(
        path,
        b"".join(frame(serialise(example)) for example in LABELLED),
    )
    assert list(read_labelled(path)) == [
        LabelledArticle(
            ("One.", "Two é.", "", "Three " * 3000), (2, 0, 300), "One.\nTwo é."
        ),
        LabelledArticle((), (), ""),
        LabelledArticle(("One.",), (), "long " * 4000),
    ]


def test_damage_to_labelled_articles_is_found(tmp_path):
    path = tmp_path / "train.tfrecord"
    path.write_bytes(frame(serialise(LABELLED[0])).replace(b"Two", b"Ten"))
    with pytest.raises(
        DataError, match=r"train.tfrecord: damaged at byte 0 \(checksum of the record\)"
    ):
        list(read_labelled(str(path)))


def test_records_parse_back():
    parsed = tf.io.parse_example(
        [serialise(example) for example in EXAMPLES], feature_spec()
    )
    assert set(parsed) == set(FEATURES)
    for name in ("source", "target"):
        assert parsed[name].to_list() == [
            getattr(example, name).tolist() for example in EXAMPLES
        ]
        assert parsed[name].dtype == tf.int64
    assert parsed["source_tokens"].numpy().tolist() == [900, 512, 0]
    assert [value.decode() for value in parsed["document_id"].numpy()] == [
        "a",
        "b" * 200,
        "ü",
    ]
    assert [value.decode() for value in parsed["highlights"].numpy()] == [
        "One.\nTwo é.",
        "",
        "long " * 4000,
    ]


def test_a_negative_token_is_refused():
    with pytest.raises(ValueError, match="is not negative, this one is -3"):
        serialise(EXAMPLES[0]._replace(source=np.array([4, -3])))


def test_frames_are_those_of_tensorflow(tmp_path):
    records = [b"", b"one", b"x" * 100_000]
    with tf.io.TFRecordWriter(str(tmp_path / "tensorflow")) as writer:
        for content in records:
            writer.write(content)
    content = b"".join(map(frame, records))
    assert content == (tmp_path / "tensorflow").read_bytes()
    assert list(read_frames(io.BytesIO(content))) == records


FIRST, SECOND = frame(b"first"), frame(b"second")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            FIRST + SECOND[:-1],
            f"x: the file ends within a record, at byte {len(FIRST)}",
        ),
        (FIRST + SECOND[:7], f"x: the file ends within a record, at byte {len(FIRST)}"),
        (
            FIRST + SECOND.replace(b"e", b"E"),
            rf"x: damaged at byte {len(FIRST)} \(checksum of the record\)",
        ),
        (
            FIRST + b"\x07" + SECOND[1:],
            rf"x: damaged at byte {len(FIRST)} \(checksum of the length\)",
        ),
    ],
    ids=["cut_body", "cut_head", "record", "length"],
)
def test_damage_is_found(content, message):
    frames = read_frames(io.BytesIO(content), name="x")
    assert next(frames) == b"first"
    with pytest.raises(DataError, match=message):
        next(frames)


def test_writing_needs_no_tensorflow():
    program = (
        "import sys, numpy; from precis.model.records.example import Example, "
        "serialise; from precis.model.records.tfrecord import frame; "
        "frame(serialise(Example('a', numpy.arange(9), numpy.arange(3), 9, ''))); "
        "print('tensorflow' in sys.modules)"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout
        == "False\n"
    )
