"""The scheme tfds:NAME, with a data set that TFDS prepares from small raw stories."""

import hashlib
import shutil

import numpy as np
import pytest
import tensorflow_datasets as tfds
from support.corpus_records import place_and_reason, read_corpus

from precis.model.errors import UsageError
from precis.model.records.example import read_frames
from precis.model.text.document import Document
from precis.pipelines.corpus.task import DeadLetter
from precis.pipelines.corpus.tfds_sets import feature_kind

URL_LISTS = {"train": "all_train.txt", "val": "all_val.txt", "test": "all_test.txt"}
SPLIT_NAMES = {"val": "validation", "test": "test", "train": "train"}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """The folder of the data set; and the split and the texts of its documents by id.

    The builder of TFDS makes it of raw stories, with a download manager that returns
    local paths.
    """
    raw, data_dir = tmp_path_factory.mktemp("raw"), tmp_path_factory.mktemp("tfds")
    stories = {}
    for publisher in ("cnn", "dailymail"):
        (raw / publisher / "stories").mkdir(parents=True)
    for number in range(25):
        url = f"http://news.test/{number}"
        name = {8: "val", 9: "test"}.get(number % 10, "train")
        with open(raw / URL_LISTS[name], "a") as urls:
            urls.write(f"{url}\n")
        story_id = hashlib.sha1(url.encode()).hexdigest()
        article, highlight = (
            f"Zürich {number}. {'Words. ' * number}End.",
            f"H {number}.",
        )
        content = f"{article}\n\n@highlight\n\n{highlight}\n"
        (raw / "cnn" / "stories" / f"{story_id}.story").write_text(content)
        stories[story_id] = (SPLIT_NAMES[name], article, highlight)
    paths = {"cnn_stories": str(raw), "dm_stories": str(raw)}
    paths |= {f"{name}_urls": str(raw / file) for name, file in URL_LISTS.items()}

    class LocalFiles:
        def download_and_extract(self, urls):
            return {key: paths[key] for key in urls}

    upstream = tfds.builder_cls("cnn_dailymail")
    # TFDS names a data set after its class and refuses to register the name twice.
    with tfds.core.registered.skip_registration():

        class CnnDailymail(upstream):
            def _split_generators(self, dl_manager):
                return super()._split_generators(LocalFiles())

    CnnDailymail(data_dir=str(data_dir)).download_and_prepare()
    return data_dir, stories


def test_its_documents_are_read_with_their_splits_and_kept_fields(prepared):
    data_dir, stories = prepared
    flags = {"data_dir": str(data_dir), "keep_fields": "publisher,id:json"}
    _, documents = read_corpus("tfds:cnn_dailymail", **flags)
    assert len(documents) == len(stories)
    assert {
        d.document_id: (d.split, d.article, d.highlights) for d in documents
    } == stories
    for document in documents:
        assert document.metadata["id"] == f'"{document.document_id}"'
        assert document.metadata["publisher"] == "cnn"
    flags["keep_fields"] = "publishers"
    with pytest.raises(UsageError, match="has no field 'publishers', it has "):
        read_corpus("tfds:cnn_dailymail:test", **flags)


def test_the_address_names_a_version_and_a_split(prepared):
    flags = {"data_dir": str(prepared[0])}
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


def test_the_types_of_features():
    assert feature_kind(tfds.features.Scalar(dtype=np.uint8)) == "int64"
    assert feature_kind(tfds.features.Scalar(dtype=np.float32)) == "double"
    assert feature_kind(tfds.features.Scalar(dtype=np.bool_)) == "bool"
    assert feature_kind(tfds.features.Text()) == "string"
    assert feature_kind(tfds.features.Tensor(shape=(2,), dtype=np.float32)) == "json"


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
