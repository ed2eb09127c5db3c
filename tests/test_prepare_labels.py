"""Tests of `precis prepare --oracle_sentences`: the labels of the records."""

from pathlib import Path

import pytest
from support.command_line import contents, precis, write_jsonl
from support.prepared import (
    FATES,
    LINES,
    SMALL,
    all_examples,
    examples,
    fail_at,
    info,
    run_prepare,
)

from precis.model.errors import UsageError
from precis.model.extractive.oracle import oracle_sentences
from precis.model.records.example import read_labelled
from precis.model.text.article import Article
from precis.model.text.normalization import normalise
from precis.pipelines.prepare import prepare

pytestmark = pytest.mark.usefixtures("one_time")


@pytest.fixture(scope="module")
def labelled(prepare_flags, tmp_path_factory):
    """The same records with oracle labels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        folder = tmp_path_factory.mktemp("labelled") / "records"
        run_prepare(output=folder, oracle_sentences=2, **prepare_flags)
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
    articles = labels(labelled)
    assert len(articles) == FATES.count("written")
    picked = 0
    for line in (line for line, fate in LINES if fate == "written"):
        row = articles[line["id"]]
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


def test_labels_leave_the_rest_of_a_record_as_it_is(labelled, prepared_records):
    assert examples(labelled) == examples(prepared_records)
    described, plain = info(labelled), info(prepared_records)
    assert (
        described["features"]
        == {**plain["features"], "sentences": "bytes", "oracle": "int64"}
        and "oracle" not in plain["features"]
    )
    assert (
        described["fingerprint"] != plain["fingerprint"]
        and described["counts"] == plain["counts"]
    )
    assert (labelled / "tokenizer/vocab.txt").read_bytes() == (
        prepared_records / "tokenizer/vocab.txt"
    ).read_bytes()


def test_two_runs_with_labels_are_equal_and_so_is_one_that_broke_off(
    labelled, prepare_flags, tmp_path, monkeypatch
):
    with monkeypatch.context() as patch:
        fail_at(patch, 2, [])
        assert (
            precis(
                "prepare", output=tmp_path / "out", oracle_sentences=2, **prepare_flags
            )
            == 1
        )
    run_prepare(output=tmp_path / "out", oracle_sentences=2, **prepare_flags)
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
        run_prepare(
            corpus=corpus_,
            output=out,
            oracle_sentences=3,
            strip_boilerplate=strip,
            validation_share=0,
            **SMALL,
        )
        (row,) = labels(out).values()
        assert row.sentences == expected and row.oracle == (() if strip else (0,))


def test_a_negative_number_of_oracle_sentences_is_refused(prepare_flags, tmp_path):
    with pytest.raises(
        UsageError,
        match="--oracle_sentences must not be negative, but is -1; 0 keeps none",
    ):
        prepare(output=str(tmp_path / "out"), oracle_sentences=-1, **prepare_flags)
