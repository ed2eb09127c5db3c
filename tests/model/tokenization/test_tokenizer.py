"""The WordPiece tokenizer: exact decoding, ids by hand, files, and refusals."""

import hashlib
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest

from precis.model.errors import DataError
from precis.model.tokenization.wordpiece import (
    RESERVED_TOKENS,
    Tokenizer,
    make_spaces_visible,
)

CHARACTERS = [chr(code) for code in range(33, 127)] + list(
    "Ààéßñœ€£–—“”‘’…漢Ωжш🙂\u200d\u0e01\u0e32"
)
PIECES = "▁ ▁␤ ▁He ▁paid ▁one ▁␤ ##xt ▁ne ▁co ##op".split()
VOCABULARY = [
    *RESERVED_TOKENS,
    *dict.fromkeys(
        [*PIECES, *CHARACTERS, *(f"##{character}" for character in CHARACTERS)]
    ),
]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(VOCABULARY)


def pieces(tokenizer: Tokenizer, text: str) -> str:
    return " ".join(
        tokenizer.vocabulary[token] for token in tokenizer.encode([text])[0]
    )


def test_the_documented_example(tokenizer):
    assert pieces(tokenizer, "He paid $4.5m.") == "▁He ▁paid ▁ $ 4 . 5 ##m ."


def test_a_line_break_is_a_separate_piece(tokenizer):
    assert pieces(tokenizer, "one\nnext") == "▁one ▁␤ ▁ne ##xt"


def test_the_longest_piece_wins(tokenizer):
    assert pieces(tokenizer, "coop") == "▁co ##op"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "He paid $4.5m.",
        "one\nnext",
        "one\n\nnext",
        "\nbegins and ends with breaks\n",
        (
            "He said: \"No\" (twice) -- and it's co-op's #1, "
            "50% [UNK] [START] ## ##x a##b."
        ),
        "“Àéßñ” — œ… costs €5–£6; 漢Ω жш 🙂🙂",
        "\u0e01\u0e32" * 3000,
        "e" * 70,
        "e" * 5000,
    ],
)
def test_decoding_gives_back_the_text(tokenizer, text):
    tokens = tokenizer.encode([text, "other"])[0]
    assert tokenizer.unknown_id not in tokens
    assert tokenizer.decode([tokens]) == [text]


def test_every_character_survives_beside_letters_and_alone(tokenizer):
    texts = [
        f"a{character}b {character} {character}{character}" for character in CHARACTERS
    ]
    assert tokenizer.decode(tokenizer.encode(texts)) == texts


def test_a_batch_gives_each_text_its_own_tokens(tokenizer):
    texts = ["He", "", "He paid one", "next"]
    batch = tokenizer.encode(texts)
    assert [row.dtype for row in batch] == [np.int32] * 4
    assert [row.tolist() for row in batch] == [
        tokenizer.encode([text])[0].tolist() for text in texts
    ]
    assert [len(row) for row in batch] == [1, 1, 3, 2]
    assert tokenizer.encode([]) == []


def test_lower_case_goes_beyond_ascii():
    tokenizer = Tokenizer(VOCABULARY, lower_case=True)
    assert tokenizer.decode(tokenizer.encode(["ÀÉ paid ЖШ"])) == ["àé paid жш"]


def test_decoding_leaves_out_special_tokens_and_marks_unknown_ones(tokenizer):
    he, paid, space, dot = (
        VOCABULARY.index(piece) for piece in ("▁He", "▁paid", "▁", ".")
    )
    names = ("pad_id", "unknown_id", "start_id", "end_id")
    assert [getattr(tokenizer, name) for name in names] == [0, 1, 2, 3]
    assert tokenizer.decode([[2, he, paid, dot, 3, 0, 0], [0]]) == ["He paid.", ""]
    assert tokenizer.decode([[he, 1, dot], [he, space, 1], [he, len(VOCABULARY)]]) == [
        "He \ufffd.",
        "He \ufffd",
        "He \ufffd",
    ]
    assert tokenizer.decode(np.array([[he, space, space, paid]])) == ["He paid"]


def test_a_word_with_an_unknown_character_is_unknown(tokenizer):
    assert tokenizer.decode(tokenizer.encode(["He żaid one"])) == ["He \ufffd one"]


def test_visible_spaces():
    visible = make_spaces_visible("a b\nc\n\nd")
    assert visible == "▁a ▁b ▁␤ ▁c ▁␤ ▁␤ ▁d"


def test_a_saved_tokenizer_is_the_same(tokenizer, tmp_path):
    folder = str(tmp_path / "tokenizer")
    Tokenizer(VOCABULARY, lower_case=True).save(folder)
    assert Tokenizer.load(folder).lower_case
    tokenizer.save(folder)
    loaded = Tokenizer.load(folder)
    assert loaded.vocabulary == tuple(VOCABULARY)
    assert loaded.vocabulary_size == len(VOCABULARY)
    assert not loaded.lower_case
    names = ("tokenizer.json", "vocab.txt")
    on_disk = b"".join((tmp_path / "tokenizer" / name).read_bytes() for name in names)
    expected = hashlib.sha256(on_disk).hexdigest()
    assert loaded.fingerprint == tokenizer.fingerprint == expected


def test_the_fingerprint_depends_on_vocabulary_and_case(tokenizer):
    others = [
        Tokenizer(VOCABULARY, lower_case=True),
        Tokenizer(VOCABULARY[:-1]),
        Tokenizer([*VOCABULARY[:-2], *VOCABULARY[:-3:-1]]),
    ]
    assert len({tokenizer.fingerprint, *(other.fingerprint for other in others)}) == 4
    assert Tokenizer(list(VOCABULARY)).fingerprint == tokenizer.fingerprint


def test_decoding_and_counting_need_no_tensorflow(tokenizer, tmp_path):
    tokenizer.save(str(tmp_path))
    rows = pickle.dumps([row.tolist() for row in tokenizer.encode(["He paid"])]).hex()
    program = (
        "import pickle, sys; from precis.model.tokenization.wordpiece import "
        "Tokenizer; from precis.model.tokenization.vocabulary import *; "
        "learn(count_words(['a b']), size=300); "
        f"t = Tokenizer.load({str(tmp_path)!r}); "
        f"print(t.decode(pickle.loads(bytes.fromhex({rows!r}))), "
        f"'tensorflow' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "['He paid'] False\n"


@pytest.mark.parametrize(
    ("vocabulary", "message"),
    [
        (
            ["a", *RESERVED_TOKENS],
            (
                r"does not begin with \[PAD\] \[UNK\] \[START\] \[END\]; "
                r"put the reserved tokens first"
            ),
        ),
        (RESERVED_TOKENS[:3], "does not begin with"),
        ([*RESERVED_TOKENS, "a", "b", "a"], "holds 'a' twice"),
        ([*RESERVED_TOKENS, ""], "piece 4 of the vocabulary is ''"),
        ([*RESERVED_TOKENS, "a\nb"], r"piece 4 of the vocabulary is 'a\\nb'"),
    ],
)
def test_a_bad_vocabulary_is_refused(vocabulary, message):
    with pytest.raises(DataError, match=message):
        Tokenizer(vocabulary)


GONE = "gone"


@pytest.mark.parametrize(
    ("settings", "vocabulary", "message"),
    [
        (
            {"kind": "x"},
            None,
            r"json: kind is 'x' and must be 'wordpiece-visible-space'",
        ),
        ({"format_version": 2}, None, r"json: format_version is 2 and must be 1"),
        (
            {"vocabulary_sha256": "0"},
            None,
            "not the vocabulary that tokenizer.json besi",
        ),
        ({"lower_case": GONE}, None, "lower_case is missing"),
        ({"lower_case": "no"}, None, "lower_case must be of the type boolean"),
        (b"[]", None, "must be of the type object, not array"),
        (b"{", None, r"tokenizer\.json: damaged \(not JSON"),
        ({}, b"a\n", r"vocab\.txt: the vocabulary does not begin"),
        ({}, b"\xe9\n", r"vocab\.txt: not UTF-8 \(.*\); restore"),
        ({}, GONE, r"vocab\.txt: there is no such file"),
    ],
)
def test_damaged_folders_are_refused(
    settings, vocabulary, message, tokenizer, tmp_path
):
    tokenizer.save(str(tmp_path))
    path = tmp_path / "tokenizer.json"
    if isinstance(settings, bytes):
        path.write_bytes(settings)
    else:
        content = {**json.loads(path.read_text()), **settings}
        if isinstance(vocabulary, bytes):
            content["vocabulary_sha256"] = hashlib.sha256(vocabulary).hexdigest()
            (tmp_path / "vocab.txt").write_bytes(vocabulary)
        kept = {name: value for name, value in content.items() if value != GONE}
        path.write_text(json.dumps(kept))
    if vocabulary == GONE:
        (tmp_path / "vocab.txt").unlink()
    with pytest.raises(DataError, match=message):
        Tokenizer.load(str(tmp_path))
