"""Tests of `precis prepare`: the tokens of imported checkpoints, of two tokenizers, and
the folders that name a tokenizer.
"""

import json

import pytest
import tokenizers
from support.prepared import (
    BODIES,
    HIGHLIGHTS,
    STORIES,
    all_examples,
    encode,
    learn_tokenizer,
    learn_vocabulary,
)
from support.small_checkpoint import SETTINGS, write_checkpoint, write_tokenizer
from support.small_encoder_checkpoint import BERT, write_pieces

from precis.model.errors import DataError, UsageError
from precis.model.tokenization import vocabulary
from precis.model.tokenization.folder import TokenizerPair, save_tokenizers
from precis.model.tokenization.imported import read_tokenizer
from precis.pipelines.prepare.options import PrepareOptions
from precis.pipelines.prepare.prepare import find_tokenizers, prepare


@pytest.fixture(scope="module")
def bart(tmp_path_factory):
    """A tokenizer that puts <s> (0) before a text and </s> (2) behind it."""
    folder = tmp_path_factory.mktemp("bart")
    write_checkpoint(folder)
    write_tokenizer(folder)
    return read_tokenizer(str(folder), SETTINGS)


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """A tokenizer that puts [CLS] (3) before a text and [SEP] (4) behind it."""
    return read_tokenizer(write_pieces(tmp_path_factory.mktemp("bert")), BERT)


@pytest.fixture(scope="module")
def learned():
    return learn_tokenizer()


def definition_of(tokenizer, folder) -> tokenizers.Tokenizer:
    """The tokenizer of a checkpoint as the library itself reads it."""
    tokenizer.save(str(folder))
    content = json.loads((folder / "tokenizers.json").read_text())
    return tokenizers.Tokenizer.from_str(json.dumps(content["definition"]))


@pytest.mark.parametrize("target", ["bart", "learned"])
@pytest.mark.parametrize("source", ["bart", "bert"])
def test_an_imported_network_gets_the_tokens_of_its_checkpoint(
    source, target, request, tmp_path
):
    """And the targets have a tokenizer of their own where they are learned."""
    source, target = map(request.getfixturevalue, (source, target))
    definition = definition_of(source, tmp_path / "library")
    encode(tmp_path, STORIES, TokenizerPair(source, target))
    records = all_examples(tmp_path)
    assert [example["id"] for example in records] == list(BODIES)
    for example in records:
        ids = definition.encode(BODIES[example["id"]]).ids
        assert len(ids) > 40 == len(example["source"])
        # The token that ends the text stays.
        assert example["source"] == [*ids[:39], ids[-1]]
        assert example["source_tokens"] == len(ids)
        (expected,) = target.encode([HIGHLIGHTS[example["id"]]])
        assert example["target"] == list(expected[:10])


def test_beside_a_tokenizer_of_sources_it_is_learned_from_targets_alone(
    bert, tmp_path, monkeypatch
):
    """From the most frequent words alone, and from the characters of all."""
    monkeypatch.setattr(vocabulary, "MAX_WORDS", 30)
    save_tokenizers(str(tmp_path / "bert"), TokenizerPair(bert, bert))
    pieces = learn_vocabulary(
        tmp_path, STORIES, source_tokenizer=str(tmp_path / "bert/tokenizer")
    )
    words = vocabulary.count_words(HIGHLIGHTS.values())
    assert pieces == vocabulary.learn(words, size=600)


def test_records_a_bundle_and_the_folder_itself_name_a_tokenizer(
    bart, bert, learned, tmp_path
):
    """Sources have the source_tokenizer of records, where they have one; one that is
    named for both texts is the tokenizer of both.
    """
    save_tokenizers(str(tmp_path / "two"), TokenizerPair(bert, learned))
    save_tokenizers(str(tmp_path / "one"), TokenizerPair(bart, bart))
    of_two = "two/tokenizer", "two/source_tokenizer"
    bart_alone = {"tokenizer": bart, "source_tokenizer": None}
    for tokenizer, source_tokenizer, folders, named in (
        ("two", "", (of_two[0], ""), {"tokenizer": learned}),
        ("two/tokenizer", "", (of_two[0], ""), {"tokenizer": learned}),
        ("", "two", ("", of_two[1]), {"source_tokenizer": bert}),
        ("one", "one/tokenizer", ("one/tokenizer", ""), bart_alone),
    ):
        flags = {"tokenizer": tokenizer, "source_tokenizer": source_tokenizer}
        paths = {name: f"{tmp_path}/{path}" for name, path in flags.items() if path}
        options, fingerprints = find_tokenizers(PrepareOptions(output="o", **paths))
        expected = [f"{tmp_path}/{folder}" if folder else "" for folder in folders]
        assert [options.tokenizer, options.source_tokenizer] == expected
        assert fingerprints == {
            name: getattr(tokenizer, "fingerprint", "")
            for name, tokenizer in named.items()
        }


NO_TOKENIZER = r"--\w+ .*/t holds no tokenizer \(no tokenizer.json\)"
OTHER_KIND = "t/tokenizer.json: kind is None, but must be 'wordpiece-visible-space'; u"


@pytest.mark.parametrize("flag", ["tokenizer", "source_tokenizer"])
@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("notes.txt", UsageError, f"{NO_TOKENIZER}; name the folder of a tokenizer"),
        ("tokenizers.json", DataError, r"s.json: damaged \(format_version is missing"),
        ("tokenizer.json", DataError, OTHER_KIND),
    ],
)
def test_a_folder_without_a_tokenizer_is_refused_before_work_begins(
    flag, name, error, message, tmp_path
):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / name).write_text("{}")
    flags = {flag: str(tmp_path / "t")}
    with pytest.raises(error, match=message):
        prepare(corpus="sample:20", output=str(tmp_path / "out"), **flags)
    assert not (tmp_path / "out").exists()
