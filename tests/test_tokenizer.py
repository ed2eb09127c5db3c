"""The WordPiece tokenizer: exact decoding, ids by hand, files, and refusals."""

import hashlib
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

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


def test_the_graph_gives_the_same_tokens(tokenizer):
    texts = ["one\nnext", "one\n\nnext", "", "He paid $4.5m. “é”"]
    graph = tf.function(
        tokenizer.encode_tensor, input_signature=[tf.TensorSpec([None], tf.string)]
    )
    assert graph(tf.constant(texts)).to_list() == [
        row.tolist() for row in tokenizer.encode(texts)
    ]


def test_a_first_call_within_a_graph_leaves_the_tokenizer_usable():
    tokenizer = Tokenizer(VOCABULARY)
    traced = tf.function(tokenizer.encode_tensor)(tf.constant(["He paid"])).to_list()
    assert tokenizer.encode(["He paid"])[0].tolist() == traced[0]


def test_lower_case_goes_beyond_ascii():
    tokenizer = Tokenizer(VOCABULARY, lower_case=True)
    assert tokenizer.decode(tokenizer.encode(["ÀÉ paid ЖШ"])) == ["àé paid жш"]


def test_decoding_leaves_out_special_tokens_and_marks_unknown_ones(tokenizer):
    he, paid, space, dot = (
        VOCABULARY.index(piece) for piece in ("▁He", "▁paid", "▁", ".")
    )
    assert (
        tokenizer.pad_id,
        tokenizer.unknown_id,
        tokenizer.start_id,
        tokenizer.end_id,
    ) == (0, 1, 2, 3)
    assert tokenizer.decode([[2, he, paid, dot, 3, 0, 0], [0]]) == ["He paid.", ""]
    assert tokenizer.decode([[he, 1, dot], [he, space, 1], [he, len(VOCABULARY)]]) == [
        "He \ufffd.",
        "He \ufffd",
        "He \ufffd",
    ]
    assert tokenizer.decode(np.array([[he, space, space, paid]])) == ["He paid"]


def test_the_graph_decodes_as_python_does(tokenizer):
    """The rows hold ids that no text gives.

    There are special tokens at any position, repeated spaces and line breaks, and ids
    outside the vocabulary.
    """
    draw, size = np.random.default_rng(5), len(VOCABULARY)
    likely = [
        *range(len(RESERVED_TOKENS)),
        *(VOCABULARY.index(piece) for piece in ("▁", "▁␤", "▁He", "##xt")),
        -1,
        size,
        size + 9,
    ]
    rows = [
        *draw.choice(likely, (300, 12)),
        *draw.integers(-2, size + 2, (300, 12)),
        *draw.choice([4, 5], (20, 12)),
        np.zeros(12, int),
    ]
    expected = tokenizer.decode(rows)
    graph = tf.function(
        tokenizer.decode_tensor,
        input_signature=[tf.TensorSpec([None, None], tf.int32)],
        autograph=False,
    )
    assert [
        text.decode() for text in graph(tf.constant(np.array(rows), tf.int32)).numpy()
    ] == expected
    assert (
        len(set(expected)) > 550
        and sum("\n" in text for text in expected) > 100
        and expected[-1] == ""
    )
    beams = tf.reshape(tf.constant(np.array(rows[:6]), tf.int32), [3, 2, 12])
    assert [
        text.decode()
        for text in tf.reshape(tokenizer.decode_tensor(beams), [-1]).numpy()
    ] == expected[:6]
    assert tokenizer.decode_tensor(tf.zeros([2, 0], tf.int32)).numpy().tolist() == [
        b"",
        b"",
    ]


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
    on_disk = (tmp_path / "tokenizer/tokenizer.json").read_bytes() + (
        tmp_path / "tokenizer/vocab.txt"
    ).read_bytes()
    assert (
        loaded.fingerprint
        == tokenizer.fingerprint
        == hashlib.sha256(on_disk).hexdigest()
    )


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
        "Tokenizer; from precis.model.tokenization.vocabulary import count_words; "
        "count_words(['a b']); "
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"kind": "sentencepiece"},
            (
                r"tokenizer\.json: kind is 'sentencepiece' and must be "
                r"'wordpiece-visible-space'"
            ),
        ),
        ({"format_version": 2}, r"tokenizer\.json: format_version is 2 and must be 1"),
        (
            {"vocabulary_sha256": "0"},
            r"vocab\.txt: not the vocabulary that tokenizer\.json beside it names",
        ),
    ],
)
def test_changed_settings_are_refused(tokenizer, tmp_path, change, message):
    tokenizer.save(str(tmp_path))
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(DataError, match=message):
        Tokenizer.load(str(tmp_path))


def test_damaged_folders_are_refused(tokenizer, tmp_path):
    tokenizer.save(str(tmp_path))
    settings, vocabulary = tmp_path / "tokenizer.json", tmp_path / "vocab.txt"
    content = json.loads(settings.read_text())
    settings.write_text(
        json.dumps(
            {name: value for name, value in content.items() if name != "lower_case"}
        )
    )
    with pytest.raises(DataError, match="lower_case is missing"):
        Tokenizer.load(str(tmp_path))
    settings.write_text("[]")
    with pytest.raises(DataError, match="must be of the type object, not array"):
        Tokenizer.load(str(tmp_path))
    settings.write_text(json.dumps({**content, "lower_case": "no"}))
    with pytest.raises(DataError, match="lower_case must be of the type boolean"):
        Tokenizer.load(str(tmp_path))
    settings.write_text("{")
    with pytest.raises(DataError, match=r"tokenizer\.json: damaged \(not JSON"):
        Tokenizer.load(str(tmp_path))
    headless = b"a\n"
    vocabulary.write_bytes(headless)
    settings.write_text(
        json.dumps(
            {**content, "vocabulary_sha256": hashlib.sha256(headless).hexdigest()}
        )
    )
    with pytest.raises(DataError, match=r"vocab\.txt: the vocabulary does not begin"):
        Tokenizer.load(str(tmp_path))
    latin = "é\n".encode("latin-1")
    vocabulary.write_bytes(latin)
    settings.write_text(
        json.dumps({**content, "vocabulary_sha256": hashlib.sha256(latin).hexdigest()})
    )
    with pytest.raises(DataError, match=r"vocab\.txt: not UTF-8 \(.*\); restore"):
        Tokenizer.load(str(tmp_path))
    vocabulary.unlink()
    with pytest.raises(DataError, match=r"vocab\.txt: there is no such file"):
        Tokenizer.load(str(tmp_path))
