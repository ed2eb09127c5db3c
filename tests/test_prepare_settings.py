"""Tests of `precis prepare`: splits, vocabularies, and settings that are refused."""

import pytest
from support.command_line import contents, error_lines, exit_code, precis, write_jsonl
from support.prepared import (
    SMALL,
    all_examples,
    examples,
    info,
    run_prepare,
    split_by_hash,
    story,
)

from precis.model.errors import DataError, UsageError
from precis.model.text.article import Article
from precis.model.text.normalization import normalise
from precis.model.tokenization import vocabulary
from precis.model.tokenization.wordpiece import Tokenizer
from precis.pipelines.prepare import prepare

pytestmark = pytest.mark.usefixtures("one_time")


def test_a_document_goes_to_the_split_it_names(tmp_path):
    lines = [
        story(index, part=["train", "test", "extra"][index % 3]) for index in range(12)
    ]
    corpus = write_jsonl(tmp_path / "c.jsonl", [*lines, story(13, part=None)])
    run_prepare(
        corpus=corpus,
        output=tmp_path / "out",
        split_field="part",
        validation_share=1,
        test_share=0,
        **SMALL,
    )
    ids = {
        split: [example["id"] for example in records]
        for split, records in examples(tmp_path / "out").items()
    }
    assert ids == {
        "train": ["d00", "d03", "d06", "d09"],
        "test": ["d01", "d04", "d07", "d10"],
        "extra": ["d02", "d05", "d08", "d11"],
        "validation": ["d13"],
    }


def test_a_seed_makes_other_splits(prepare_flags, prepared_records, tmp_path):
    run_prepare(output=tmp_path, seed=3, **prepare_flags)
    splits = {
        example["id"]: split
        for split, records in examples(tmp_path).items()
        for example in records
    }
    assert (
        splits == {name: split_by_hash(name, seed=3) for name in splits}
        and info(tmp_path)["seed"] == 3
    )
    assert splits != {
        example["id"]: split
        for split, records in examples(prepared_records).items()
        for example in records
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
    run_prepare(
        corpus=corpus,
        output=tmp_path / "out",
        split_field="part",
        **SMALL,
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
    run_prepare(output=tmp_path / "out", **flags)
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
            f"--reserved_tokens holds {wrong!r}, which is there twice or has a space "
            "in it" in line
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
        run_prepare(corpus=corpus, output=out, strip_boilerplate=strip, **SMALL)
        sources = Tokenizer.load(str(out / "tokenizer")).decode(
            [example["source"] for example in all_examples(out)]
        )
        starts.append([source.startswith("(CNN) -- ") for source in sources])
    assert starts == [[False] * 12, [True] * 12]


def test_a_tokenizer_is_used_again(prepared_records, tmp_path):
    corpus = write_jsonl(
        tmp_path / "c.jsonl", [story(index) for index in range(70, 80)]
    )
    known = prepare(
        corpus=corpus,
        output=str(tmp_path / "out"),
        tokenizer=str(prepared_records / "tokenizer"),
        max_source_tokens=40,
    )
    assert (
        known.tokenizer_fingerprint == info(prepared_records)["tokenizer_fingerprint"]
    )
    assert contents(tmp_path / "out" / "tokenizer") == contents(
        prepared_records / "tokenizer"
    )
    tokenizer = Tokenizer.load(str(prepared_records / "tokenizer"))
    for example in all_examples(tmp_path / "out"):
        assert (
            tokenizer.decode([example["source"]])[0][:30]
            == story(int(example["id"][1:]))["article"][:30]
        )


def test_a_tokenizer_that_is_none_is_refused(tmp_path):
    with pytest.raises(
        UsageError,
        match=r"--tokenizer .*/t is no tokenizer folder \(no tokenizer.json\) and "
        r"holds none; name one, records, or",
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
        "the corpus has no training document with a text and highlights to learn a "
        "vocabulary from; check --article_field" in line
    )
    assert (
        not (tmp_path / "out" / "_SUCCESS").exists()
        and not (tmp_path / "out" / "dataset.json").exists()
    )


def test_without_a_record_the_job_fails(prepared_records, tmp_path, capsys):
    corpus = write_jsonl(
        tmp_path / "c.jsonl", [story(index, highlights=None) for index in range(5)]
    )
    assert (
        precis(
            "prepare",
            corpus=corpus,
            output=tmp_path / "out",
            tokenizer=prepared_records / "tokenizer",
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


@pytest.mark.parametrize("flag", ["tokenizer", "source_tokenizer"])
def test_a_folder_without_a_tokenizer_is_refused(flag, tmp_path, prepare_flags):
    message = (
        rf"--{flag} .*/t is no tokenizer folder \(no tokenizer.json\) and holds "
        r"none; name one, records, or a bundle, as which `pre"
    )
    with pytest.raises(UsageError, match=message):
        prepare(
            **{flag: str(tmp_path / "t")}, output=str(tmp_path / "out"), **prepare_flags
        )
    assert contents(tmp_path) == {}


def test_a_damaged_tokenizer_is_refused_before_work_begins(prepare_flags, tmp_path):
    (tmp_path / "t").mkdir()
    (tmp_path / "t/tokenizers.json").write_text("{}")
    with pytest.raises(
        DataError,
        match=r"t/tokenizers.json: damaged \(KeyError\('format_version'\)\); "
        r"copy the bundle again",
    ):
        prepare(
            source_tokenizer=str(tmp_path / "t"),
            output=str(tmp_path / "out"),
            **prepare_flags,
        )
    assert not (tmp_path / "out").exists()
