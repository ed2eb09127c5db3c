"""Tests of `precis prepare`: what the records of a whole run hold, and that none is
lost.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from support.prepared import (
    FATES,
    LINES,
    all_examples,
    examples,
    info,
    labels,
    records_job,
    split_by_hash,
)

from precis.model.extractive.oracle import oracle_sentences
from precis.model.records.example import FEATURES, ORACLE_FEATURES
from precis.model.text.article import Article
from precis.model.text.normalization import normalise
from precis.model.tokenization import vocabulary
from precis.model.tokenization.wordpiece import Tokenizer
from precis.pipelines.corpus.dead_letters import read_letters
from precis.pipelines.options.prepare import PrepareOptions
from precis.pipelines.prepare.prepare import prepare
from precis.pipelines.prepare.vocabulary_pass import publish_scan, read_duplicates
from precis.pipelines.run.accounts import OUTCOMES

WRITTEN = {line["id"]: line for line, fate in LINES if fate == "written"}


def test_the_corpus_is_cut_into_several_tasks(prepared_records):
    shards = info(prepared_records)["splits"]["train"]["shards"]
    assert len(shards) >= 4
    assert shards[0]["file"] == f"train-00000-of-{len(shards):05}.tfrecord"


def test_every_record_is_accounted_for(prepared_records):
    counts = info(prepared_records)["counts"]
    assert counts == {
        "read": len(LINES),
        "written": FATES.count("written"),
        "failed": 5,
        "empty": 2,
        "reused": 0,
        "other_split": 0,
        "not_selected": 0,
        "duplicates": 3,
        "skipped": 2,
        "without_highlights": 2,
    }
    assert counts["read"] == sum(counts[name] for name in OUTCOMES)
    splits = info(prepared_records)["splits"].values()
    assert sum(split["records"] for split in splits) == counts["written"]
    assert len(all_examples(prepared_records)) == counts["written"]


def test_the_first_of_equal_documents_is_kept_and_order_is_that_of_the_corpus(
    prepared_records,
):
    by_split = examples(prepared_records)
    assert set(by_split) == {"train", "validation", "test"}
    for split, records in by_split.items():
        assert [example["id"] for example in records] == [
            name for name in WRITTEN if split_by_hash(name) == split
        ]


def test_records_read_back_as_the_text_they_were_made_from(prepared_records):
    tokenizer = Tokenizer.load(str(prepared_records / "tokenizer"))
    for example in all_examples(prepared_records):
        line = WRITTEN[example["id"]]
        source, target = tokenizer.decode([example["source"], example["target"]])
        body = Article.from_text(line["article"]).body
        assert example["highlights"] == normalise(line["highlights"])
        assert body.startswith(source)
        assert len(example["source"]) == min(example["source_tokens"], 40)
        assert len(example["target"]) <= 10
        if example["id"] == "d96":
            assert source == body == "Rain fell. Nobody came."
        else:
            assert len(source) > 40 and example["source_tokens"] > 40
            assert len(target) >= 10 and example["highlights"].startswith(target)


def test_the_vocabulary_is_learned_from_the_training_split_alone(prepared_records):
    """By another route: all training texts at once. Duplicates are among them, because
    they are known only after this pass.
    """

    def learned_from(lines):
        texts = (
            text
            for line in lines
            for text in (
                Article.from_text(line["article"]).body,
                normalise(line["highlights"]),
            )
        )
        return vocabulary.learn(vocabulary.count_words(texts), size=600)

    pairs = [line for line, fate in LINES if fate in ("written", "duplicates")]
    training = [line for line in pairs if split_by_hash(line["id"]) == "train"]
    pieces = (prepared_records / "tokenizer/vocab.txt").read_text().splitlines()
    assert pieces == learned_from(training) != learned_from(pairs)


def test_one_task_and_other_limits_give_the_same_records_uncut(
    prepared_records, prepare_flags, tmp_path
):
    limits = {"max_source_tokens": 5000, "max_target_tokens": 5000}
    flags = {**prepare_flags, **limits, "task_bytes": 1 << 20, "oracle_sentences": 0}
    prepare(output=str(tmp_path), **flags)
    assert len(list(tmp_path.glob("*.tfrecord"))) == 3
    tokenizer = Tokenizer.load(str(tmp_path / "tokenizer"))
    whole, cut = examples(tmp_path), examples(prepared_records)
    assert whole.keys() == cut.keys()
    for split, records in whole.items():
        for example, short in zip(records, cut[split], strict=True):
            article = Article.from_text(WRITTEN[example["id"]]["article"])
            assert tokenizer.decode([example["source"]]) == [article.body]
            assert tokenizer.decode([example["target"]]) == [example["highlights"]]
            assert len(example["source"]) == example["source_tokens"]
            first = {"source": example["source"][:40], "target": example["target"][:10]}
            assert {**example, **first} == short
    described, of_cut = info(tmp_path), info(prepared_records)
    for name in ("source_lengths", "target_lengths"):
        cut_counts = described[name].pop("cut"), of_cut[name].pop("cut")
        assert cut_counts[0] == 0 < cut_counts[1] <= len(WRITTEN)
        assert described[name] == of_cut[name]
    for name in ("counts", "failures"):
        assert described[name] == of_cut[name]
    assert described["tokenizer_fingerprint"] == of_cut["tokenizer_fingerprint"]
    assert described["features"] == FEATURES
    shard = tf.data.TFRecordDataset([str(path) for path in tmp_path.glob("test-*")])
    record = tf.train.Example.FromString(next(shard.as_numpy_iterator()))
    assert record.features.feature.keys() == FEATURES.keys()  # no labels
    lengths = [example["source_tokens"] for example in all_examples(tmp_path)]
    assert described["source_lengths"]["max"] == max(lengths)
    mean = pytest.approx(np.mean(lengths), abs=1e-3)
    assert described["source_lengths"]["mean"] == mean
    # Of the targets too, the length before the cut is told.
    targets = [len(example["target"]) for example in all_examples(tmp_path)]
    assert described["target_lengths"]["max"] == max(targets) > 10


def test_what_the_description_says_of_the_files_is_so(prepared_records):
    described = info(prepared_records)
    files = [
        shard for split in described["splits"].values() for shard in split["shards"]
    ]
    assert sorted(shard["file"] for shard in files) == sorted(
        path.name for path in prepared_records.glob("*.tfrecord")
    )
    for shard in files:
        path = prepared_records / shard["file"]
        content = path.read_bytes()
        assert shard["bytes"] == len(content)
        assert shard["sha256"] == hashlib.sha256(content).hexdigest()
        assert shard["records"] == len(list(tf.data.TFRecordDataset(str(path))))
    tokenizer = Tokenizer.load(str(prepared_records / "tokenizer"))
    assert described["tokenizer_fingerprint"] == tokenizer.fingerprint
    assert described["source_tokenizer_fingerprint"] is None
    assert (described["max_source_tokens"], described["max_target_tokens"]) == (40, 10)
    assert (described["seed"], described["target"]) == (17, "highlights")
    assert described["features"] == {**FEATURES, **ORACLE_FEATURES}
    assert not (prepared_records / "_tasks").exists()
    finished = (prepared_records / "_SUCCESS").read_text()
    assert finished.split()[0] == described["fingerprint"]


def test_dead_letters_say_where_and_why(prepared_records, prepare_flags):
    paths = sorted((prepared_records / "dead_letters").iterdir())
    letters = [letter for path in paths for letter in read_letters(str(path))]
    rows = [letter for letter in letters if letter["reason"] != "empty_article"]
    assert len(letters) == len(rows) + 2
    path = prepare_flags["corpus"].removeprefix("jsonl:")
    content = Path(path).read_bytes()
    broken = [line for line, fate in LINES if fate == "failed"]
    reasons = [row["reason"] for row in rows]
    assert reasons == [
        "invalid_json",
        "invalid_utf8",
        "not_an_object",
        "missing_field",
        "wrong_type",
    ]
    counted = {f"read/{reason}": 1 for reason in reasons}
    assert info(prepared_records)["failures"] == counted
    for row, line in zip(rows, broken, strict=True):
        if isinstance(line, dict):
            line = json.dumps(line)
        raw = (line if isinstance(line, bytes) else line.encode()) + b"\n"
        assert (row["raw"], row["stage"], row["source_file"]) == (raw, "read", path)
        assert row["source_position"] == f"byte {content.index(raw)}"
        assert row["document_id"] is None
        assert row["run_id"] == info(prepared_records)["fingerprint"][:16]


def test_labels_are_the_sentences_of_an_article_and_which_are_best(prepared_records):
    articles = labels(prepared_records)
    assert set(articles) == set(WRITTEN)
    picked = 0
    for name, line in WRITTEN.items():
        row = articles[name]
        texts = [
            " ".join(sentence.text.split())
            for sentence in Article.from_text(line["article"]).sentences
        ]
        assert row.highlights == normalise(line["highlights"])
        assert list(row.sentences) == texts
        picks = oracle_sentences(texts, row.highlights, 2)
        assert list(row.oracle) == [pick.place for pick in picks]
        picked += len(picks)
    assert picked > len(WRITTEN)


def test_duplicates_are_found_by_task_and_record(prepared_records, tmp_path):
    a, b, zero = b"a" * 16, b"b" * 16, b"a" * 15 + b"\0"
    hashes = [[(b, 1), (a, 300), (zero, 5)], [(a, 7)], [(a, 5), (b, 0), (a, 6)]]
    job = records_job(str(tmp_path), len(hashes))
    for number, places in enumerate(hashes):
        rows = {
            "hashes": [{"hash": h, "place": number << 32 | n} for h, n in places],
            "words": [{"word": "rain", "count": 2}],
        }
        for kind, of_kind in rows.items():
            path = tmp_path / "_tasks" / kind / f"{number:05d}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.Table.from_pylist(of_kind), path)
    tokenizer = str(prepared_records / "tokenizer")
    publish_scan(PrepareOptions(output=str(tmp_path), tokenizer=tokenizer), job)
    assert [read_duplicates(job, task) for task in range(3)] == [set(), {7}, {0, 5, 6}]
