"""Tests of `precis prepare`, its rules: what a network reads and writes of a document,
in which tokens, and what is learned from it; the folders that name a tokenizer.
"""

import json

import pytest
import tokenizers
from support import prepared, read_table
from support.prepared import BODIES, HIGHLIGHTS, STORIES, all_examples, encode, labels
from support.small_checkpoint import SETTINGS, write_checkpoint, write_tokenizer
from support.small_encoder_checkpoint import BERT, write_pieces

from precis.model.errors import DataError, UsageError
from precis.model.extractive.oracle import oracle_sentences
from precis.model.text.article import Article
from precis.model.text.document import Document
from precis.model.text.normalization import normalise
from precis.model.tokenization import vocabulary
from precis.model.tokenization.folder import TokenizerPair, save_tokenizers
from precis.model.tokenization.imported import read_tokenizer
from precis.model.tokenization.wordpiece import Tokenizer
from precis.pipelines.prepare.options import PrepareOptions
from precis.pipelines.prepare.prepare import find_tokenizers, prepare
from precis.pipelines.prepare.training_pairs import TrainingPair, read_pairs

JAIL = (
    "(CNN) -- Judge Steven Leifman visits the jails.\nLeifman met a judge. "
    "A lawyer told Steven.",
    " The jail's  lawyers met Steven Leifman .\n\nA Judge and another "
    "judge met Leifman , rain fell .",
)


def pair_of(article, highlights, **options):
    document = Document("d", article=article, highlights=highlights)
    article = Article(document)
    pairs = read_pairs(article, PrepareOptions(output="o", **options))
    if isinstance(pairs, str) or len(pairs) > 1:
        return pairs
    (pair,) = pairs
    return pair


# --- The texts of a training example.


def test_a_target_is_the_highlights_their_first_line_or_the_phrases_they_name():
    article, highlights = JAIL
    body = Article.from_text(article).body
    assert pair_of(article, highlights) == (body, normalise(highlights))
    first = "The jail's lawyers met Steven Leifman ."
    assert pair_of(article, highlights, target="headline") == (body, first)
    named = "jail; lawyers; met; Steven Leifman; Judge; Leifman"
    assert pair_of(article, highlights, target="keyphrases") == (body, named)


def test_every_supported_line_of_the_highlights_has_its_sentence_as_source():
    article = "Rain fell on Monday in the old town. Nobody came to the market."
    highlights = "Rain fell in the town.\nA king died.\nNobody came."
    assert pair_of(article, highlights, target="sentences", task_prefix="write: ") == [
        ("write: Rain fell on Monday in the old town.", "Rain fell in the town."),
        ("write: Nobody came to the market.", "Nobody came."),
    ]
    # `Nobody came.` is too short to be a line.
    pair = pair_of(article, highlights, target="cuts")
    assert pair.target == "Rain fell in the town."
    reason = pair_of(article, "Rain fell on Monday in the.", target="cuts")
    assert reason == "without_supported_sentences"
    in_kent = "Rain fell in Kent."
    pair = pair_of(in_kent, "NEW: Rain fell .", target="sentences")
    assert pair == TrainingPair(in_kent, "Rain fell .")
    reason = pair_of("Rain fell.", "Rain fell on us.", target="sentences")
    assert reason == "without_supported_sentences"


@pytest.mark.parametrize(
    ("article", "highlights", "reason"),
    [
        ("Rain fell.", " \n", "without_highlights"),
        ("Rain fell.", None, "without_highlights"),
        ("Rain fell on the old town.", "Nobody came.", "without_keyphrases"),
    ],
)
def test_a_document_without_a_target_is_skipped(article, highlights, reason):
    options = {"target": "keyphrases", "task_prefix": "name: "}
    assert pair_of(article, highlights, **options) == reason


def test_oracle_labels_need_highlights_that_rouge_reads():
    english, russian = "It rained in the town that they left.", "В 2026 году шёл дождь."
    texts = english + " " + english, russian
    assert pair_of(*texts, oracle_sentences=2) == "without_readable_highlights"
    assert pair_of(*texts).target == russian
    assert pair_of(russian, russian, oracle_sentences=2).target == russian


@pytest.mark.parametrize(("flags", "message"), read_table("refusals")["pairs"])
def test_options_that_cannot_be_are_refused(flags, message):
    with pytest.raises(UsageError, match=message):
        PrepareOptions(output="o", **flags)


# --- The vocabulary.


def test_a_vocabulary_is_learned_from_the_texts_that_are_encoded(tmp_path):
    """With the prefix and of the target, and of no other split."""
    hidden = prepared.story(9, article="Ж" * 30 + " fell.", part="test")
    lines = [*({**line, "part": "train"} for line in STORIES), hidden]
    flags = {"task_prefix": "Überschrift: ", "target": "headline"}
    flags["corpus"] = {"split_field": "part"}
    pieces = prepared.learn_vocabulary(tmp_path, lines, **flags)
    texts = ["Überschrift: " + body for body in BODIES.values()]
    texts += [HIGHLIGHTS[name].split("\n")[0] for name in BODIES]
    assert pieces == vocabulary.learn(vocabulary.count_words(texts), size=600)
    assert "▁Überschrift" in pieces and "Ж" not in pieces


def test_a_vocabulary_of_lower_case(tmp_path):
    prepared.learn_vocabulary(tmp_path, STORIES, lower_case=True)
    tokenizer = Tokenizer.load(str(tmp_path / "tokenizer"))
    assert tokenizer.lower_case
    pair = TokenizerPair(tokenizer, tokenizer)
    encode(tmp_path / "records", STORIES, pair, lower_case=True)
    for example in all_examples(tmp_path / "records"):
        (source,) = tokenizer.decode([example["source"]])
        assert BODIES[example["id"]].lower().startswith(source)
        # The reference stays as it was.
        assert example["highlights"] == HIGHLIGHTS[example["id"]]


@pytest.fixture(scope="module")
def learned():
    return prepared.learn_tokenizer()


def test_a_prefix_is_read_and_labels_are_those_of_the_target(learned, tmp_path):
    pair = TokenizerPair(learned, learned)
    flags = {"target": "headline", "task_prefix": "summarize: ", "oracle_sentences": 3}
    counts = encode(tmp_path / "a", STORIES, pair, **flags)
    encode(tmp_path / "b", STORIES, pair, max_source_tokens=5000)
    assert counts["written"] == counts["read"] == len(STORIES)
    (prefix,) = learned.encode(["summarize:"])
    plain = {example["id"]: example for example in all_examples(tmp_path / "b")}
    differing = 0
    for example in all_examples(tmp_path / "a"):
        whole = [*prefix, *plain[example["id"]]["source"]]
        assert example["source"] == whole[:40]
        assert example["source_tokens"] == len(whole)
        row, reference = labels(tmp_path / "a")[example["id"]], example["highlights"]
        assert reference == HIGHLIGHTS[example["id"]].split("\n")[0]
        picks = oracle_sentences(row.sentences, reference, 3)
        assert list(row.oracle) == [pick.place for pick in picks]
        of_all = oracle_sentences(row.sentences, HIGHLIGHTS[example["id"]], 3)
        differing += picks != of_all
    assert differing > 0


@pytest.mark.parametrize(
    ("corpus", "first", "join", "oracle"),
    [
        ({}, "Rain fell.", " ", ()),
        # The tokenizer of this project keeps line breaks and normalises the rest.
        ({"clean": "none"}, "(CNN) -- Rain fell.", "\n", (0,)),
    ],
)
def test_boilerplate_is_cut_or_kept(corpus, first, join, oracle, learned, tmp_path):
    article = "(CNN) -- Rain  fell.\r\nIt was cold."
    lines = [{"id": "a", "article": article, "highlights": "CNN."}]
    pair = TokenizerPair(learned, learned)
    encode(tmp_path, lines, pair, oracle_sentences=3, corpus=corpus)
    (row,) = labels(tmp_path).values()
    assert (row.sentences, row.oracle) == ((first, "It was cold."), oracle)
    (example,) = all_examples(tmp_path)
    (expected,) = learned.encode([f"{first}{join}It was cold."])
    assert example["source"] == expected.tolist()


@pytest.mark.parametrize(("language", "oracle"), [(None, 0), ("en", 0), ("tr", 1)])
def test_labels_are_as_in_the_language_of_the_flag(language, oracle, learned, tmp_path):
    """ROUGE of English reads `kar`, `k` and `y` in `karşı köy`; a short text counts as
    English.

                      karşı ada        F1 in English      in Turkish
        ada ve kar    ada              2 x 2 of 2 + 3     2 x 1 of 2 + 3
        karşı köy     karşı            2 x 1 of 2 + 3     2 x 1 of 2 + 2
    """
    line = {"article": "Ada ve kar. Karşı köy.", "highlights": "Karşı ada."}
    pair = TokenizerPair(learned, learned)
    encode(tmp_path, [line], pair, oracle_sentences=1, corpus={"language": language})
    (row,) = labels(tmp_path).values()
    assert row.oracle == (oracle,)
    assert (row.language or "en") == (language or "en")


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


def definition_of(tokenizer, folder) -> tokenizers.Tokenizer:
    """The tokenizer of a checkpoint as the library itself reads it."""
    tokenizer.save(str(folder))
    content = json.loads((folder / "tokenizers.json").read_text())
    return tokenizers.Tokenizer.from_str(json.dumps(content["definition"]))


@pytest.mark.parametrize("target", ["bart", "learned"])
@pytest.mark.parametrize("source", ["bart", "bert"])
def test_a_network_gets_the_tokens_of_its_checkpoint(source, target, request, tmp_path):
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


def test_beside_one_of_sources_it_is_learned_from_targets(bert, tmp_path, monkeypatch):
    """From the most frequent words alone, and from the characters of all."""
    monkeypatch.setattr(vocabulary, "MAX_WORDS", 30)
    save_tokenizers(str(tmp_path / "bert"), TokenizerPair(bert, bert))
    flags = {"source_tokenizer": str(tmp_path / "bert/tokenizer")}
    pieces = prepared.learn_vocabulary(tmp_path, STORIES, **flags)
    words = vocabulary.count_words(HIGHLIGHTS.values())
    assert pieces == vocabulary.learn(words, size=600)


def test_records_and_the_folder_itself_name_a_tokenizer(bart, bert, learned, tmp_path):
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
        for name, tokenizer in named.items():
            assert fingerprints.pop(name) == getattr(tokenizer, "fingerprint", "")
        assert not fingerprints


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
def test_a_folder_without_a_tokenizer_is_refused(flag, name, error, message, tmp_path):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / name).write_text("{}")
    flags = {flag: str(tmp_path / "t")}
    with pytest.raises(error, match=message):
        prepare(corpus="sample:20", output=str(tmp_path / "out"), **flags)
    assert not (tmp_path / "out").exists()
