"""Tests of `precis prepare`: what the records hold, and that none is lost."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from support.command_line import write_jsonl
from support.prepared import (
    FATES,
    LINES,
    SMALL,
    all_examples,
    examples,
    info,
    run_prepare,
    split_by_hash,
    story,
)

from precis.model.text.article import Article
from precis.model.text.normalization import normalise
from precis.model.tokenization.wordpiece import Tokenizer
from precis.pipelines import vocabulary_pass
from precis.pipelines.vocabulary_pass import find_duplicates

pytestmark = pytest.mark.usefixtures("one_time")


def test_the_corpus_is_cut_into_several_tasks(prepared_records):
    shards = info(prepared_records)["splits"]["train"]["shards"]
    assert (
        len(shards) >= 4
        and shards[0]["file"] == f"train-00000-of-{len(shards):05}.tfrecord"
    )


def test_every_record_is_accounted_for(prepared_records):
    counts = info(prepared_records)["counts"]
    assert counts == {
        "read": len(LINES),
        "written": FATES.count("written"),
        "failed": 5,
        "duplicates": 3,
        "skipped": 4,
        "without_text": 2,
        "without_highlights": 2,
    }
    assert (
        counts["read"]
        == counts["written"]
        + counts["failed"]
        + counts["duplicates"]
        + counts["skipped"]
    )
    assert (
        sum(split["records"] for split in info(prepared_records)["splits"].values())
        == counts["written"]
        == len(all_examples(prepared_records))
    )


def test_the_first_of_equal_documents_is_kept_and_order_is_that_of_the_corpus(
    prepared_records,
):
    written = [line["id"] for line, fate in LINES if fate == "written"]
    by_split = examples(prepared_records)
    assert set(by_split) == {"train", "validation", "test"}
    for split, records in by_split.items():
        assert [example["id"] for example in records] == [
            name for name in written if split_by_hash(name) == split
        ]


def test_records_read_back_as_the_text_they_were_made_from(prepared_records):
    tokenizer = Tokenizer.load(str(prepared_records / "tokenizer"))
    stories = {line["id"]: line for line, fate in LINES if fate == "written"}
    for example in all_examples(prepared_records):
        line = stories[example["id"]]
        source, target = tokenizer.decode([example["source"], example["target"]])
        assert example["highlights"] == normalise(line["highlights"])
        assert (
            len(example["source"]) == min(example["source_tokens"], 40)
            and len(example["target"]) <= 10
        )
        if example["id"] != "d96":
            assert (
                len(source) > 40
                and Article.from_text(line["article"]).body.startswith(source)
                and example["source_tokens"] > 40
            )
            assert len(target) >= 10 and example["highlights"].startswith(target)
    (short,) = [
        example for example in all_examples(prepared_records) if example["id"] == "d96"
    ]
    assert tokenizer.decode([short["source"]]) == ["Rain fell. Nobody came."] and short[
        "source_tokens"
    ] == len(short["source"])


def test_uncut_records_are_whole_and_as_long_as_was_said(
    prepared_records, prepare_flags, tmp_path
):
    run_prepare(
        output=tmp_path,
        **{**prepare_flags, "max_source_tokens": 5000, "max_target_tokens": 5000},
    )
    tokenizer = Tokenizer.load(str(tmp_path / "tokenizer"))
    lengths = {
        example["id"]: example["source_tokens"]
        for example in all_examples(prepared_records)
    }
    stories = {line["id"]: line for line, fate in LINES if fate == "written"}
    for example in all_examples(tmp_path):
        assert (
            len(example["source"]) == example["source_tokens"] == lengths[example["id"]]
        )
        assert tokenizer.decode([example["source"]]) == [
            Article.from_text(stories[example["id"]]["article"]).body
        ]
        assert tokenizer.decode([example["target"]]) == [example["highlights"]]
    said_lengths, targets = (
        info(tmp_path)["source_lengths"],
        [len(example["target"]) for example in all_examples(tmp_path)],
    )
    assert said_lengths == info(prepared_records)["source_lengths"] and said_lengths[
        "max"
    ] == max(lengths.values())
    assert said_lengths["mean"] == pytest.approx(
        sum(lengths.values()) / len(lengths), abs=1e-3
    )
    # Of the targets too, the length before the cut is told.
    assert (
        info(prepared_records)["target_lengths"]["max"]
        == info(tmp_path)["target_lengths"]["max"]
        == max(targets)
        > 10
    )


def test_what_the_description_says_of_the_files_is_so(prepared_records):
    described = info(prepared_records)
    files = [
        shard for split in described["splits"].values() for shard in split["shards"]
    ]
    assert sorted(shard["file"] for shard in files) == sorted(
        path.name for path in prepared_records.glob("*.tfrecord")
    )
    for shard in files:
        content = (prepared_records / shard["file"]).read_bytes()
        assert (shard["bytes"], shard["sha256"]) == (
            len(content),
            hashlib.sha256(content).hexdigest(),
        )
        assert shard["records"] == sum(
            1 for _ in tf.data.TFRecordDataset(str(prepared_records / shard["file"]))
        )
    assert (
        described["tokenizer_fingerprint"]
        == Tokenizer.load(str(prepared_records / "tokenizer")).fingerprint
    )
    assert (
        described["max_source_tokens"],
        described["max_target_tokens"],
        described["seed"],
    ) == (40, 10, 17)
    assert (
        not (prepared_records / "_tasks").exists()
        and (prepared_records / "_SUCCESS").read_text().strip()
        == described["fingerprint"]
    )


def test_dead_letters_say_where_and_why(prepared_records, prepare_flags):
    rows = pq.read_table(prepared_records / "dead_letters").to_pylist()
    path = prepare_flags["corpus"].removeprefix("jsonl:")
    content, broken = (
        Path(path).read_bytes(),
        [line for line, fate in LINES if fate == "failed"],
    )
    assert [row["reason"] for row in rows] == [
        "invalid_json",
        "invalid_utf8",
        "not_an_object",
        "missing_field",
        "wrong_type",
    ]
    assert info(prepared_records)["failures"] == {
        f"read/{row['reason']}": 1 for row in rows
    }
    for row, line in zip(rows, broken, strict=True):
        raw = (
            line
            if isinstance(line, bytes)
            else line.encode()
            if isinstance(line, str)
            else json.dumps(line).encode()
        ) + b"\n"
        assert (row["raw"], row["stage"], row["location"]) == (
            raw,
            "read",
            f"{path}:byte {content.index(raw)}",
        )
        assert row["document_id"] is None
        assert row["run_id"] == info(prepared_records)["fingerprint"][:16]


def test_the_size_of_tasks_changes_no_record(prepared_records, prepare_flags, tmp_path):
    run_prepare(output=tmp_path, **{**prepare_flags, "task_bytes": 1 << 20})
    assert len(list(tmp_path.glob("*.tfrecord"))) == 3
    assert examples(tmp_path) == examples(prepared_records)
    for name in (
        "source_lengths",
        "target_lengths",
        "counts",
        "failures",
        "tokenizer_fingerprint",
    ):
        assert info(tmp_path)[name] == info(prepared_records)[name]


def test_empty_files_and_a_very_long_line_among_others(tmp_path):
    write_jsonl(tmp_path / "c" / "a.jsonl", [])
    write_jsonl(tmp_path / "c" / "b.jsonl", [story(index) for index in range(5)])
    long = " ".join(story(index)["article"] for index in range(100)) + " "
    write_jsonl(
        tmp_path / "c" / "c.jsonl",
        [story(6, article=long * (2_000_000 // len(long))), story(7)],
    )
    flags = {
        "corpus": f"jsonl:{tmp_path}/c/*.jsonl",
        "task_bytes": 100_000,
        "validation_share": 0,
        "test_share": 0,
        **SMALL,
    }
    run_prepare(output=tmp_path / "out", **flags)
    assert info(tmp_path / "out")["counts"]["written"] == 7
    (example,) = [
        example for example in all_examples(tmp_path / "out") if example["id"] == "d06"
    ]
    assert len(example["source"]) == 40 and example["source_tokens"] > 300_000


def test_duplicates_are_found_by_task_and_record():
    def packed(*places):
        return np.array(list(places), vocabulary_pass._PLACE).tobytes()

    a, b, zero = b"a" * 16, b"b" * 16, b"a" * 15 + b"\0"
    parts = [
        packed((a, 10, 0), (b, 10, 7)),
        packed((a, 9, 300), (a, 9, 5), (b, 2, 1)),
        packed((zero, 1, 1)),
    ]
    assert (
        find_duplicates(parts) == find_duplicates(parts[::-1]) == {9: [300], 10: [0, 7]}
    )
