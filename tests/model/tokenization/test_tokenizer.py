"""The WordPiece tokenizer: exact decoding, ids by hand, files, and refusals."""

import hashlib
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest

from precis.model.errors import DataError
from precis.model.tokenization.wordpiece import RESERVED_TOKENS, Tokenizer

CHARACTERS = [*map(chr, range(33, 127)), *"Ààéßñœ€£–—“”‘’…漢Ωжш🙂\u200d\u0e01\u0e32"]
PIECES = "▁ ▁␤ ▁He ▁paid ▁one ▁␤ ##xt ▁ne ▁co ##op".split()
WITHIN_WORDS = [f"##{character}" for character in CHARACTERS]
VOCABULARY = [*RESERVED_TOKENS, *dict.fromkeys([*PIECES, *CHARACTERS, *WITHIN_WORDS])]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(VOCABULARY)


def test_pieces_by_hand(tokenizer):
    for text, expected in (
        ("He paid $4.5m.", "▁He ▁paid ▁ $ 4 . 5 ##m ."),
        ("one\nnext", "▁one ▁␤ ▁ne ##xt"),
        ("one\n\nHe", "▁one ▁␤ ▁␤ ▁He"),
        ("coop", "▁co ##op"),  # The longest piece wins.
    ):
        (ids,) = tokenizer.encode([text])
        assert " ".join(tokenizer.vocabulary[token] for token in ids) == expected
    # A word that cannot be cut or has more than 65,536 bytes is one unknown token.
    for word in ("e" * 65_534, "żaid", "paidż"):
        assert tokenizer.encode([word])[0].tolist() == [tokenizer.unknown_id]


DECODED = [
    "",
    "He paid $4.5m.",
    "one\nnext",
    "one\n\nnext",
    "\nbegins and ends with breaks\n",
    "He said: \"No\" (twice) -- and it's co-op's #1, 50%.",
    "[UNK] [START] ## ##x a##b.",
    "“Àéßñ” — œ… costs €5–£6; 漢Ω жш 🙂🙂",
    "\u0e01\u0e32" * 3000,
    "e" * 70,
    "e" * 5000,
    # Every character beside letters and alone.
    " ".join(f"a{each}b {each} {each}{each}" for each in CHARACTERS),
]


@pytest.mark.parametrize("text", DECODED)
def test_decoding_gives_back_the_text(tokenizer, text):
    tokens = tokenizer.encode([text, "other"])[0]
    assert tokenizer.unknown_id not in tokens
    assert tokenizer.decode([tokens]) == [text]


def test_a_batch_gives_each_text_its_own_tokens(tokenizer):
    texts = ["He", "", "He paid one", "next"]
    batch = tokenizer.encode(texts)
    assert [row.dtype for row in batch] == [np.int32] * 4
    alone = [tokenizer.encode([text])[0].tolist() for text in texts]
    assert [row.tolist() for row in batch] == alone
    assert [len(row) for row in batch] == [1, 1, 3, 2]
    assert tokenizer.encode([]) == []


def test_decoding_leaves_out_special_tokens_and_marks_unknown_ones(tokenizer):
    he, paid, space, dot = map(VOCABULARY.index, ("▁He", "▁paid", "▁", "."))
    names = ("pad_id", "unknown_id", "start_id", "end_id")
    assert [getattr(tokenizer, name) for name in names] == [0, 1, 2, 3]
    assert tokenizer.decode([[2, he, paid, dot, 3, 0, 0], [0]]) == ["He paid.", ""]
    unknown = [[he, 1, dot], [he, space, 1], [he, len(VOCABULARY)]]
    assert tokenizer.decode(unknown) == ["He \ufffd.", "He \ufffd", "He \ufffd"]
    assert tokenizer.decode(np.array([[he, space, space, paid]])) == ["He paid"]
    # A word with an unknown character; lower case beyond ASCII.
    assert tokenizer.decode(tokenizer.encode(["He żaid one"])) == ["He \ufffd one"]
    lower = Tokenizer(VOCABULARY, lower_case=True)
    assert lower.decode(lower.encode(["ÀÉ paid ЖШ"])) == ["àé paid жш"]


def test_a_saved_tokenizer_is_the_same(tokenizer, tmp_path):
    folder = str(tmp_path / "tokenizer")
    Tokenizer(VOCABULARY, lower_case=True).save(folder)
    assert Tokenizer.load(folder).lower_case
    tokenizer.save(folder)
    loaded = Tokenizer.load(folder)
    assert loaded.vocabulary == tuple(VOCABULARY)
    assert loaded.vocabulary_size == len(VOCABULARY)
    assert not loaded.lower_case
    used = pickle.loads(pickle.dumps(tokenizer))  # It has encoded.
    first, second = (each.encode(["He paid"])[0].tolist() for each in (used, loaded))
    assert first == second
    names = ("tokenizer.json", "vocab.txt")
    on_disk = b"".join((tmp_path / "tokenizer" / name).read_bytes() for name in names)
    expected = hashlib.sha256(on_disk).hexdigest()
    assert loaded.fingerprint == tokenizer.fingerprint == expected
    others = Tokenizer(VOCABULARY, lower_case=True), Tokenizer(VOCABULARY[:-1])
    assert len({expected, *(other.fingerprint for other in others)}) == 3


def test_a_tokenizer_needs_no_tensorflow(tokenizer, tmp_path):
    tokenizer.save(str(tmp_path))
    program = (
        "import sys; from precis.model.tokenization.wordpiece import Tokenizer; "
        "from precis.model.tokenization.vocabulary import *; "
        "learn(count_words(['a b']), size=300); "
        f"t = Tokenizer.load({str(tmp_path)!r}); "
        f"print(t.decode(t.encode(['He paid'])), 'tensorflow' in sys.modules)"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "['He paid'] False\n"


REFUSED = r"\.txt: damaged \({}.*\); restore the file or run `precis prepare` again"
BEGINS = REFUSED.format(r"its first lines are not \[PAD\] \[UNK\] \[START\] \[END\]")
RESERVED = "\n".join(RESERVED_TOKENS)
GONE = "gone"


DAMAGED = [
    ({"kind": "x"}, None, r"json: kind is 'x', but must be 'wordpiece-visible-spac"),
    ({"format_version": 2}, None, r"json: format_version is 2, but must be 1; use"),
    ({"vocabulary_sha256": "0"}, None, REFUSED.format("its sha256 differs from")),
    ({"lower_case": GONE}, None, "lower_case is missing"),
    ({"lower_case": "no"}, None, "lower_case must be of type bool"),
    (b"[]", None, "must be of type dict, not list"),
    (b"{", None, r"tokenizer\.json: damaged \(not JSON"),
    ({}, f"a\n{RESERVED}\n", BEGINS),
    ({}, "[PAD]\n[UNK]\n[START]\n", BEGINS),
    ({}, f"{RESERVED}\na\nb\na\n", REFUSED.format("it holds 'a' 2 times; every")),
    ({}, f"{RESERVED}\n\n", REFUSED.format("it holds '' 1 times")),
    ({}, b"\xe9\n", REFUSED.format("'utf-8' codec")),
    ({}, GONE, r"vocab\.txt: missing; restore"),
]


@pytest.mark.parametrize(("settings", "vocabulary", "message"), DAMAGED)
def test_damaged_folders_are_refused(
    settings, vocabulary, message, tokenizer, tmp_path
):
    tokenizer.save(str(tmp_path))
    path = tmp_path / "tokenizer.json"
    if isinstance(settings, bytes):
        path.write_bytes(settings)
    else:
        content = {**json.loads(path.read_text()), **settings}
        if vocabulary not in (None, GONE):
            text = vocabulary if isinstance(vocabulary, bytes) else vocabulary.encode()
            content["vocabulary_sha256"] = hashlib.sha256(text).hexdigest()
            (tmp_path / "vocab.txt").write_bytes(text)
        kept = {name: value for name, value in content.items() if value != GONE}
        path.write_text(json.dumps(kept))
    if vocabulary == GONE:
        (tmp_path / "vocab.txt").unlink()
    with pytest.raises(DataError, match=message):
        Tokenizer.load(str(tmp_path))
    with pytest.raises(ValueError, match=r"it holds 'a\\nb' 1 times"):
        Tokenizer([*RESERVED_TOKENS, "a\nb"])
