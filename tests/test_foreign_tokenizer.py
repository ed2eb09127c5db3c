"""Imported tokenizers: special tokens, cutting, decoding, saving and refusals."""

import json

import pytest
from support.small_checkpoint import SETTINGS, TEXTS, VOCABULARY, write_tokenizer
from support.small_encoder_checkpoint import BERT, PIECES, write_pieces

from precis.model.errors import DataError, UsageError
from precis.model.tokenization.checkpoint_files import read_tokenizer
from precis.model.tokenization.folder import load_tokenizer
from precis.model.tokenization.imported import ImportedTokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    return write_tokenizer(tmp_path_factory.mktemp("definition"), as_definition=True)


@pytest.fixture(scope="module")
def tokenizer(folder) -> ImportedTokenizer:
    return read_tokenizer(folder, SETTINGS)


def test_a_text_is_encoded_between_special_tokens(tokenizer):
    encoded = tokenizer.encode([*TEXTS, ""])
    assert all(
        ids.dtype == "int32"
        and (ids[0], ids[-1]) == (0, 2)
        and ids[1:-1].min(initial=4) > 3
        for ids in encoded
    )
    assert len(encoded[0]) > 6 and encoded[3].tolist() == [0, 2]
    assert tokenizer.decode(encoded) == [*TEXTS, ""]
    texts = ["Ünïcödé \U0001f600 — 東京", "two  spaces, a\nline break"]
    assert tokenizer.decode(tokenizer.encode(texts)) == texts
    assert tokenizer.encode([]) == [] and tokenizer.decode([]) == []


def test_special_tokens_and_ids_outside_the_vocabulary_are_left_out(tokenizer):
    (ids,) = tokenizer.encode(["Rain fell"])
    assert tokenizer.decode([[2, *ids, 1, 1, 3, 5000]]) == ["Rain fell"]


@pytest.mark.parametrize("limit", [1, 2, 4, 6])
def test_a_cut_text_keeps_its_end(tokenizer, limit):
    (ids,) = tokenizer.encode(TEXTS[:1])
    cut = tokenizer.cut(ids, limit)
    assert cut.tolist() == [*ids[: limit - 1], 2] and cut.dtype == "int32"
    assert tokenizer.cut(ids, len(ids)) is ids


def test_a_definition_without_special_tokens_adds_none(folder):
    definition = json.loads(open(f"{folder}/tokenizer.json").read())
    plain = ImportedTokenizer(json.dumps({**definition, "post_processor": None}))
    (ids,) = plain.encode(["Rain fell on Monday"])
    assert plain.cut(ids, 2).tolist() == ids[:2].tolist()


def test_a_text_without_its_special_tokens(tokenizer):
    texts = [*TEXTS, ""]
    assert tokenizer.surrounding_ids == ((0,), (2,))
    assert [[0, *ids, 2] for ids in tokenizer.encode_bare(texts)] == [
        ids.tolist() for ids in tokenizer.encode(texts)
    ]
    assert (
        all(ids.dtype == "int32" for ids in tokenizer.encode_bare(texts))
        and tokenizer.encode_bare([]) == []
    )


def pieces_of(rows) -> list[str]:
    return [" ".join(PIECES[token] for token in ids) for ids in rows]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            None,
            [
                "[CLS] rain fell on mon ##day . [SEP]",
                "[CLS] cafe ##s ' e - b ! [SEP]",
                "[CLS] 東 京 1 ##2 [UNK] [MASK] [SEP]",
            ],
        ),
        (
            {"do_lower_case": False},  # accents stay too
            [
                "[CLS] [UNK] fell on [UNK] . [SEP]",
                "[CLS] [UNK] ' e - b ! [SEP]",
                "[CLS] 東 京 1 ##2 [UNK] [MASK] [SEP]",
            ],
        ),
        (
            {
                "do_lower_case": False,
                "strip_accents": True,
                "tokenize_chinese_chars": False,
                "mask_token": {"content": "town"},
            },
            [
                "[CLS] [UNK] fell on [UNK] . [SEP]",
                "[CLS] cafe ##s ' e - b ! [SEP]",
                "[CLS] [UNK] 1 ##2 [UNK] [UNK] [UNK] [UNK] [SEP]",
            ],
        ),
        (
            {
                "cls_token": "nobody",
                "sep_token": {"content": "came"},
                "strip_accents": False,
            },
            [
                "nobody rain fell on mon ##day . came",
                "nobody [UNK] ' e - b ! came",
                "nobody 東 京 1 ##2 [UNK] [MASK] came",
            ],
        ),
    ],
)
def test_word_pieces_by_hand(settings, expected, tmp_path):
    tokenizer = read_tokenizer(write_pieces(tmp_path, settings), BERT)
    texts = ["Rain fell\non  Monday.", "cafés'e-b!", "東京 12 raining7 [MASK]"]
    assert pieces_of(tokenizer.encode(texts)) == expected
    assert tokenizer.surrounding_ids == (
        (PIECES.index(expected[0].split()[0]),),
        (PIECES.index(expected[0].split()[-1]),),
    )
    assert pieces_of(tokenizer.encode_bare(texts)) == [
        " ".join(one.split()[1:-1]) for one in expected
    ]


def test_a_word_of_more_than_a_hundred_letters_is_unknown(tmp_path):
    tokenizer = read_tokenizer(write_pieces(tmp_path), BERT)
    assert pieces_of(tokenizer.encode_bare(["a" * 100, "a" * 101])) == [
        " ".join(["a", *["##a"] * 99]),
        "[UNK]",
    ]


def test_word_pieces_are_joined_in_decoding(tmp_path):
    tokenizer = read_tokenizer(write_pieces(tmp_path), BERT)
    assert tokenizer.decode(
        tokenizer.encode(["Rain fell on Monday, it was cold."])
    ) == ["rain fell on monday, it was cold."]
    assert tokenizer.vocabulary_size == len(PIECES) and tokenizer.cut(
        tokenizer.encode(["rain fell on"])[0], 3
    ).tolist() == [3, 6, 4]


def test_truncation_and_padding_of_a_definition_are_switched_off(tmp_path):
    from tokenizers import Tokenizer as Definition

    definition = Definition.from_str(
        read_tokenizer(write_pieces(tmp_path), BERT)._tokenizer.to_str()
    )
    definition.enable_truncation(5)
    definition.enable_padding(length=9)
    definition.save(str(tmp_path / "tokenizer.json"))
    tokenizer = read_tokenizer(str(tmp_path), BERT)
    assert pieces_of(tokenizer.encode(["rain", "rain fell on the town"])) == [
        "[CLS] rain [SEP]",
        "[CLS] rain fell on the town [SEP]",
    ]
    assert pieces_of(tokenizer.encode_bare(["rain", "rain fell on the town ."])) == [
        "rain",
        "rain fell on the town .",
    ]


def test_what_is_saved_comes_back(tokenizer, tmp_path):
    tokenizer.save(str(tmp_path))
    loaded = load_tokenizer(str(tmp_path))
    assert (
        isinstance(loaded, ImportedTokenizer)
        and loaded.fingerprint == tokenizer.fingerprint
        and len(loaded.fingerprint) == 64
    )
    assert [ids.tolist() for ids in loaded.encode(TEXTS)] == [
        ids.tolist() for ids in tokenizer.encode(TEXTS)
    ]
    loaded.save(str(tmp_path / "again"))
    assert (tmp_path / "again" / "tokenizers.json").read_bytes() == (
        tmp_path / "tokenizers.json"
    ).read_bytes()


def test_a_vocabulary_with_merges_makes_the_same_tokenizer(tokenizer, tmp_path):
    write_tokenizer(tmp_path, as_definition=False)
    made = read_tokenizer(str(tmp_path), SETTINGS)
    texts = [*TEXTS, " a space before", "<mask> and </s> in a text"]
    assert [ids.tolist() for ids in made.encode(texts)] == [
        ids.tolist() for ids in tokenizer.encode(texts)
    ]
    assert (
        made.decode(made.encode(TEXTS)) == TEXTS
        and made.vocabulary_size == tokenizer.vocabulary_size <= VOCABULARY - 1
    )


def test_a_mask_in_the_vocabulary_is_a_special_token(tmp_path):
    write_tokenizer(tmp_path, as_definition=False)
    vocabulary = json.loads((tmp_path / "vocab.json").read_text())
    mask = max(vocabulary.values()) + 1
    (tmp_path / "vocab.json").write_text(json.dumps({**vocabulary, "<mask>": mask}))
    tokenizer = read_tokenizer(str(tmp_path), SETTINGS)
    (ids,) = tokenizer.encode(["Rain <mask> fell"])
    assert mask in ids.tolist() and tokenizer.decode([ids]) == ["Rain  fell"]


def test_a_folder_without_a_tokenizer_is_refused(tmp_path):
    (tmp_path / "vocab.json").write_text("{}")
    with pytest.raises(
        UsageError,
        match=(
            r"there is no tokenizer, neither tokenizer.json nor vocab.json and "
            r"merges.txt nor vocab.txt nor spiece.model; download"
        ),
    ):
        read_tokenizer(str(tmp_path), SETTINGS)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"tokenizer.json": "{}"},
            (
                r"tokenizer.json: the tokenizers library cannot read this tokenizer "
                r"\(.*\); restore the file"
            ),
        ),
        ({"vocab.json": "{", "merges.txt": ""}, "vocab.json: "),
        (
            {"vocab.json": '{"a": 0}', "merges.txt": "x y"},
            (
                r"vocab.json: no vocabulary for the merges of merges.txt \(.*\); "
                r"download both"
            ),
        ),
        (
            {"vocab.txt": "[UNK]\n[CLS]\na\n"},
            (
                r"vocab.txt: it does not hold \[SEP\], the sep_token of "
                r"tokenizer_config.json; download both"
            ),
        ),
        (
            {"vocab.txt": "[UNK]\n", "tokenizer_config.json": "{"},
            r"tokenizer_config.json: damaged \(not JSON: .*\); download the tokenizer",
        ),
        (
            {
                "vocab.txt": "[UNK]\n[CLS]\n[SEP]\n",
                "tokenizer_config.json": '{"do_lower_case": "yes"}',
            },
            r"vocab.txt: damaged \(.*\); download the tokenizer again",
        ),
        (
            {"vocab.json": "[1]", "merges.txt": ""},
            r"vocab.json: damaged \(.*\); download the tokenizer again",
        ),
        (
            {"vocab.json": '{"a": 0, "b": 1}', "merges.txt": ""},
            "vocab.json: it holds no token 2, which config.json puts around a text",
        ),
    ],
)
def test_a_damaged_tokenizer_is_refused(files, message, tmp_path):
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=rf"{tmp_path}/{message}"):
        read_tokenizer(str(tmp_path), SETTINGS)


def test_the_tokenizer_of_another_network_is_refused(folder, tokenizer):
    with pytest.raises(
        DataError,
        match=(
            rf"tokenizer.json: {tokenizer.vocabulary_size} tokens, "
            rf"and the network knows 100; take the network's"
        ),
    ):
        read_tokenizer(folder, {**SETTINGS, "vocab_size": 100})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", r"damaged \(.*\); copy the bundle again"),
        ("{}", r"damaged \(format_version is missing\); copy"),
        (
            '{"format_version": 9, "definition": {}}',
            "format_version is 9 and this precis reads 1; import the checkpoint again",
        ),
        (
            '{"format_version": 1, "definition": {}}',
            "the tokenizers library cannot read this tokenizer",
        ),
    ],
)
def test_a_saved_tokenizer_that_was_damaged_is_refused(content, message, tmp_path):
    (tmp_path / "tokenizers.json").write_text(content)
    with pytest.raises(DataError, match=rf"{tmp_path}/tokenizers.json: {message}"):
        load_tokenizer(str(tmp_path))
