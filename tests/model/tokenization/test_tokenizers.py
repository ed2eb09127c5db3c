"""Imported tokenizers and those in a folder: special tokens, cutting, decoding, files
and refusals; and the definition of ours for the `tokenizers` library.

`test_checkpoint_parity` compares ids with transformers.
"""

import json
import random

import pytest
from support.command_line import contents
from support.huggingface_bundles import sample_bodies, sample_tokenizer
from support.small_checkpoint import SETTINGS, TEXTS, write_tokenizer
from support.small_encoder_checkpoint import BERT, PIECES, write_pieces
from tokenizers import Tokenizer as Library
from tokenizers import decoders, models, pre_tokenizers

from precis.model.errors import DataError, UsageError
from precis.model.text.normalization import normalise
from precis.model.tokenization.exported import definition_of
from precis.model.tokenization.folder import (
    TokenizerPair,
    holds_tokenizer,
    load_tokenizer,
    load_tokenizers,
    save_tokenizers,
)
from precis.model.tokenization.imported import ImportedTokenizer, read_tokenizer
from precis.model.tokenization.source import encode_sources, encode_targets
from precis.model.tokenization.wordpiece import LINE_BREAK, RESERVED_TOKENS, Tokenizer

WORDPIECE = Tokenizer([*RESERVED_TOKENS, "▁a", "▁b"])
A, B = 4, 5
# [CLS] rain fell on mon ##day [SEP]
MONDAY = [3, 6, 7, 11, 12, 13, 4]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    return write_tokenizer(tmp_path_factory.mktemp("bart"))


@pytest.fixture(scope="module")
def bart(folder) -> ImportedTokenizer:
    return read_tokenizer(folder, SETTINGS)


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> ImportedTokenizer:
    return read_tokenizer(write_pieces(tmp_path_factory.mktemp("bert")), BERT)


def lists(rows) -> list[list[int]]:
    return [ids.tolist() for ids in rows]


def pieces_of(rows) -> list[str]:
    return [" ".join(PIECES[token] for token in ids) for ids in rows]


# Encoding and decoding.
def test_a_text_is_encoded_between_special_tokens(bart):
    encoded, bare = bart.encode([*TEXTS, ""]), bart.encode_parts([*TEXTS, ""])
    for ids in encoded:
        assert ids.dtype == "int32" and (ids[0], ids[-1]) == (0, 2)
        assert ids[1:-1].min(initial=4) > 3
    assert len(encoded[0]) > 6 and encoded[3].tolist() == [0, 2]
    assert bart.surrounding_ids == ((0,), (2,)) and bart.unknown_id is None
    assert [[0, *ids, 2] for ids in bare] == lists(encoded)
    assert {ids.dtype.name for ids in bare} == {"int32"}
    assert bart.decode(encoded) == [*TEXTS, ""]
    texts = ["Ünïcödé \U0001f600 — 東京", "two  spaces, a\nline break"]
    assert bart.decode(bart.encode(texts)) == texts
    assert bart.encode([]) == bart.encode_parts([]) == bart.decode([]) == []
    # Special tokens and ids outside the vocabulary are left out.
    (ids,) = bart.encode(["Rain fell"])
    assert bart.decode([[2, *ids, 1, 1, 3, 5000]]) == ["Rain fell"]


def test_word_pieces_by_hand(bert):
    texts = ["Rain fell\non  Monday.", "cafés'e-b!", "東京 12 raining7 [MASK]"]
    expected = ["rain fell on mon ##day .", "cafe ##s ' e - b !"]
    expected.append("東 京 1 ##2 [UNK] [MASK]")
    assert pieces_of(bert.encode_parts(texts)) == expected
    assert pieces_of(bert.encode(texts)) == [f"[CLS] {each} [SEP]" for each in expected]
    assert bert.surrounding_ids == ((3,), (4,))
    assert bert.piece(bert.unknown_id) == "[UNK]"


def test_words_of_bert(bert):
    long = pieces_of(bert.encode_parts(["a" * 100, "a" * 101]))
    assert long == [" ".join(["a", *["##a"] * 99]), "[UNK]"]
    text = "rain fell on monday, it was cold."
    assert bert.decode(bert.encode([text.capitalize()])) == [text]
    assert bert.vocabulary_size == len(PIECES)


# Sources and targets.
def test_wordpiece_adds_no_special_tokens_and_cuts_at_the_limit():
    assert WORDPIECE.surrounding_ids == ((), ())
    assert lists(WORDPIECE.encode_parts(["a b", "b"])) == [[A, B], [B]]
    sources = encode_sources(WORDPIECE, ["a b b", "a b", "b"], max_source_tokens=2)
    assert lists(source.ids for source in sources) == [[A, B], [A, B], [B]]
    assert [source.source_tokens for source in sources] == [3, 2, 1]
    assert [source.is_truncated for source in sources] == [True, False, False]
    assert [source.ids.dtype.name for source in sources] == ["int32"] * 3
    assert encode_sources(WORDPIECE, [], max_source_tokens=2) == []


CUT = [
    *((1, [4]), (2, [3, 4]), (4, [3, 6, 7, 4]), (6, [3, 6, 7, 11, 12, 4])),
    *((7, MONDAY), (8, MONDAY)),
]


@pytest.mark.parametrize(("limit", "ids"), CUT)
def test_special_tokens_at_the_end_survive_the_cut(bert, limit, ids):
    texts = ["Rain fell on Monday", "rain"]
    first, second = encode_sources(bert, texts, max_source_tokens=limit)
    assert (first.ids.tolist(), first.source_tokens) == (ids, 7)
    assert first.is_truncated == (limit < 7) and first.ids.dtype == "int32"
    assert second.source_tokens == 3
    plain = ImportedTokenizer(json.dumps({**bert.definition, "post_processor": None}))
    (source,) = encode_sources(plain, ["rain fell on"], max_source_tokens=2)
    assert (source.ids.tolist(), source.source_tokens) == ([6, 7], 3)


def test_targets_have_no_special_tokens_at_their_end(bart, bert):
    for tokenizer, before, behind in ((bart, 0, 2), (bert, 3, 4)):
        targets, whole = encode_targets(tokenizer, TEXTS), tokenizer.encode(TEXTS)
        assert [[*ids, behind] for ids in targets] == lists(whole)
        assert {(ids.dtype.name, int(ids[0])) for ids in targets} == {("int32", before)}
    assert lists(encode_targets(WORDPIECE, ["a b", "b"])) == [[A, B], [B]]


# Files.
def test_tokenizers_come_back(bart, bert, tmp_path):
    two, one = tmp_path / "two", tmp_path / "one"
    assert not holds_tokenizer(str(two))
    save_tokenizers(str(two), TokenizerPair(source=bert, target=WORDPIECE))
    save_tokenizers(str(one), TokenizerPair(bart, bart))
    names = ("tokenizer/tokenizer.json", "tokenizer/vocab.txt")
    assert {*contents(two)} == {"source_tokenizer/tokenizers.json", *names}
    assert {*contents(one)} == {"tokenizer/tokenizers.json"}
    assert holds_tokenizer(f"{two}/tokenizer") and holds_tokenizer(f"{one}/tokenizer")
    loaded = load_tokenizers(str(two))
    assert isinstance(loaded.target, Tokenizer)
    assert loaded.source.fingerprint == bert.fingerprint
    assert loaded.target.fingerprint == WORDPIECE.fingerprint
    loaded = load_tokenizers(str(one))
    assert loaded.source is loaded.target
    assert loaded.target.fingerprint == bart.fingerprint
    assert lists(loaded.target.encode(TEXTS)) == lists(bart.encode(TEXTS))
    save_tokenizers(str(tmp_path / "again"), loaded)
    assert contents(tmp_path / "again") == contents(one)


STORED = '{"format_version": %s, "definition": {}}'
CANNOT = "the tokenizers library cannot read this tokenizer: "


DAMAGED = [
    ("{", "not JSON: "),
    ("{}", "format_version is missing"),
    (STORED % 9, "format_version is 9, but this precis reads 1"),
    (STORED % 1, CANNOT),
]


@pytest.mark.parametrize(("content", "message"), DAMAGED)
def test_a_saved_tokenizer_that_was_damaged_is_refused(content, message, tmp_path):
    (tmp_path / "tokenizers.json").write_text(content)
    whole = rf"{tmp_path}/tokenizers.json: damaged \({message}.*\); copy the bundle"
    with pytest.raises(DataError, match=whole):
        load_tokenizer(str(tmp_path))


def test_a_tokenizer_that_does_not_fit_or_is_absent_is_refused(bart, folder, tmp_path):
    (tmp_path / "vocab.json").write_text("{}")
    message = r"there is no tokenizer.json; .*older tokenizer.*save_pretrained\("
    with pytest.raises(UsageError, match=message):
        read_tokenizer(str(tmp_path), SETTINGS)
    for content in ("{}", "", "\x80"):
        (tmp_path / "tokenizer.json").write_text(content, encoding="latin-1")
        message = rf"{tmp_path}/tokenizer.json: damaged \(.*\); download the tokenizer"
        with pytest.raises(DataError, match=message):
            read_tokenizer(str(tmp_path), SETTINGS)
    message = f"json: {bart.vocabulary_size} tokens, but the network has 100; use"
    with pytest.raises(DataError, match=message):
        read_tokenizer(folder, {**SETTINGS, "vocab_size": 100})
    # The network of a BART for summaries has no row for the last token, <mask>.
    library = Library.from_file(f"{folder}/tokenizer.json")
    library.add_special_tokens(["<mask>"])
    library.save(str(tmp_path / "tokenizer.json"))
    fits = read_tokenizer(str(tmp_path), {"vocab_size": bart.vocabulary_size})
    expected = bart.encode(["Rain <mask> fell."])[0]
    assert fits.encode(["Rain <mask> fell."])[0].tolist() == expected.tolist()
    message = (
        "kind is None, but must be 'wordpiece-visible-space'; .* or import a check"
    )
    with pytest.raises(DataError, match=message):
        load_tokenizer(folder)


@pytest.mark.parametrize("is_added", [True, False])
def test_a_line_break_of_pegasus_is_one(is_added):
    """It is a piece, and in newer files an added token too."""
    pieces = ["<pad>", "</s>", "<unk>", "<n>", "▁Rain", "▁fell", ".", "▁It", "▁was"]
    library = Library(models.Unigram([(each, -1.0) for each in pieces], unk_id=2))
    library.pre_tokenizer = pre_tokenizers.Metaspace()
    library.decoder = decoders.Metaspace()
    library.add_special_tokens(pieces[:3])
    library.add_tokens(["<n>"] * is_added)
    tokenizer = ImportedTokenizer(library.to_str())
    (text,) = tokenizer.decode([[0, 4, 5, 6, 3, 7, 8, 6, 1]])
    assert normalise(text) == "Rain fell.\nIt was."
    assert tokenizer.piece(3) == LINE_BREAK and tokenizer.words[3] is None
    assert tokenizer.unknown_id == 2


# Ours for the `tokenizers` library.
@pytest.mark.parametrize("lower_case", [False, True])
def test_the_definition_gives_the_ids_of_the_tokenizer(lower_case):
    bodies = sample_bodies(30)
    # Letters with both forms or one, in words with unknown characters.
    foreign = "ไ ##ไ か ##ท 한 ##한 ^ ##^ ] ##]".split()
    pieces = dict.fromkeys([*sample_tokenizer().vocabulary, *foreign])
    tokenizer = Tokenizer([*pieces], lower_case=lower_case)
    library = Library.from_str(json.dumps(definition_of(tokenizer)))
    # What `split_special_tokens` of transformers sets.
    library.encode_special_tokens = True
    letters = "ab Z.9$'\n\t\r▁␤\xa0\x85\x1f\x0c\u2028é\u0301ßİſ中文かไทย\u200b[PAD]#-—…"
    letters += "“”€\U0001f600\x00\x1b،؟Σς^`~+=<>|한국"
    rng = random.Random(4)
    texts = ["".join(rng.choices(letters, k=rng.randint(1, 40))) for _ in range(800)]
    few = "aéไทยか한국\U0001f600 "
    texts += ["".join(rng.choices(few, k=rng.randint(1, 9))) for _ in range(800)]
    texts += [*bodies, "[PAD] fell [START]", "##ing ## a", "  (CNN) --\r\n\r\n rain "]
    texts += [" ", "\u200b", " \n\u200b\r\n\x00\t", "\u0301 a", "▁", "▁▁ a", "\n▁"]
    encoded = tokenizer.encode([normalise(text) for text in texts])
    for text, ids in zip(texts, encoded, strict=True):
        assert library.encode(text).ids == ids.tolist(), text
        if tokenizer.unknown_id not in ids:
            assert library.decode(ids.tolist()) == tokenizer.decode([ids])[0]
    assert len(texts) > 800
