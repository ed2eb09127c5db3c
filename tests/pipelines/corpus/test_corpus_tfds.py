"""The scheme tfds:NAME, with a small data set that TFDS writes."""

import importlib.util
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
import tensorflow_datasets as tfds
from support.corpus_records import parted, place_and_reason, read_corpus

from precis.model import files
from precis.model.errors import UsageError
from precis.model.records.example import read_frames
from precis.pipelines.corpus.tfds_sets import feature_kind

SPLITS = {8: "validation", 9: "test"}


def _prepare(data_dir, count=25, file_format="tfrecord"):
    """Writes the data set, with the features that TFDS has for one of this name.

    Returns:
      Its folder, and the split and the texts of its documents by id.
    """
    stories, splits = {}, {}
    for number in range(count):
        split, name = SPLITS.get(number % 10, "train"), f"{number:040x}"
        texts = f"Zürich {number}. {'Words. ' * number}End.", f"H {number}."
        stories[name] = (split, *texts)
        features = dict(zip(("article", "highlights"), texts, strict=True))
        features |= {"id": name, "publisher": "cnn"}
        splits.setdefault(split, []).append((number, features))
    builder = tfds.builder("cnn_dailymail", data_dir=data_dir)
    written = {"split_datasets": splits, "features": builder.info.features}
    where = {"name": builder.name, "version": "3.4.0", "data_dir": data_dir}
    tfds.dataset_builders.store_as_tfds_dataset(
        **where, **written, file_format=file_format
    )
    return data_dir, stories


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return _prepare(str(tmp_path_factory.mktemp("tfds")))


def test_its_documents_are_read_with_their_splits_and_kept_fields(prepared):
    data_dir, stories = prepared
    flags = {"data_dir": data_dir, "keep_fields": "publisher,id:json"}
    _, documents = read_corpus("tfds:cnn_dailymail", **flags)
    assert sorted(d.document_id for d in documents) == sorted(stories)
    for d in documents:
        assert (d.split, d.article, d.highlights) == stories[d.document_id]
        assert d.metadata == {"publisher": "cnn", "id": f'"{d.document_id}"'}
    flags["keep_fields"] = "publishers"
    with pytest.raises(UsageError, match="has no field 'publishers', it has "):
        read_corpus("tfds:cnn_dailymail:test", **flags)


def test_the_address_names_a_version_and_a_split(prepared):
    flags = {"data_dir": prepared[0]}
    records = read_corpus("tfds:cnn_dailymail/3.4.0:validation", **flags)[1]
    others = read_corpus("tfds:cnn_dailymail", split="validation", **flags)[1]
    assert records == others and {d.split for d in records} == {"validation"}
    for split, flag, message in (
        ("dev", "", "cnn_dailymail has no split 'dev'; it has .*validation"),
        ("test", "train", "cnn_dailymail has no split 'train'; it has test"),
    ):
        with pytest.raises(UsageError, match=message):
            read_corpus(f"tfds:cnn_dailymail:{split}", split=flag, **flags)


@pytest.mark.parametrize("damage", ["flipped", "short"])
def test_every_record_lost_to_damage_is_counted_whatever_the_tasks(
    prepared, tmp_path, damage
):
    copy = tmp_path / "data"
    shutil.copytree(prepared[0], copy)
    (shard,) = copy.glob("cnn_dailymail/3.4.0/*train*")
    with open(shard, "rb") as file:
        frames = list(read_frames(file))
    content = bytearray(shard.read_bytes())
    sixth_record = sum(len(frame) + 16 for frame in frames[:5])
    if damage == "flipped":
        content[sixth_record + 20] ^= 1
    else:
        del content[sixth_record:]
    shard.write_bytes(content)
    for size, is_cut in ((1_000, True), (1 << 30, False)):
        flags = {"data_dir": str(copy), "task_bytes": size}
        records = read_corpus("tfds:cnn_dailymail:train", **flags)[1]
        read, lost = parted(records)
        assert place_and_reason(lost[0]) == (str(shard), "record 5", "broken_shard")
        detail = "the shard is damaged or ends at record 5; records 5 to "
        assert lost[0].detail.startswith(detail)
        assert {d.source_file for d in read} == {str(shard)}
        assert [d.source_position for d in read] == [f"record {n}" for n in range(5)]
        assert sum(u.records for u in lost) == len(frames) - 5
        assert (len(lost) > 1) is is_cut
        assert lost[-1].detail.endswith(f" to {len(frames) - 1} are lost")


@pytest.mark.parametrize("file_format", ["array_record", "parquet"])
def test_other_formats_hold_what_the_reader_of_tfds_finds(
    prepared, tmp_path, file_format
):
    _prepare(str(tmp_path), file_format=file_format)
    (shard,) = tmp_path.glob("cnn_dailymail/3.4.0/*train*")
    place, lost = 1000, 1  # A byte, and how many records are lost if it is changed.
    if file_format == "parquet":
        pq.write_table(pq.read_table(shard), shard, row_group_size=8)
        column = pq.read_metadata(shard).row_group(1).column(0)
        place, lost = column.dictionary_page_offset, 8
    flags = {"data_dir": str(tmp_path), "task_bytes": 1000}
    tasks, documents = read_corpus("tfds:cnn_dailymail:train", **flags)
    found = [(d.document_id, d.article, d.highlights) for d in documents]
    builder = tfds.builder("cnn_dailymail", data_dir=str(tmp_path))
    fields, rows = ("id", "article", "highlights"), builder.as_data_source("train")
    expected = [tuple(row[field].decode() for field in fields) for row in rows]
    assert len(tasks) > 1 and found == expected and len(found) == 21
    others = read_corpus("tfds:cnn_dailymail:train", data_dir=prepared[0])[1]
    assert [d.source_position for d in documents] == [d.source_position for d in others]
    # A shard that is changed in place, and one that is cut.
    content = shard.read_bytes()
    changed = bytearray(content)
    changed[place] ^= 0xFF
    for damaged, missing in ((changed, lost), (content[: len(content) // 2], 21)):
        shard.write_bytes(damaged)
        for flags["task_bytes"] in (1000, 1 << 30):
            read, letters = parted(read_corpus("tfds:cnn_dailymail:train", **flags)[1])
            assert {each.reason for each in letters} == {"broken_shard"}
            assert sum(each.records for each in letters) == missing == 21 - len(read)
            assert all(each in documents for each in read)


def test_sets_that_cannot_be_read_are_refused_at_the_start(
    prepared, tmp_path, monkeypatch
):
    def refused(message):
        with pytest.raises(UsageError, match=message):
            read_corpus("tfds:cnn_dailymail", data_dir=str(tmp_path))

    # TFDS leaves 100 of 250 out of its Parquet file, and counts them.
    _prepare(str(tmp_path), count=312, file_format="parquet")
    refused(r"-train\S+ has 150 of the 250 examples that .* file_format='array_record'")
    (info,) = tmp_path.glob("cnn_dailymail/3.4.0/dataset_info.json")
    described = info.read_text()
    for name, reason in (
        ("riegeli", "the format riegeli, which precis does not read; prepare it again"),
        ("array_record", "the package array_record is missing; prepare it again with"),
    ):
        info.write_text(described.replace('"parquet"', f'"{name}"'))
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
        refused(reason)
    monkeypatch.setattr(files, "is_local", lambda path: False)
    refused("the format array_record, which is only read from a local disk; prepare")


def test_the_types_of_features():
    kinds = {np.uint8: "int64", np.float32: "double", np.bool_: "bool"}
    for dtype, kind in kinds.items():
        assert feature_kind(tfds.features.Scalar(dtype=dtype)) == kind
    assert feature_kind(tfds.features.Text()) == "string"
    assert feature_kind(tfds.features.Tensor(shape=(2,), dtype=np.float32)) == "json"


def test_a_missing_data_set_fails_at_once_and_names_the_ways_out(tmp_path):
    way_out = "`tfds build cnn_dailymail`, or name the folder .* --data_dir"
    for name, message in (
        (
            "cnn_dailymail",
            rf"is not prepared in {tmp_path}/\S+; prepare it with {way_out}",
        ),
        ("no_such_set", "is unknown to TensorFlow Datasets"),
        ("cnn_dailymail/9.9.9", "is unknown to TensorFlow Datasets"),
    ):
        with pytest.raises(UsageError, match=f"tfds:{name} {message}"):
            read_corpus(f"tfds:{name}", data_dir=str(tmp_path))
