"""The scheme tfds:NAME, with a data set that TFDS prepares from small raw stories."""

import hashlib
import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow_datasets as tfds
from support.corpus_records import place_and_reason, read_corpus
from support.tfds_stories import prepare_from_stories

from precis.model.errors import UsageError
from precis.model.records.tfrecord import frame, read_frames
from precis.model.text.document import Document
from precis.pipelines.corpus import tfds_sets
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import list_tasks
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
    for publisher in ("cnn", "dailymail"):
        (folder / "stories" / publisher / "stories").mkdir(parents=True)
    (folder / "urls").mkdir()
    urls = {name: [] for name in _SPLITS}
    splits = {}
    for index, story in enumerate(_STORIES):
        url = f"http://news.test/{index}"
        name = {8: "val", 9: "test"}.get(index % 10, "train")
        urls[name].append(url)
        story_id = hashlib.sha1(url.encode()).hexdigest()
        splits[story_id] = _SPLITS[name]
        (
            folder
            / "stories"
            / ("cnn", "dailymail")[index % 2]
            / "stories"
            / f"{story_id}.story"
        ).write_bytes(story.encode())
    for name, listed in urls.items():
        (folder / "urls" / f"all_{name}.txt").write_text(
            "".join(f"{url}\n" for url in listed)
        )
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


def test_any_cut_gives_the_same_documents(data_dir):
    counts = []
    whole = read_corpus("tfds:cnn_dailymail", data_dir=str(data_dir))[1]
    for task_bytes in (1_000, 10_000, 1 << 30):
        tasks, records = read_corpus(
            "tfds:cnn_dailymail", data_dir=str(data_dir), task_bytes=task_bytes
        )
        assert records == whole
        counts.append(len(tasks))
    assert counts[0] > counts[1] > counts[2] == 3


def test_the_address_names_a_version_and_a_split(data_dir):
    records = read_corpus(
        "tfds:cnn_dailymail/3.4.0:validation", data_dir=str(data_dir)
    )[1]
    assert (
        records
        == read_corpus(
            "tfds:cnn_dailymail", split="validation", data_dir=str(data_dir)
        )[1]
    )
    assert {d.split for d in records} == {"validation"}
    with pytest.raises(
        UsageError, match="tfds:cnn_dailymail has no split 'dev'; it has .*validation"
    ):
        read_corpus("tfds:cnn_dailymail:dev", data_dir=str(data_dir))
    with pytest.raises(
        UsageError,
        match="tfds:cnn_dailymail:test names one split and --split train another",
    ):
        read_corpus("tfds:cnn_dailymail:test", split="train", data_dir=str(data_dir))


def test_other_features_may_be_read(data_dir):
    _, records = read_corpus(
        "tfds:cnn_dailymail",
        data_dir=str(data_dir),
        highlights_field="publisher",
        id_field="article",
    )
    assert {d.highlights for d in records} == {"cnn", "dm"}
    assert all(d.document_id == d.article for d in records)
    with pytest.raises(
        UsageError,
        match=(
            "has no field 'summary', it has 'article', 'highlights', 'id', 'publisher'"
        ),
    ):
        read_corpus(
            "tfds:cnn_dailymail", data_dir=str(data_dir), highlights_field="summary"
        )


def test_every_record_lost_to_damage_is_counted_whatever_the_tasks(data_dir, tmp_path):
    copy = tmp_path / "data"
    shutil.copytree(data_dir, copy)
    (shard,) = copy.glob("cnn_dailymail/3.4.0/*train*")
    with open(shard, "rb") as file:
        frames = list(read_frames(file))
    content = bytearray(shard.read_bytes())
    sixth_record = sum(len(frame) + 16 for frame in frames[:5])
    content[sixth_record + 20] ^= 1
    shard.write_bytes(content)
    results = [
        read_corpus("tfds:cnn_dailymail:train", data_dir=str(copy), task_bytes=size)[1]
        for size in (1_000, 1 << 30)
    ]
    for records, is_cut in zip(results, (True, False), strict=True):
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


def test_the_missing_records_of_a_short_shard_are_unreadable(data_dir, tmp_path):
    copy = tmp_path / "data"
    shutil.copytree(data_dir, copy)
    (shard,) = copy.glob("cnn_dailymail/3.4.0/*train*")
    with open(shard, "rb") as file:
        frames = list(read_frames(file))
    shard.write_bytes(b"".join(frame(content) for content in frames[:-2]))
    _, records = read_corpus("tfds:cnn_dailymail:train", data_dir=str(copy))
    assert [(u.reason, u.records) for u in records if isinstance(u, DeadLetter)] == [
        ("broken_shard", 2)
    ]
    assert sum(isinstance(d, Document) for d in records) == len(frames) - 2


def test_a_record_beyond_the_limit_is_unreadable(data_dir):
    corpus = "tfds:cnn_dailymail:train"
    options = CorpusOptions(corpus=corpus, data_dir=str(data_dir))
    tasks = list_tasks(options)
    sizes = [len(each.raw) for task in tasks for each in tfds_sets.read(task, options)]
    limit = sorted(sizes)[-2]
    small = SimpleNamespace(max_record_bytes=limit)
    records = [record for task in tasks for record in tfds_sets.read(task, small)]
    (lost,) = [r.content for r in records if isinstance(r.content, DeadLetter)]
    assert (
        lost.reason == "record_too_large"
        and lost.raw == records[sizes.index(max(sizes))].raw
    )
    assert lost.detail == (
        f"the record has {max(sizes):,} bytes, more than {limit:,} (--max_record_mb)"
    )


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


def test_reading_does_not_import_tensorflow(data_dir):
    script = f"""
import sys
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import list_tasks, read_task
options = CorpusOptions(corpus="tfds:cnn_dailymail", data_dir={str(data_dir)!r})
documents = sum(1 for task in list_tasks(options) for _ in read_task(task, options))
print(documents, "tensorflow" in sys.modules)
"""
    output = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    assert output.split() == [str(len(_STORIES)), "False"]


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
