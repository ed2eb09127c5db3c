"""Tests of `precis prepare`: what the records are, that two runs are one, and that
nothing is lost without a trace.
"""

import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import fsspec
import numpy as np
import pyarrow.parquet as pq
import pytest
import tensorflow as tf
from command_line import contents, error_lines, exit_code, precis, write_jsonl
from prepared import SMALL, all_examples, examples, fail_at, info, story

from precis.model.errors import UsageError
from precis.model.extractive.oracle import oracle_sentences
from precis.model.records.example import read_labelled
from precis.model.text.article import Article
from precis.model.text.normalization import normalise
from precis.model.tokenization import vocabulary
from precis.model.tokenization.wordpiece import Tokenizer
from precis.pipelines import prepare as prepare_module
from precis.pipelines import vocabulary_pass
from precis.pipelines.encoding_pass import EncodeWorker
from precis.pipelines.prepare import prepare
from precis.pipelines.vocabulary_pass import find_duplicates


@pytest.fixture(autouse=True)
def one_time(monkeypatch):
    """Dead letters say when the run began."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")


def spaced(text):
    return "  " + text.replace(" ", "  ", 3) + "\n"


# In the order of the corpus: each line and what becomes of it.
LINES = [
    *[(story(index), "written") for index in range(20)],
    ("{broken", "failed"),
    (story(20), "written"),
    (
        story(90, article=spaced(story(20)["article"])),
        "duplicates",
    ),  # of the line before
    (
        story(91, article=spaced(story(3)["article"])),
        "duplicates",
    ),  # of one in another task
    (story(92, article="(CNN) -- "), "without_text"),
    (story(93, article=" \n"), "without_text"),
    (story(94, highlights=" \n "), "without_highlights"),
    ({"id": "d95", "article": "Rain fell. Nobody came."}, "without_highlights"),
    (
        story(96, article="Rain  fell. Nobody came."),
        "written",
    ),  # the same text, but this time with highlights
    (b'{"id": "d97", "article": "caf\xe9", "highlights": "x"}', "failed"),
    ("[1, 2]", "failed"),
    ({"id": "d98", "highlights": "x"}, "failed"),
    ({"id": "d99", "article": 7, "highlights": "x"}, "failed"),
    *[(story(index), "written") for index in range(21, 60)],
    (story(89, article=story(3)["article"]), "duplicates"),
]
FATES = [fate for _, fate in LINES]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_jsonl(
        tmp_path_factory.mktemp("corpus") / "news.jsonl", [line for line, _ in LINES]
    )


@pytest.fixture(scope="module")
def flags(corpus):
    """Several tasks, several splits."""
    return {
        "corpus": corpus,
        "task_bytes": 12_000,
        "validation_share": 0.2,
        "test_share": 0.2,
        **SMALL,
    }


@pytest.fixture(scope="module")
def undisturbed(flags, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        folder = tmp_path_factory.mktemp("undisturbed") / "records"
        assert precis("prepare", output=folder, **flags) == 0
    return folder


def split_by_hash(document_id, seed=17, validation=0.2, test=0.2):
    place = (
        int(hashlib.sha256(f"{seed}:{document_id}".encode()).hexdigest()[:16], 16)
        / 2**64
    )
    return (
        "validation"
        if place < validation
        else "test"
        if place < validation + test
        else "train"
    )


@pytest.fixture(scope="module")
def labelled(flags, tmp_path_factory):
    """The same records with oracle labels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        folder = tmp_path_factory.mktemp("labelled") / "records"
        assert precis("prepare", output=folder, oracle_sentences=2, **flags) == 0
    return folder


def labels(folder):
    """The labelled articles of a folder by document id."""
    ids = [example["id"] for example in all_examples(folder)]
    rows = [
        row
        for path in sorted(Path(folder).glob("*.tfrecord"))
        for row in read_labelled(str(path))
    ]
    return dict(zip(ids, rows, strict=True))


def test_records_with_oracle_labels_hold_the_sentences_and_which_are_best(labelled):
    found = labels(labelled)
    assert len(found) == FATES.count("written")
    picked = 0
    for line in (line for line, fate in LINES if fate == "written"):
        row = found[line["id"]]
        story_ = [
            " ".join(sentence.text.split())
            for sentence in Article.from_text(line["article"]).sentences
        ]
        assert (
            row.highlights == normalise(line["highlights"])
            and list(row.sentences) == story_
        )
        picks = oracle_sentences(story_, row.highlights, 2)
        assert list(row.oracle) == [pick.place for pick in picks]
        picked += len(picks)
    assert picked > FATES.count("written")


def test_labels_leave_the_rest_of_a_record_as_it_is(labelled, undisturbed):
    assert examples(labelled) == examples(undisturbed)
    one, other = info(labelled), info(undisturbed)
    assert (
        one["features"]
        == {**other["features"], "sentences": "bytes", "oracle": "int64"}
        and "oracle" not in other["features"]
    )
    assert (
        one["fingerprint"] != other["fingerprint"] and one["counts"] == other["counts"]
    )
    assert (labelled / "tokenizer/vocab.txt").read_bytes() == (
        undisturbed / "tokenizer/vocab.txt"
    ).read_bytes()


def test_two_runs_with_labels_are_equal_and_so_is_one_that_broke_off(
    labelled, flags, tmp_path, monkeypatch
):
    with monkeypatch.context() as patch:
        fail_at(patch, 2, [])
        assert (
            precis("prepare", output=tmp_path / "out", oracle_sentences=2, **flags) == 1
        )
    assert precis("prepare", output=tmp_path / "out", oracle_sentences=2, **flags) == 0
    assert contents(tmp_path / "out") == contents(labelled)


def test_labels_are_of_the_sentences_that_summarize_cuts(tmp_path):
    lines = [
        {
            "id": "a",
            "article": "(CNN) -- Rain  fell.\r\nIt was cold.",
            "highlights": "CNN.",
        }
    ]
    corpus_ = write_jsonl(tmp_path / "news.jsonl", lines)
    for strip, expected in (
        (True, ("Rain fell.", "It was cold.")),
        (False, ("(CNN) -- Rain fell.", "It was cold.")),
    ):
        out = tmp_path / str(strip)
        assert (
            precis(
                "prepare",
                corpus=corpus_,
                output=out,
                oracle_sentences=3,
                strip_boilerplate=strip,
                validation_share=0,
                **SMALL,
            )
            == 0
        )
        (row,) = labels(out).values()
        assert row.sentences == expected and row.oracle == (() if strip else (0,))


def test_a_negative_number_of_oracle_sentences_is_refused(flags, tmp_path):
    with pytest.raises(
        UsageError,
        match="--oracle_sentences must not be negative, but is -1; 0 keeps none",
    ):
        prepare(output=str(tmp_path / "out"), oracle_sentences=-1, **flags)


def test_the_corpus_is_cut_into_several_tasks(undisturbed):
    shards = info(undisturbed)["splits"]["train"]["shards"]
    assert (
        len(shards) >= 4
        and shards[0]["file"] == f"train-00000-of-{len(shards):05}.tfrecord"
    )


def test_every_record_is_accounted_for(undisturbed):
    counts = info(undisturbed)["counts"]
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
        sum(split["records"] for split in info(undisturbed)["splits"].values())
        == counts["written"]
        == len(all_examples(undisturbed))
    )


def test_the_first_of_equal_documents_is_kept_and_order_is_that_of_the_corpus(
    undisturbed,
):
    written = [line["id"] for line, fate in LINES if fate == "written"]
    found = examples(undisturbed)
    assert set(found) == {"train", "validation", "test"}
    for split, own in found.items():
        assert [example["id"] for example in own] == [
            name for name in written if split_by_hash(name) == split
        ]


def test_records_read_back_as_the_text_they_were_made_from(undisturbed):
    tokenizer = Tokenizer.load(str(undisturbed / "tokenizer"))
    stories = {line["id"]: line for line, fate in LINES if fate == "written"}
    for example in all_examples(undisturbed):
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
        example for example in all_examples(undisturbed) if example["id"] == "d96"
    ]
    assert tokenizer.decode([short["source"]]) == ["Rain fell. Nobody came."] and short[
        "source_tokens"
    ] == len(short["source"])


def test_uncut_records_are_whole_and_as_long_as_was_said(undisturbed, flags, tmp_path):
    assert (
        precis(
            "prepare",
            output=tmp_path,
            **{**flags, "max_source_tokens": 5000, "max_target_tokens": 5000},
        )
        == 0
    )
    tokenizer = Tokenizer.load(str(tmp_path / "tokenizer"))
    lengths = {
        example["id"]: example["source_tokens"] for example in all_examples(undisturbed)
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
    assert said_lengths == info(undisturbed)["source_lengths"] and said_lengths[
        "max"
    ] == max(lengths.values())
    assert said_lengths["mean"] == pytest.approx(
        sum(lengths.values()) / len(lengths), abs=1e-3
    )
    # Of the targets too, the length before the cut is told.
    assert (
        info(undisturbed)["target_lengths"]["max"]
        == info(tmp_path)["target_lengths"]["max"]
        == max(targets)
        > 10
    )


def test_what_the_description_says_of_the_files_is_so(undisturbed):
    described = info(undisturbed)
    files = [
        shard for split in described["splits"].values() for shard in split["shards"]
    ]
    assert sorted(shard["file"] for shard in files) == sorted(
        path.name for path in undisturbed.glob("*.tfrecord")
    )
    for shard in files:
        content = (undisturbed / shard["file"]).read_bytes()
        assert (shard["bytes"], shard["sha256"]) == (
            len(content),
            hashlib.sha256(content).hexdigest(),
        )
        assert shard["records"] == sum(
            1 for _ in tf.data.TFRecordDataset(str(undisturbed / shard["file"]))
        )
    assert (
        described["tokenizer_fingerprint"]
        == Tokenizer.load(str(undisturbed / "tokenizer")).fingerprint
    )
    assert (
        described["max_source_tokens"],
        described["max_target_tokens"],
        described["seed"],
    ) == (40, 10, 17)
    assert (
        not (undisturbed / "_tasks").exists()
        and (undisturbed / "_SUCCESS").read_text().strip() == described["fingerprint"]
    )


def test_dead_letters_say_where_and_why(undisturbed, corpus):
    rows = pq.read_table(undisturbed / "dead_letters").to_pylist()
    path = corpus.removeprefix("jsonl:")
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
    assert info(undisturbed)["failures"] == {f"read/{row['reason']}": 1 for row in rows}
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
        assert row["run_id"] == info(undisturbed)["fingerprint"][:16]


def test_two_runs_are_byte_identical(undisturbed, flags, tmp_path):
    assert precis("prepare", output=tmp_path / "again", **flags) == 0
    assert contents(tmp_path / "again") == contents(undisturbed)


def test_threads_change_nothing(undisturbed, flags, tmp_path):
    beam = {"direct_num_workers": 2, "direct_running_mode": "multi_threading"}
    assert precis("prepare", output=tmp_path / "threads", **flags, **beam) == 0
    assert contents(tmp_path / "threads") == contents(undisturbed)


@pytest.mark.slow
def test_processes_change_nothing(undisturbed, flags, tmp_path, capsys):
    beam = {"direct_num_workers": 2, "direct_running_mode": "multi_processing"}
    assert precis("prepare", output=tmp_path / "processes", **flags, **beam) == 0
    assert (
        f", {len(LINES) - FATES.count('failed')} documents, " in capsys.readouterr().err
    )  # counted in other processes
    assert contents(tmp_path / "processes") == contents(undisturbed)


def test_the_size_of_tasks_changes_no_record(undisturbed, flags, tmp_path):
    assert precis("prepare", output=tmp_path, **{**flags, "task_bytes": 1 << 20}) == 0
    assert len(list(tmp_path.glob("*.tfrecord"))) == 3
    assert examples(tmp_path) == examples(undisturbed)
    for name in (
        "source_lengths",
        "target_lengths",
        "counts",
        "failures",
        "tokenizer_fingerprint",
    ):
        assert info(tmp_path)[name] == info(undisturbed)[name]


def test_a_document_goes_to_the_split_it_names(tmp_path):
    lines = [
        story(index, part=["train", "test", "extra"][index % 3]) for index in range(12)
    ]
    corpus = write_jsonl(tmp_path / "c.jsonl", [*lines, story(13, part=None)])
    assert (
        precis(
            "prepare",
            corpus=corpus,
            output=tmp_path / "out",
            split_field="part",
            validation_share=1,
            test_share=0,
            **SMALL,
        )
        == 0
    )
    found = {
        split: [example["id"] for example in own]
        for split, own in examples(tmp_path / "out").items()
    }
    assert found == {
        "train": ["d00", "d03", "d06", "d09"],
        "test": ["d01", "d04", "d07", "d10"],
        "extra": ["d02", "d05", "d08", "d11"],
        "validation": ["d13"],
    }


def test_a_seed_makes_other_splits(flags, undisturbed, tmp_path):
    assert precis("prepare", output=tmp_path, seed=3, **flags) == 0
    found = {
        example["id"]: split
        for split, own in examples(tmp_path).items()
        for example in own
    }
    assert (
        found == {name: split_by_hash(name, seed=3) for name in found}
        and info(tmp_path)["seed"] == 3
    )
    assert found != {
        example["id"]: split
        for split, own in examples(undisturbed).items()
        for example in own
    }


def test_the_vocabulary_is_learned_from_the_training_split_alone(tmp_path):
    lines = [story(index, part="train") for index in range(12)]
    hidden = {
        "id": "x",
        "article": "Ж" * 30 + " fell.",
        "highlights": "Ж Ж",
        "part": "test",
    }
    corpus = write_jsonl(tmp_path / "c.jsonl", [*lines, hidden])
    assert (
        precis(
            "prepare",
            corpus=corpus,
            output=tmp_path / "out",
            split_field="part",
            **SMALL,
        )
        == 0
    )
    assert "Ж" not in (tmp_path / "out" / "tokenizer" / "vocab.txt").read_text()
    # By another route: all training texts at once.
    words = vocabulary.count_words(
        text
        for line in lines
        for text in (
            Article.from_text(line["article"]).body,
            normalise(line["highlights"]),
        )
    )
    assert (
        tmp_path / "out" / "tokenizer" / "vocab.txt"
    ).read_text().splitlines() == vocabulary.learn(words, size=600)


def test_lower_case_and_reserved_tokens(tmp_path):
    corpus = write_jsonl(tmp_path / "c.jsonl", [story(index) for index in range(12)])
    flags = {
        "corpus": corpus,
        "validation_share": 0,
        "test_share": 0,
        **SMALL,
        "reserved_tokens": "[A], [B],",
        "lower_case": True,
    }
    assert precis("prepare", output=tmp_path / "out", **flags) == 0
    tokenizer = Tokenizer.load(str(tmp_path / "out" / "tokenizer"))
    assert tokenizer.lower_case and tokenizer.vocabulary[4:6] == ("[A]", "[B]")
    for example in all_examples(tmp_path / "out"):
        line = story(int(example["id"][1:]))
        assert (
            Article.from_text(line["article"])
            .body.lower()
            .startswith(tokenizer.decode([example["source"]])[0])
        )
        assert example["highlights"] == normalise(
            line["highlights"]
        )  # the reference stays as it was


def test_reserved_tokens_that_cannot_be_are_refused(tmp_path, capsys):
    for tokens, wrong in (
        ("[PAD]", "[PAD]"),
        ("[A],[B],[A]", "[A]"),
        ("two words", "two words"),
    ):
        assert (
            precis(
                "prepare",
                corpus="sample:20",
                output=tmp_path / "out",
                reserved_tokens=tokens,
                **SMALL,
            )
            == 2
        )
        (line,) = error_lines(capsys.readouterr().err, "prepare")
        assert (
            f"--reserved_tokens holds {wrong!r}, which is there twice or has a space in it"
            in line
        )
    assert not (tmp_path / "out").exists()


def test_boilerplate_is_kept_on_request(tmp_path):
    lines = [
        story(index, article="(CNN) -- " + story(index)["article"])
        for index in range(12)
    ]
    corpus = write_jsonl(tmp_path / "c.jsonl", lines)
    starts = []
    for strip in (True, False):
        out = tmp_path / f"out-{strip}"
        assert (
            precis(
                "prepare", corpus=corpus, output=out, strip_boilerplate=strip, **SMALL
            )
            == 0
        )
        sources = Tokenizer.load(str(out / "tokenizer")).decode(
            [example["source"] for example in all_examples(out)]
        )
        starts.append([source.startswith("(CNN) -- ") for source in sources])
    assert starts == [[False] * 12, [True] * 12]


def test_a_tokenizer_is_used_again(undisturbed, tmp_path):
    corpus = write_jsonl(
        tmp_path / "c.jsonl", [story(index) for index in range(70, 80)]
    )
    known = prepare(
        corpus=corpus,
        output=str(tmp_path / "out"),
        tokenizer=str(undisturbed / "tokenizer"),
        max_source_tokens=40,
    )
    assert known.tokenizer_fingerprint == info(undisturbed)["tokenizer_fingerprint"]
    assert contents(tmp_path / "out" / "tokenizer") == contents(
        undisturbed / "tokenizer"
    )
    tokenizer = Tokenizer.load(str(undisturbed / "tokenizer"))
    for example in all_examples(tmp_path / "out"):
        assert (
            tokenizer.decode([example["source"]])[0][:30]
            == story(int(example["id"][1:]))["article"][:30]
        )


def test_a_tokenizer_that_is_none_is_refused(tmp_path):
    with pytest.raises(
        UsageError,
        match=r"--tokenizer .*/t is no tokenizer folder \(no tokenizer.json\) and holds none; name one, records, or",
    ):
        prepare(
            corpus="sample:20",
            output=str(tmp_path / "out"),
            tokenizer=str(tmp_path / "t"),
        )
    assert contents(tmp_path) == {}


def test_without_training_documents_there_is_no_vocabulary(tmp_path, capsys):
    corpus = write_jsonl(
        tmp_path / "c.jsonl", [story(index, highlights=None) for index in range(5)]
    )
    assert precis("prepare", corpus=corpus, output=tmp_path / "out", **SMALL) == 1
    (line,) = error_lines(capsys.readouterr().err, "prepare")
    assert (
        "the corpus has no training document with a text and highlights to learn a vocabulary from; check --article_field"
        in line
    )
    assert (
        not (tmp_path / "out" / "_SUCCESS").exists()
        and not (tmp_path / "out" / "dataset.json").exists()
    )


def test_without_a_record_the_job_fails(undisturbed, tmp_path, capsys):
    corpus = write_jsonl(
        tmp_path / "c.jsonl", [story(index, highlights=None) for index in range(5)]
    )
    assert (
        precis(
            "prepare",
            corpus=corpus,
            output=tmp_path / "out",
            tokenizer=undisturbed / "tokenizer",
        )
        == 1
    )
    (line,) = error_lines(capsys.readouterr().err, "prepare")
    assert (
        "no record was written: " in line
        and "'without_highlights': 5" in line
        and "check --article_field" in line
    )
    assert not (tmp_path / "out" / "_SUCCESS").exists()


def test_an_empty_corpus_is_refused(tmp_path, capsys):
    corpus = write_jsonl(tmp_path / "c.jsonl", [])
    assert precis("prepare", corpus=corpus, output=tmp_path / "out") == 2
    assert (
        "holds no documents; its files are empty" in capsys.readouterr().err
        and not (tmp_path / "out").exists()
    )


def test_a_missing_column_is_refused(tmp_path, capsys):
    corpus = write_jsonl(tmp_path / "c.jsonl", [story(0)])
    assert (
        precis("prepare", corpus=corpus, output=tmp_path / "out", article_field="text")
        == 2
    )
    assert (
        "has no field 'text', it has 'id', 'article', 'highlights'"
        in capsys.readouterr().err
        and not (tmp_path / "out").exists()
    )


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
    assert precis("prepare", output=tmp_path / "out", **flags) == 0
    assert info(tmp_path / "out")["counts"]["written"] == 7
    (example,) = [
        example for example in all_examples(tmp_path / "out") if example["id"] == "d06"
    ]
    assert len(example["source"]) == 40 and example["source_tokens"] > 300_000


def test_a_finished_job_is_left_alone(undisturbed, flags, capsys):
    before = {path: path.stat().st_mtime_ns for path in undisturbed.rglob("*")}
    assert precis("prepare", output=undisturbed, **flags) == 0
    assert {path: path.stat().st_mtime_ns for path in undisturbed.rglob("*")} == before
    assert f"written {FATES.count('written')}\n" in capsys.readouterr().out.replace(
        ", without", "\n, without"
    )


def test_records_of_other_settings_are_not_overwritten(undisturbed, flags, capsys):
    before = contents(undisturbed)
    assert (
        precis("prepare", output=undisturbed, **{**flags, "max_source_tokens": 41}) == 2
    )
    assert (
        "holds the finished result of another job" in capsys.readouterr().err
        and contents(undisturbed) == before
    )


def test_a_changed_corpus_is_another_job(tmp_path, capsys):
    corpus = write_jsonl(tmp_path / "c.jsonl", [story(index) for index in range(8)])
    assert precis("prepare", corpus=corpus, output=tmp_path / "out", **SMALL) == 0
    write_jsonl(tmp_path / "c.jsonl", [story(index) for index in range(9)])
    assert precis("prepare", corpus=corpus, output=tmp_path / "out", **SMALL) == 2
    assert "holds the finished result of another job" in capsys.readouterr().err


def test_too_many_failures_stop_the_job_and_more_patience_finishes_it(
    undisturbed, flags, tmp_path, capsys, monkeypatch
):
    out = tmp_path / "out"
    assert precis("prepare", output=out, max_failed_share=0, **flags) == 1
    (line,) = error_lines(capsys.readouterr().err, "prepare")
    assert (
        f"5 of {len(LINES)} records failed (read/" in line
        and f"see {out}/dead_letters" in line
    )
    assert (
        not (out / "_SUCCESS").exists()
        and pq.read_table(out / "dead_letters").num_rows == 5
    )

    def again(*_):
        raise AssertionError("this was done before")

    monkeypatch.setattr(EncodeWorker, "run", again)
    monkeypatch.setattr(prepare_module, "build_scan", again)
    assert precis("prepare", output=out, max_failed_share=0.5, **flags) == 0
    assert contents(out) == contents(undisturbed)


def test_a_job_that_broke_off_does_only_what_is_left(
    undisturbed, flags, tmp_path, monkeypatch, capsys
):
    out, begun = tmp_path / "out", []
    fail_at(monkeypatch, 2, begun)
    assert precis("prepare", output=out, **flags) == 1
    assert "the pipeline failed: " in capsys.readouterr().err
    finished = [int(path.stem) for path in (out / "_tasks").glob("0*.json")]
    assert 2 in begun and finished and 2 not in finished
    (out / "train-00002.tfrecord.0a1b2c3d.aside").write_bytes(b"half a file")
    again = []
    fail_at(monkeypatch, -1, again)
    assert precis("prepare", output=out, **flags) == 0
    assert set(again) & set(finished) == set() and 2 in again
    assert contents(out) == contents(undisturbed)


def test_a_job_that_broke_off_goes_on_with_the_same_settings_only(
    flags, tmp_path, monkeypatch, capsys
):
    fail_at(monkeypatch, 2, [])
    assert precis("prepare", output=tmp_path / "out", **flags) == 1
    assert (
        precis("prepare", output=tmp_path / "out", **{**flags, "vocabulary_size": 700})
        == 2
    )
    assert (
        "holds an unfinished job with other settings or another corpus"
        in capsys.readouterr().err
    )


def test_a_full_disk_is_one_line_and_leaves_no_half_shard(
    undisturbed, flags, tmp_path, monkeypatch, capsys
):
    real = os.replace

    def fail(source, target):
        if target.endswith(".tfrecord"):
            raise OSError(errno.ENOSPC, "No space left on device", target)
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        assert precis("prepare", output=tmp_path / "out", **flags) == 1
    stderr = capsys.readouterr().err
    (line,) = error_lines(stderr, "prepare")
    assert "No space left on device" in line and "Traceback" not in stderr
    assert not [
        name
        for name in contents(tmp_path / "out")
        if name.endswith((".tfrecord", ".aside", "_SUCCESS", "00000.json"))
    ]
    assert precis("prepare", output=tmp_path / "out", **flags) == 0
    assert contents(tmp_path / "out") == contents(undisturbed)


def wait_for(condition, process):
    deadline = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["scanning", "encoding"])
def test_a_killed_job_ends_as_an_undisturbed_one(tmp_path, moment):
    flags = {
        "corpus": "sample:1500",
        "task_bytes": (16 << 10) * 15,
        **SMALL,
    }  # 100 tasks of 15 documents
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    argv = [
        part
        for name, value in {**flags, "output": killed}.items()
        for part in (f"--{name}", str(value))
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "precis.pipelines.cli", "prepare", *argv],
        cwd=Path(__file__).parent.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    awaited = {"scanning": "job.json", "encoding": "00002.json"}[moment]
    try:
        wait_for((killed / "_tasks" / awaited).exists, process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    receipts = list((killed / "_tasks").glob("0*.json"))
    assert (killed / "_tasks" / "scan.json").exists() is (moment == "encoding")
    assert len(receipts) < 100 and bool(receipts) is (moment == "encoding")
    assert precis("prepare", output=killed, **flags) == 0
    assert precis("prepare", output=whole, **flags) == 0
    assert contents(killed) == contents(whole)


def test_an_object_store_gets_the_same_files(undisturbed, flags, corpus):
    fs = fsspec.filesystem("memory")
    fs.pipe_file("/news/news.jsonl", Path(corpus.removeprefix("jsonl:")).read_bytes())
    try:
        assert (
            precis(
                "prepare",
                output="memory://run/records",
                **{**flags, "corpus": "jsonl:memory://news/*.jsonl"},
            )
            == 0
        )
        found = {
            path.removeprefix("/run/records/"): fs.cat_file(path)
            for path in fs.find("/run/records")
        }
    finally:
        fs.rm("/", recursive=True)
    expected = contents(undisturbed)
    assert set(found) == set(expected)
    differing = {name for name in found if found[name] != expected[name]}
    # The paths of the corpus are part of what the job depends on.
    assert {name.partition("/")[0] for name in differing} == {
        "dataset.json",
        "_SUCCESS",
        "dead_letters",
    }


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


def test_a_stray_flag_stops_the_command_before_it_writes(tmp_path, capsys):
    assert (
        exit_code(
            "prepare",
            "--corpus",
            "sample:20",
            "--output",
            str(tmp_path / "out"),
            "--max_source_token",
            "3",
        )
        == 2
    )
    assert (
        "did you mean --max_source_tokens?" in capsys.readouterr().err
        and not (tmp_path / "out").exists()
    )
