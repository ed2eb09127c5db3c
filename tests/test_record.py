"""Records against TensorFlow's own writer and reader; `dataset.json` and every refusal."""

import dataclasses
import io
import json
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.model.records.dataset import (
    DatasetInfo,
    Lengths,
    Shard,
    load_dataset,
    require_oracle,
    shard_name,
    summarise_lengths,
)
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
from precis.model.tokenization.wordpiece import RESERVED_TOKENS, Tokenizer

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
        labelled=LabelledSentences(("One.", "Two é.", "", "Three " * 3000), (2, 0, 300))
    ),
    EXAMPLES[1]._replace(labelled=LabelledSentences((), ())),
    EXAMPLES[2]._replace(labelled=LabelledSentences(("One.",), ())),
]


def by_tensorflow(example: Example) -> tf.train.Example:
    """The independent route: the message as protobuf itself builds it."""

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
        tf.io.parse_example([serialise(one)], feature_spec())
        for one in (EXAMPLES[0], LABELLED[0])
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


def test_records_without_labels_are_refused_where_they_are_needed(info):
    with pytest.raises(
        UsageError,
        match="^r: these records hold no oracle labels; prepare them with --oracle_sentences 5$",
    ):
        require_oracle(info, "r")
    require_oracle(
        dataclasses.replace(info, features=FEATURES | ORACLE_FEATURES),
        "r",
    )


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
    with tf.io.TFRecordWriter(str(tmp_path / "theirs")) as writer:
        for content in records:
            writer.write(content)
    ours = b"".join(map(frame, records))
    assert ours == (tmp_path / "theirs").read_bytes()
    assert list(read_frames(io.BytesIO(ours))) == records


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


def test_lengths_by_hand():
    # Eleven records of lengths 0, 10, ..., 100: the deciles are the k-th smallest with
    # k = ceil(11 * tenth / 10), at least 1.
    lengths = summarise_lengths({10 * tenth: 1 for tenth in range(11)})
    assert lengths == Lengths(50.0, 100, (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100))
    lengths = summarise_lengths({7: 9, 3: 1})
    assert lengths == Lengths(6.6, 7, (3, 3, 7, 7, 7, 7, 7, 7, 7, 7, 7))
    assert summarise_lengths({}) == Lengths(0.0, 0, (0,) * 11)


def test_shard_name():
    assert shard_name("train", 3, 16) == "train-00003-of-00016.tfrecord"


@pytest.fixture
def tokenizer() -> Tokenizer:
    return Tokenizer([*RESERVED_TOKENS, "a"])


@pytest.fixture
def info(tokenizer) -> DatasetInfo:
    return DatasetInfo(
        splits={
            "train": (
                Shard("train-00000-of-00002.tfrecord", 5, 90, "ab"),
                Shard("train-00001-of-00002.tfrecord", 2, 40, "cd"),
            ),
            "test": (),
        },
        source_lengths=summarise_lengths({700: 7}),
        target_lengths=summarise_lengths({50: 6, 60: 1}),
        counts={"read": 8, "written": 7, "duplicates": 1, "failed": 0, "skipped": 0},
        max_source_tokens=512,
        max_target_tokens=64,
        seed=7,
        tokenizer_fingerprint=tokenizer.fingerprint,
        fingerprint="ef",
    )


@pytest.fixture
def folder(info, tokenizer, tmp_path) -> str:
    tokenizer.save(str(tmp_path / "tokenizer"))
    files.write_json(str(tmp_path / "dataset.json"), info.to_json())
    files.write_bytes(str(tmp_path / "_SUCCESS"), b"")
    return str(tmp_path)


def test_a_description_reads_back(info, folder):
    loaded = load_dataset(folder)
    assert loaded == info
    assert (loaded.records("train"), loaded.records("test")) == (7, 0)
    written = files.read_json(files.join(folder, "dataset.json"))
    assert written["splits"]["train"]["records"] == 7
    assert written["splits"]["train"]["shards"][1] == {
        "file": "train-00001-of-00002.tfrecord",
        "records": 2,
        "bytes": 40,
        "sha256": "cd",
    }
    assert written["features"]["source"] == "int64"


def test_an_unknown_split_is_refused(info):
    with pytest.raises(
        UsageError, match="no split 'dev' in these records; they have test, train"
    ):
        info.records("dev")


def test_a_folder_without_records_is_refused(tmp_path):
    with pytest.raises(
        UsageError,
        match=r"there are no records here \(no dataset\.json\); name the folder",
    ):
        load_dataset(str(tmp_path / "absent"))


def test_an_unfinished_folder_is_refused(folder):
    files.remove(files.join(folder, "_SUCCESS"))
    with pytest.raises(
        DataError,
        match=r"unfinished \(no _SUCCESS\); run the same `precis prepare` command again",
    ):
        load_dataset(folder)


def test_another_format_version_is_refused(info, folder):
    files.write_json(
        files.join(folder, "dataset.json"),
        dataclasses.replace(info, format_version=9).to_json(),
    )
    with pytest.raises(DataError, match="format_version is 9 and this precis reads 1"):
        load_dataset(folder)


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"format_version": 1}', "drop seed", "add colour"]
)
def test_a_damaged_description_is_refused(info, folder, content):
    if content == "drop seed":
        content = json.dumps(
            {name: value for name, value in info.to_json().items() if name != "seed"}
        )
    elif content == "add colour":
        content = json.dumps({**info.to_json(), "colour": 1})
    files.write_bytes(files.join(folder, "dataset.json"), content.encode())
    with pytest.raises(DataError, match=r"dataset\.json: damaged \("):
        load_dataset(folder)


def test_a_description_without_later_fields_reads_back(info, folder):
    content = info.to_json()
    for name in ("task_prefix", "target", "source_tokenizer_fingerprint"):
        del content[name]
    files.write_json(files.join(folder, "dataset.json"), content)
    loaded = load_dataset(folder)
    assert loaded == info and (
        loaded.task_prefix,
        loaded.target,
        loaded.source_tokenizer_fingerprint,
    ) == ("", "highlights", None)


def test_what_the_records_were_made_for_reads_back(info, folder):
    source = Tokenizer([*RESERVED_TOKENS, "b"])
    changes = {
        "task_prefix": "sum: ",
        "target": "headline",
        "source_tokenizer_fingerprint": source.fingerprint,
    }
    changed = dataclasses.replace(info, **changes)
    files.write_json(files.join(folder, "dataset.json"), changed.to_json())
    refused = "source_tokenizer: fingerprint .* is not .*, that of the tokenizer the records were encoded with; restore the"
    with pytest.raises(DataError, match=refused):
        load_dataset(folder)
    source.save(files.join(folder, "source_tokenizer"))
    assert load_dataset(folder) == changed
    # One that the description knows nothing of cut no source.
    files.write_json(files.join(folder, "dataset.json"), info.to_json())
    with pytest.raises(DataError, match=refused):
        load_dataset(folder)


def test_another_tokenizer_is_refused(folder):
    Tokenizer([*RESERVED_TOKENS, "b"]).save(files.join(folder, "tokenizer"))
    with pytest.raises(
        DataError,
        match="tokenizer: fingerprint .* is not .*, that of the tokenizer the records were encoded with",
    ):
        load_dataset(folder)


def test_writing_needs_no_tensorflow():
    program = (
        "import sys, numpy; from precis.model.records.example import Example, serialise; from precis.model.records.tfrecord import frame; "
        "frame(serialise(Example('a', numpy.arange(9), numpy.arange(3), 9, ''))); print('tensorflow' in sys.modules)"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout
        == "False\n"
    )


def test_the_benchmark_prints_a_figure_for_every_stage(capsys):
    benchmark = runpy.run_path(
        str(Path(__file__).parents[1] / "benchmarks" / "encode.py")
    )
    benchmark["main"](["--documents", "7", "--runs", "1"])
    figures = {
        line.split()[0]: line.split()[1]
        for line in capsys.readouterr().out.splitlines()
    }
    assert {
        "read",
        "normalise",
        "encode",
        "write",
        "whole_chain",
        "tf_text_alone",
        "tf_text_alone_to_whole_chain",
    } <= set(figures)
    assert 700 < float(figures["article_tokens"]) < 4000
