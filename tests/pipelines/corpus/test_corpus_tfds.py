"""The scheme tfds:NAME, with a data set that TFDS prepares from small raw stories."""

import hashlib
import shutil

import numpy as np
import pytest
import tensorflow_datasets as tfds
from support.corpus_records import place_and_reason, read_corpus
from support.tfds_stories import prepare_from_stories

from precis.model.errors import UsageError
from precis.model.records.example import read_frames
from precis.model.text.document import Document
from precis.pipelines.corpus.task import DeadLetter
from precis.pipelines.corpus.tfds_sets import feature_kind

# Each story ends lines, marks highlights or breaks lines in another way.
_STORIES = [
    (
        "(CNN) -- A plain first line\n\nIt ends with a stop.\n\n"
        "@highlight\n\nOne\n\n@highlight\n\nTwo.\n"
    ),
    (
        "He said 'yes'\n\nShe said “no”\n\nThey said ‘so’\n\nWhy?\n\nOh!\n\n"
        '(Really)\n\nBack`\n\nDone...\n\n@highlight\n\nQuoted "end"\n'
    ),
    (
        "Windows lines\r\n\r\n  Indented and trailing  \t\r\n\r\n"
        "@highlight\r\n\r\nCarriage\r\n"
    ),
    (
        "A carriage\rin a line\n\u00a0No-break space around\u00a0\n\n"
        "@highlight\n\nÜmlaut — dash\n\n@highlight\n\nTwo lines\nin one\n"
    ),
    "Mentions @highlight inside\n\n@highlight and more\n\nAfter a mark with words\n",
    (
        "A line separator\u2028stays, a form feed\x0ctoo;\n\n"
        "@highlight\n\n\u0085next line\n"
    ),
    "Colon at the end:\n\nComma,\n\nEllipsis…\n\n@highlight\n\nx]\n",
    *(
        f"Story number {number} is long. {'Words ' * (10 * number)}\n\n"
        f"@highlight\n\nNumber {number}\n"
        for number in range(20)
    ),
]
_SPLITS = {"val": "validation", "test": "test", "train": "train"}


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    """Raw stories and URL lists; returns their folder and the split of each story."""
    folder = tmp_path_factory.mktemp("raw")
    (folder / "urls").mkdir()
    lists = {name: folder / "urls" / f"all_{name}.txt" for name in _SPLITS}
    splits = {}
    for index, story in enumerate(_STORIES):
        url = f"http://news.test/{index}"
        name = {8: "val", 9: "test"}.get(index % 10, "train")
        with open(lists[name], "a") as urls:
            urls.write(f"{url}\n")
        story_id = hashlib.sha1(url.encode()).hexdigest()
        splits[story_id] = _SPLITS[name]
        stories = folder / "stories" / ("cnn", "dailymail")[index % 2] / "stories"
        stories.mkdir(parents=True, exist_ok=True)
        (stories / f"{story_id}.story").write_bytes(story.encode())
    return folder, splits


@pytest.fixture(scope="module")
def data_dir(raw, tmp_path_factory):
    data_dir = tmp_path_factory.mktemp("tfds")
    prepare_from_stories(str(raw[0] / "stories"), str(raw[0] / "urls"), str(data_dir))
    return data_dir


def test_raw_stories_and_prepared_data_set_are_the_same_documents(raw, data_dir):
    folder, splits = raw
    _, prepared = read_corpus("tfds:cnn_dailymail", data_dir=str(data_dir))
    _, stories = read_corpus(f"stories:{folder}/stories")
    assert len(prepared) == len(_STORIES)
    assert {d.document_id: d.split for d in prepared} == splits
    assert sorted(map(_texts, prepared)) == sorted(map(_texts, stories))


def _texts(document):
    return (document.document_id, document.article, document.highlights)


def test_the_address_names_a_version_and_a_split(data_dir):
    flags = {"data_dir": str(data_dir)}
    records = read_corpus("tfds:cnn_dailymail/3.4.0:validation", **flags)[1]
    others = read_corpus("tfds:cnn_dailymail", split="validation", **flags)[1]
    assert records == others and {d.split for d in records} == {"validation"}
    for split, flag, message in (
        ("dev", "", "cnn_dailymail has no split 'dev'; it has .*validation"),
        (
            "test",
            "train",
            "cnn_dailymail:test names one split and --split train anothe",
        ),
    ):
        with pytest.raises(UsageError, match=message):
            read_corpus(f"tfds:cnn_dailymail:{split}", split=flag, **flags)


@pytest.mark.parametrize("damage", ["flipped", "short"])
def test_every_record_lost_to_damage_is_counted_whatever_the_tasks(
    data_dir, tmp_path, damage
):
    copy = tmp_path / "data"
    shutil.copytree(data_dir, copy)
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
        lost = [u for u in records if isinstance(u, DeadLetter)]
        assert place_and_reason(lost[0]) == (str(shard), "record 5", "broken_shard")
        assert lost[0].detail.startswith(
            "the shard is damaged or ends at record 5; records 5 to "
        )
        read = [d for d in records if isinstance(d, Document)]
        assert {d.source_file for d in read} == {str(shard)}
        assert [d.source_position for d in read] == [f"record {n}" for n in range(5)]
        assert sum(u.records for u in lost) == len(frames) - 5
        assert (len(lost) > 1) is is_cut
        assert lost[-1].detail.endswith(f" to {len(frames) - 1} are lost")


def test_features_are_kept_with_their_types(data_dir):
    flags = {"data_dir": str(data_dir), "keep_fields": "publisher,id:json"}
    _, records = read_corpus("tfds:cnn_dailymail:test", **flags)
    assert len(records) > 0
    for document in records:
        assert document.metadata["id"] == f'"{document.document_id}"'
        assert document.metadata["publisher"] in ("cnn", "dm")
    flags["keep_fields"] = "publishers"
    with pytest.raises(UsageError, match="has no field 'publishers', it has "):
        read_corpus("tfds:cnn_dailymail:test", **flags)


def test_the_types_of_features():
    features = {
        "int64": tfds.features.Scalar(dtype=np.uint8),
        "double": tfds.features.Scalar(dtype=np.float32),
        "bool": tfds.features.Scalar(dtype=np.bool_),
        "string": tfds.features.Text(),
    }
    for kind, feature in features.items():
        assert feature_kind("x", feature) == kind
    pair = tfds.features.Tensor(shape=(2,), dtype=np.float32)
    message = "--keep_fields x: the feature is a Tensor and no single value; write x:js"
    with pytest.raises(UsageError, match=message):
        feature_kind("x", pair)


def test_a_missing_data_set_fails_at_once_and_names_the_ways_out(tmp_path):
    with pytest.raises(
        UsageError,
        match=rf"tfds:cnn_dailymail is not prepared in {tmp_path}/\S+; prepare it with "
        "`tfds build cnn_dailymail`, or name the folder .* --data_dir",
    ):
        read_corpus("tfds:cnn_dailymail", data_dir=str(tmp_path))
    for name in ("no_such_set", "cnn_dailymail/9.9.9"):
        message = f"tfds:{name} is no data set that TensorFlow Datasets knows"
        with pytest.raises(UsageError, match=message):
            read_corpus(f"tfds:{name}", data_dir=str(tmp_path))


@pytest.mark.slow
def test_tfds_itself_reads_what_was_prepared(data_dir):
    import tensorflow_datasets as tfds

    rows = tfds.as_numpy(
        tfds.load(
            "cnn_dailymail", split="train", data_dir=str(data_dir), download=False
        )
    )
    theirs = {
        row["id"].decode(): (row["article"].decode(), row["highlights"].decode())
        for row in rows
    }
    ours = {
        d.document_id: (d.article, d.highlights)
        for d in read_corpus("tfds:cnn_dailymail:train", data_dir=str(data_dir))[1]
    }
    assert theirs == ours
    assert len(ours) > 10
