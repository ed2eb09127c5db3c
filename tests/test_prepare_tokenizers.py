"""`precis prepare` with tokenizers of imported checkpoints, and with one for sources
and another for targets.
"""

import hashlib
import json
from pathlib import Path

import pytest
import tokenizers
from support.command_line import contents, error_lines, precis, write_jsonl
from support.prepared import (
    SMALL,
    all_examples,
    examples,
    fail_at,
    info,
    run_prepare,
    story,
)
from support.small_checkpoint import write_checkpoint, write_tokenizer
from support.small_encoder_checkpoint import PIECES, write_encoder, write_pieces

from precis.model.text.article import Article
from precis.model.text.normalization import normalise
from precis.model.tokenization import vocabulary
from precis.model.tokenization.folder import load_tokenizer, load_tokenizers
from precis.model.tokenization.imported import ImportedTokenizer
from precis.model.tokenization.wordpiece import Tokenizer

STORIES = [story(index) for index in range(24)]
ARTICLES = {line["id"]: Article.from_text(line["article"]).body for line in STORIES}
HIGHLIGHTS = {line["id"]: normalise(line["highlights"]) for line in STORIES}
_LETTERS = [*"abcdefghijklmnopqrstuvwxyz"]
T5_PIECES = ["<pad>", "</s>", "<unk>", *_LETTERS, "▁", "▁the", "▁in", "er", "ing"]


def import_bundle(checkpoint: Path) -> str:
    folder = checkpoint.parent / "bundle"
    assert precis_import(checkpoint, folder) == 0
    return str(folder)


def precis_import(checkpoint: Path, output: Path) -> int:
    from precis.pipelines.cli import main

    return main(["import", str(checkpoint), "--output", str(output)])


@pytest.fixture(scope="module")
def bart(tmp_path_factory) -> str:
    """A bundle of a network that writes; its tokenizer puts <s> (0) before a text and
    </s> (2) behind it.
    """
    checkpoint = tmp_path_factory.mktemp("bart") / "checkpoint"
    write_checkpoint(checkpoint)
    write_tokenizer(checkpoint, as_definition=True)
    return import_bundle(checkpoint)


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> str:
    """A bundle of an encoder; its tokenizer puts [CLS] (3) before a text and [SEP] (4)
    behind it.
    """
    checkpoint = tmp_path_factory.mktemp("bert") / "checkpoint"
    write_encoder(checkpoint)
    write_pieces(checkpoint)
    return import_bundle(checkpoint)


@pytest.fixture(scope="module")
def t5(tmp_path_factory) -> str:
    """The folder of a tokenizer that puts </s> (1) behind a text, nothing before it."""
    definition = tokenizers.Tokenizer(
        tokenizers.models.Unigram(
            [(piece, -float(len(T5_PIECES))) for piece in T5_PIECES], unk_id=2
        )
    )
    definition.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    definition.decoder = tokenizers.decoders.Metaspace()
    definition.post_processor = tokenizers.processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    definition.add_special_tokens(["<pad>", "</s>", "<unk>"])
    folder = tmp_path_factory.mktemp("t5")
    ImportedTokenizer(definition.to_str()).save(str(folder))
    return str(folder)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> str:
    return write_jsonl(tmp_path_factory.mktemp("corpus") / "news.jsonl", STORIES)


@pytest.fixture(scope="module")
def flags(corpus) -> dict:
    """Several tasks, two splits."""
    return {
        "corpus": corpus,
        "task_bytes": 6_000,
        "validation_share": 0.3,
        "test_share": 0,
        **SMALL,
    }


@pytest.fixture(scope="module")
def of_bart(flags, bart, tmp_path_factory) -> Path:
    """Records for a network that was imported."""
    folder = tmp_path_factory.mktemp("of_bart") / "records"
    run_prepare(output=folder, tokenizer=bart, **flags)
    return folder


@pytest.fixture(scope="module")
def of_two(flags, bert, tmp_path_factory) -> Path:
    """Records whose sources an imported encoder reads, and whose targets have a
    vocabulary of their own.
    """
    folder = tmp_path_factory.mktemp("of_two") / "records"
    run_prepare(output=folder, source_tokenizer=bert, **flags)
    return folder


def definition_of(bundle: str) -> tokenizers.Tokenizer:
    """The tokenizer of a checkpoint as the library itself reads it."""
    content = json.loads((Path(bundle) / "tokenizer/tokenizers.json").read_text())
    return tokenizers.Tokenizer.from_str(json.dumps(content["definition"]))


def cut(ids: list[int], limit: int) -> list[int]:
    """The first ids, and the one that ends the text."""
    return ids if len(ids) <= limit else [*ids[: limit - 1], ids[-1]]


def test_a_network_that_was_imported_gets_its_own_tokens(bart, of_bart):
    records, definition = all_examples(of_bart), definition_of(bart)
    assert len(records) == len(STORIES)
    for example in records:
        source, target = (
            definition.encode(ARTICLES[example["id"]]).ids,
            definition.encode(HIGHLIGHTS[example["id"]]).ids,
        )
        assert example["source"] == cut(source, 40) and len(source) > 40 == len(
            example["source"]
        )
        assert example["source"][0] == 0 and example["source"][-1] == target[-1] == 2
        assert example["target"] == target[:10] and example["source_tokens"] == len(
            source
        )
        assert example["highlights"] == HIGHLIGHTS[example["id"]]
    described = info(of_bart)
    assert (
        described["tokenizer_fingerprint"]
        == load_tokenizer(f"{bart}/tokenizer").fingerprint
    )
    assert (
        described["source_tokenizer_fingerprint"] is None
        and not (of_bart / "source_tokenizer").exists()
    )
    assert contents(of_bart / "tokenizer") == contents(f"{bart}/tokenizer")


def test_targets_that_are_not_cut_do_not_hold_the_end(bart, t5, flags, tmp_path):
    for name, path, before in (("bart", bart, [0]), ("t5", t5, [])):
        out = tmp_path / name
        run_prepare(
            output=out,
            tokenizer=path,
            **{**flags, "max_source_tokens": 9000, "max_target_tokens": 9000},
        )
        tokenizer = load_tokenizer(str(out / "tokenizer"))
        (end,) = tokenizer.surrounding_ids[1]
        for example in all_examples(out):
            bare, text = tokenizer.encode_bare(
                [HIGHLIGHTS[example["id"]], ARTICLES[example["id"]]]
            )
            assert (
                example["target"] == [*before, *bare.tolist()]
                and end not in example["target"]
            )
            assert example["source"] == [*before, *text.tolist(), end] and example[
                "source_tokens"
            ] == len(example["source"])
        assert info(out)["target_lengths"]["max"] == max(
            len(example["target"]) for example in all_examples(out)
        )


def test_a_bundle_its_tokenizer_and_records_made_with_it_name_the_same(
    bart, of_bart, flags, tmp_path
):
    for number, path in enumerate(
        (f"{bart}/tokenizer", of_bart, of_bart / "tokenizer")
    ):
        run_prepare(output=tmp_path / str(number), tokenizer=path, **flags)
        assert contents(tmp_path / str(number)) == contents(of_bart)


def test_sources_and_targets_have_tokenizers_of_their_own(bert, of_two):
    by_split, definition, learned = (
        examples(of_two),
        definition_of(bert),
        Tokenizer.load(str(of_two / "tokenizer")),
    )
    assert set(by_split) == {"train", "validation"}
    for example in all_examples(of_two):
        source = definition.encode(ARTICLES[example["id"]]).ids
        assert PIECES[source[0]] == "[CLS]" and PIECES[example["source"][-1]] == "[SEP]"
        assert example["source"] == cut(source, 40) and example["source_tokens"] == len(
            source
        )
        (target,) = learned.encode([HIGHLIGHTS[example["id"]]])
        assert example["target"] == target[:10].tolist()
    described = info(of_two)
    assert described["tokenizer_fingerprint"] == learned.fingerprint
    written = hashlib.sha256(
        (of_two / "source_tokenizer/tokenizers.json").read_bytes()
    ).hexdigest()
    assert (
        described["source_tokenizer_fingerprint"]
        == written
        == load_tokenizer(f"{bert}/tokenizer").fingerprint
    )
    both = load_tokenizers(str(of_two))
    assert (both.source.fingerprint, both.target.fingerprint) == (
        written,
        learned.fingerprint,
    )


def test_the_vocabulary_of_targets_is_learned_from_those_of_the_training_split(of_two):
    names = [example["id"] for example in examples(of_two)["train"]]
    words = vocabulary.count_words(HIGHLIGHTS[name] for name in names)
    assert (
        of_two / "tokenizer/vocab.txt"
    ).read_text().splitlines() == vocabulary.learn(words, size=600)


def test_records_name_the_tokenizer_of_their_sources(
    bart, of_two, bert, flags, tmp_path
):
    """And two that are given are both used as they are."""
    for number, path in enumerate((of_two, bert)):
        run_prepare(
            output=tmp_path / str(number),
            tokenizer=bart,
            source_tokenizer=path,
            **flags,
        )
    assert contents(tmp_path / "0") == contents(tmp_path / "1")
    both_imported, of_sources = (
        load_tokenizers(str(folder)) for folder in (tmp_path / "0", of_two)
    )
    assert (
        both_imported.source.fingerprint
        == of_sources.source.fingerprint
        != both_imported.target.fingerprint
        != of_sources.target.fingerprint
    )
    by_id = {example["id"]: example for example in all_examples(of_two)}
    for example in all_examples(tmp_path / "0"):
        assert (
            example["source"] == by_id[example["id"]]["source"]
            and example["target"][0] == 0
        )


def test_a_tokenizer_that_is_given_twice_is_one_for_both(
    bart, of_bart, flags, tmp_path
):
    run_prepare(
        output=tmp_path / "out",
        tokenizer=bart,
        source_tokenizer=f"{bart}/tokenizer",
        **flags,
    )
    assert contents(tmp_path / "out") == contents(of_bart)


def test_a_job_with_two_tokenizers_that_broke_off_ends_as_an_undisturbed_one(
    bert, of_two, flags, tmp_path, monkeypatch
):
    out, started = tmp_path / "out", []
    with monkeypatch.context() as patch:
        fail_at(patch, 2, started)
        assert precis("prepare", output=out, source_tokenizer=bert, **flags) == 1
    finished = [int(path.stem) for path in (out / "_tasks").glob("0*.json")]
    assert (
        2 in started
        and finished
        and 2 not in finished
        and not (out / "_SUCCESS").exists()
    )
    started_again = []
    with monkeypatch.context() as patch:
        fail_at(patch, -1, started_again)
        run_prepare(output=out, source_tokenizer=bert, **flags)
    assert set(started_again) & set(finished) == set() and 2 in started_again
    assert contents(out) == contents(of_two)


def test_another_tokenizer_is_another_job(bart, t5, of_two, of_bart, flags, capsys):
    before = contents(of_two), contents(of_bart)
    assert precis("prepare", output=of_two, source_tokenizer=bart, **flags) == 2
    assert precis("prepare", output=of_two, **flags) == 2
    assert precis("prepare", output=of_bart, tokenizer=t5, **flags) == 2
    assert (
        precis("prepare", output=of_bart, tokenizer=bart, source_tokenizer=t5, **flags)
        == 2
    )
    assert (
        capsys.readouterr().err.count("holds the finished result of another job") == 4
    )
    assert (contents(of_two), contents(of_bart)) == before


def test_threads_change_nothing(bert, of_two, flags, tmp_path):
    beam = {"direct_num_workers": 2, "direct_running_mode": "multi_threading"}
    run_prepare(
        output=tmp_path / "threads",
        source_tokenizer=bert,
        **flags,
        **beam,
    )
    assert contents(tmp_path / "threads") == contents(of_two)


@pytest.mark.slow
def test_processes_change_nothing(bert, of_two, flags, tmp_path):
    beam = {"direct_num_workers": 2, "direct_running_mode": "multi_processing"}
    run_prepare(
        output=tmp_path / "processes",
        source_tokenizer=bert,
        **flags,
        **beam,
    )
    assert contents(tmp_path / "processes") == contents(of_two)


@pytest.mark.parametrize("flag", ["tokenizer", "source_tokenizer"])
def test_a_checkpoint_that_was_not_imported_is_refused(
    flag, bart, flags, tmp_path, capsys
):
    checkpoint = Path(bart).parent / "checkpoint"
    assert (
        precis("prepare", output=tmp_path / "out", **{flag: checkpoint}, **flags) == 1
    )
    (line,) = error_lines(capsys.readouterr().err, "prepare")
    assert (
        "checkpoint/tokenizer.json: kind is None and must be "
        "'wordpiece-visible-space'; import a checkpoint with `precis import`" in line
    )
    assert not (tmp_path / "out").exists()
