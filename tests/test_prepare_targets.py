"""`precis prepare --target` and `--task_prefix`: what a network shall write of a
document, and how it is told.
"""

import pytest
from support.command_line import contents, error_lines, precis, write_jsonl
from support.prepared import SMALL, all_examples, fail_at, info, run_prepare, story

from precis.model.errors import UsageError
from precis.model.extractive.oracle import oracle_sentences
from precis.model.records.dataset import load_dataset
from precis.model.records.example import read_labelled
from precis.model.text.article import Article
from precis.model.text.normalization import normalise
from precis.model.tokenization import vocabulary
from precis.model.tokenization.wordpiece import Tokenizer
from precis.pipelines.prepare import prepare

STORIES = [story(index) for index in range(24)]
FLAGS = {"validation_share": 0.3, "test_share": 0, **SMALL, "max_target_tokens": 200}
JAIL = {
    "id": "jail",
    "article": "(CNN) -- Judge Steven Leifman visits the jails.\nLeifman met a judge. "
    "A lawyer told Steven.",
    "highlights": " The jail's  lawyers met Steven Leifman .\n\nA Judge and another "
    "judge met Leifman , rain fell .",
}
NAMED = "jail; lawyers; met; Steven Leifman; Judge; Leifman"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> str:
    return write_jsonl(tmp_path_factory.mktemp("corpus") / "news.jsonl", STORIES)


def texts_of(folder, feature: str) -> dict[str, str]:
    """A feature of every record as text, by document id."""
    records = all_examples(folder)
    return dict(
        zip(
            (example["id"] for example in records),
            Tokenizer.load(f"{folder}/tokenizer").decode(
                [example[feature] for example in records]
            ),
            strict=True,
        )
    )


def test_a_headline_is_the_first_highlight(corpus, tmp_path):
    run_prepare(
        corpus=corpus,
        output=tmp_path / "out",
        target="headline",
        **FLAGS,
    )
    expected = {
        line["id"]: next(
            part.strip() for part in line["highlights"].split("\n") if part.strip()
        )
        for line in STORIES
    }
    assert all(
        "\n" in normalise(line["highlights"]) for line in STORIES
    )  # they have more
    assert {
        example["id"]: example["highlights"]
        for example in all_examples(tmp_path / "out")
    } == expected
    assert texts_of(tmp_path / "out", "target") == expected
    described = load_dataset(str(tmp_path / "out"))
    assert (described.target, described.task_prefix, described.counts["written"]) == (
        "headline",
        "",
        len(STORIES),
    )


def test_the_vocabulary_is_learned_from_the_texts_that_are_encoded(corpus, tmp_path):
    flags = {
        **FLAGS,
        "validation_share": 0,
        "task_prefix": "Überschrift: ",
        "target": "headline",
    }
    run_prepare(corpus=corpus, output=tmp_path / "out", **flags)
    texts = [
        text
        for line in STORIES
        for text in (
            "Überschrift: " + Article.from_text(line["article"]).body,
            normalise(line["highlights"]).split("\n")[0],
        )
    ]
    expected = vocabulary.learn(vocabulary.count_words(texts), size=600)
    assert (
        tmp_path / "out/tokenizer/vocab.txt"
    ).read_text().splitlines() == expected and "▁Überschrift" in expected


def test_keyphrases_are_the_phrases_that_the_reference_names_in_its_order(tmp_path):
    lines = [
        JAIL,
        {
            "id": "none",
            "article": "Rain fell on the old town.",
            "highlights": "Nobody came.",
        },
        {"id": "empty", "article": "Rain fell.", "highlights": " \n"},
        {"id": "bare", "article": "(CNN) -- ", "highlights": "Rain fell."},
        {**JAIL, "id": "again"},
        *STORIES[:5],
    ]
    corpus_ = write_jsonl(tmp_path / "c.jsonl", lines)
    run_prepare(
        corpus=corpus_,
        output=tmp_path / "out",
        target="keyphrases",
        **FLAGS,
    )
    targets = {
        example["id"]: example["highlights"]
        for example in all_examples(tmp_path / "out")
    }
    assert (
        set(targets) == {"jail", *(line["id"] for line in STORIES[:5])}
        and targets["jail"] == NAMED
    )
    assert texts_of(tmp_path / "out", "target") == targets and all(targets.values())
    described = info(tmp_path / "out")
    reasons = {"without_keyphrases": 1, "without_highlights": 1, "without_text": 1}
    assert described["counts"] == {
        "read": 10,
        "written": 6,
        "failed": 0,
        "duplicates": 1,
        "skipped": 3,
        **reasons,
    }
    assert described["target"] == "keyphrases"


def test_a_prefix_stands_before_every_article(corpus, tmp_path):
    run_prepare(
        corpus=corpus,
        output=tmp_path / "out",
        task_prefix="summarize: ",
        **FLAGS,
    )
    same_tokenizer = {
        "tokenizer": tmp_path / "out",
        **{name: value for name, value in FLAGS.items() if name != "vocabulary_size"},
    }
    run_prepare(corpus=corpus, output=tmp_path / "plain", **same_tokenizer)
    tokenizer = Tokenizer.load(str(tmp_path / "out/tokenizer"))
    (prefix,) = tokenizer.encode(["summarize: "[:-1]])
    plain = {example["id"]: example for example in all_examples(tmp_path / "plain")}
    for example in all_examples(tmp_path / "out"):
        other = plain[example["id"]]
        assert (
            example["source"] == [*prefix, *other["source"]][:40]
            and example["source_tokens"] == len(prefix) + other["source_tokens"]
        )
        assert (example["target"], example["highlights"]) == (
            other["target"],
            other["highlights"],
        )
    assert (
        len(plain) == len(STORIES)
        and load_dataset(str(tmp_path / "out")).task_prefix == "summarize: "
    )


def test_an_article_without_text_has_none_behind_a_prefix_either(tmp_path):
    corpus_ = write_jsonl(
        tmp_path / "c.jsonl",
        [
            {"id": "bare", "article": "(CNN) -- ", "highlights": "Rain fell."},
            *STORIES[:5],
        ],
    )
    run_prepare(
        corpus=corpus_,
        output=tmp_path / "out",
        task_prefix="summarize: ",
        **FLAGS,
    )
    assert info(tmp_path / "out")["counts"]["without_text"] == 1


def test_oracle_labels_are_those_of_the_target(corpus, tmp_path):
    run_prepare(
        corpus=corpus,
        output=tmp_path / "out",
        target="headline",
        oracle_sentences=3,
        **FLAGS,
    )
    rows = [
        row
        for path in sorted((tmp_path / "out").glob("*.tfrecord"))
        for row in read_labelled(str(path))
    ]
    references = [normalise(line["highlights"]) for line in STORIES]
    differing = 0
    for row in rows:
        assert list(row.oracle) == [
            pick.place for pick in oracle_sentences(row.sentences, row.highlights, 3)
        ]
        (whole,) = [
            reference
            for reference in references
            if reference.startswith(row.highlights + "\n")
        ]
        differing += list(row.oracle) != [
            pick.place for pick in oracle_sentences(row.sentences, whole, 3)
        ]
    assert len(rows) == len(STORIES) and differing > 0


def test_each_flag_makes_other_records(corpus, tmp_path, capsys):
    jobs = [{}, {"target": "headline"}, {"task_prefix": "headline: "}]
    for number, flags in enumerate(jobs):
        run_prepare(
            corpus=corpus,
            output=tmp_path / str(number),
            **flags,
            **FLAGS,
        )
    assert len(
        {info(tmp_path / str(number))["fingerprint"] for number in range(len(jobs))}
    ) == len(jobs)
    before = contents(tmp_path / "1")
    assert (
        precis(
            "prepare",
            corpus=corpus,
            output=tmp_path / "1",
            task_prefix="headline: ",
            target="headline",
            **FLAGS,
        )
        == 2
    )
    assert (
        "holds the finished result of another job" in capsys.readouterr().err
        and contents(tmp_path / "1") == before
    )


def test_a_job_that_broke_off_ends_as_an_undisturbed_one(corpus, tmp_path, monkeypatch):
    flags = {
        "corpus": corpus,
        "task_bytes": 6_000,
        "target": "keyphrases",
        "task_prefix": "name: ",
        **FLAGS,
    }
    with monkeypatch.context() as patch:
        fail_at(patch, 2, [])
        assert precis("prepare", output=tmp_path / "out", **flags) == 1
    finished = [path.name for path in (tmp_path / "out/_tasks").glob("0*.json")]
    assert finished and "00002.json" not in finished
    run_prepare(output=tmp_path / "out", **flags)
    run_prepare(output=tmp_path / "whole", **flags)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_without_a_document_to_learn_from_the_target_is_named(tmp_path, capsys):
    corpus_ = write_jsonl(
        tmp_path / "c.jsonl",
        [{"id": "a", "article": "Rain fell.", "highlights": "Nobody came."}],
    )
    assert (
        precis(
            "prepare",
            corpus=corpus_,
            output=tmp_path / "out",
            target="keyphrases",
            **FLAGS,
        )
        == 1
    )
    (line,) = error_lines(capsys.readouterr().err, "prepare")
    assert (
        "the corpus has no training document with a text and keyphrases to learn a "
        "vocabulary from; check --article_field" in line
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            {"target": "title"},
            "--target is one of highlights, headline, keyphrases, not 'title'",
        ),
        (
            {"task_prefix": "sum  up:\t"},
            r"--task_prefix 'sum  up:\\t' is not normalised, as articles are; "
            r"write 'sum up: '",
        ),
        (
            {"task_prefix": " "},
            "--task_prefix ' ' is not normalised, as articles are; write ''",
        ),
        (
            {"task_prefix": "one\ntwo: "},
            r"--task_prefix 'one\\ntwo: ' is not normalised, as articles are; "
            r"write 'one two: '",
        ),
    ],
)
def test_a_target_or_a_prefix_that_cannot_be_is_refused(
    flags, message, corpus, tmp_path
):
    with pytest.raises(UsageError, match=f"^{message}$"):
        prepare(corpus=corpus, output=str(tmp_path / "out"), **flags)
    assert contents(tmp_path) == {}
