"""Files of word vectors: every format gives the same numbers, a damaged file is refused
by name, and the rows of a table are those of the words that tokens stand for.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from support.small_checkpoint import SETTINGS, write_tokenizer
from support.small_encoder_checkpoint import BERT, PIECES, write_pieces

from precis.model.errors import DataError, UsageError
from precis.model.tokenization.imported import ImportedTokenizer, read_tokenizer
from precis.model.tokenization.wordpiece import RESERVED_TOKENS, Tokenizer
from precis.model.training.word_vectors import initial_table, read_vectors

ROWS = {
    "</s>": [0.0, 0.0, 0.5],
    "He": [1.0, -2.0, 0.25],
    "rain": [3.5, 2e-4, -1e-3],
    "über": [2.0, 4.0, 8.0],
    "he": [7.0, 7.0, 7.0],
}


def text(*, header=True, end="\n", gap=" ") -> bytes:
    lines = [gap.join([word, *map(repr, numbers)]) for word, numbers in ROWS.items()]
    first = [f"{len(ROWS)} 3"] if header else []
    return "".join(line + end for line in [*first, *lines]).encode()


FORMATS = {
    "word2vec": text(),
    "spaces_and_carriage_returns": text(end=" \r\n"),
    "tabs": text(gap="\t"),
    "glove": text(header=False),
    "no_last_line_break": text(header=False).rstrip(b"\n"),
    "empty_lines": text(header=False, end="\n\n"),
}


def write(folder, content: bytes) -> str:
    path = folder / "vectors"
    path.write_bytes(content)
    return str(path)


def lists_of(path, wanted, width) -> dict[str, list]:
    """The vectors of words, as lists."""
    vectors = read_vectors(path, wanted, width=width)
    return {word: vector.tolist() for word, vector in vectors.items()}


def test_every_format_gives_the_same_vectors(tmp_path):
    for name, content in FORMATS.items():
        path = write(tmp_path, content)
        assert lists_of(path, {"he", "rain", "über", "absent"}, 3) == {
            word: np.array(ROWS[word], "float32").tolist()
            for word in ("he", "rain", "über")
        }, name


WORDS = [
    # The first vector of a word counts.
    (b"3 2\nhe 1 2\nhe 3 4\nit 5 6\n", {"he": [1, 2], "it": [5, 6]}),
    # A word that is not UTF-8 is passed over,
    (b"3 2\nh\xe9 1 2\n\xff\xfe 1 2\nhe 4 5\n", {"he": [4, 5]}),
    # and vectors that are not wanted need not be finite.
    (b"if 1 nan\nhe 1 2\n", {"he": [1, 2]}),
    # Words with spaces, and numbers as words.
    (b". . . 1 2\nsee a@b.c 4 5\n. .5 5.\n", {"see a@b.c": [4, 5], ".": [0.5, 5]}),
    (b"7 1 2\nhe 4 5\n", {"7": [1, 2], "he": [4, 5]}),
]


@pytest.mark.parametrize(("content", "expected"), WORDS)
def test_words_of_all_kinds(content, expected, tmp_path):
    wanted = {"he", "it", "h\xe9", "\ufffd", "see a@b.c", "see", ".", "7"}
    assert lists_of(write(tmp_path, content), wanted, 2) == expected


UNKNOWN = "it must begin with two whole numbers, or with a word and its numbers; "
ROW = "line {} is not a word and 3 finite numbers; correct it or download it again; sa"


DAMAGED = [
    (b"", UNKNOWN),
    (b"He paid.\n", UNKNOWN),
    (b"he 1 2 3\nit 1 2\n", ROW.format(2)),
    (b"2 3\nit 1 2 3\n\nhe 1 2 3 4\n", ROW.format(4)),
    (b"2 3\nhe \0\0\x80?abcd\0\0\0\n", ROW.format(2)),
    (b"it 1 2 3\nhe 1 1,5 2\n", ROW.format(2)),
    (b"it 1 2 3\nhe 1 nan 2\n", ROW.format(2)),
    (b"it 1 2 3\nhe 1 1e39 2\n", ROW.format(2)),
    (
        b"2 3\nit 1 2 3\n",
        "it holds 1 words, but its header says 2; download it again or correct th",
    ),
    (b"\x1f\x8b\x08\0\0\n\xff\xff", UNKNOWN),
]


@pytest.mark.parametrize(("content", "message"), DAMAGED)
def test_a_damaged_file_is_refused(content, message, tmp_path):
    path = write(tmp_path, content)
    with pytest.raises(DataError, match=rf"^{path}: {message}"):
        read_vectors(path, ["he"], width=3)


def test_rows_are_replaced_by_the_vectors_of_their_tokens(tmp_path):
    vocabulary = ["▁", "▁He", "▁It", "##m", "4", ",", "▁Rain", "▁[PAD]", "▁##a"]
    vocabulary = [*RESERVED_TOKENS, *vocabulary]
    content = b"he 1 2\nHe 3 0\nit 0 1\nm 9 9\n4 1 -1\nRAIN 9 9\n,, 9 9\n[PAD] 1 0\n"
    path = write(tmp_path, content)
    table = np.full((len(vocabulary), 2), 0.5, "float32")
    table[0] = [0.0, 1.0]
    new_table, replaced, words = initial_table(table, Tokenizer(vocabulary), path)
    # The new rows have a mean square of 13 / 8.
    places = [vocabulary.index(piece) for piece in ("▁He", "▁It", "4", "▁[PAD]")]
    factor = np.sqrt(np.mean(table**2)) / np.sqrt(13 / 8)
    expected = factor * np.array([[3, 0], [0, 1], [1, -1], [1, 0]])
    np.testing.assert_allclose(new_table[places], expected, rtol=1e-6)
    others = [place for place in range(len(vocabulary)) if place not in places]
    np.testing.assert_array_equal(new_table[others], table[others])
    assert new_table.dtype == "float32" and (replaced, words) == (4, 7)
    assert table[places].tolist() == [[0.5, 0.5]] * 4


UNFIT = [
    (b"9 3\nhe 1 2 3\n", "its vectors have 3 numbers, but the embedding has 2; tr"),
    (b"il 1 2\n", "it has none of the 1 words of the tokenizer; use vectors in"),
    (b"he 0 0\n", "the vectors of all 1 matching words are zero; use another file"),
]


@pytest.mark.parametrize(("content", "message"), UNFIT)
def test_a_file_that_does_not_fit_the_table_is_refused(content, message, tmp_path):
    path = write(tmp_path, content)
    tokenizer = Tokenizer([*RESERVED_TOKENS, "▁He"])
    with pytest.raises((DataError, UsageError), match=rf"^{path}: {message}"):
        initial_table(np.ones((5, 2), "float32"), tokenizer, path)


def test_the_words_of_word_pieces(tmp_path):
    tokenizer = read_tokenizer(write_pieces(tmp_path), BERT)
    expected = [None if piece.startswith(("##", "[")) else piece for piece in PIECES]
    assert list(tokenizer.words) == expected and expected.count(None) == 5 + 6


def test_the_words_of_a_byte_level_vocabulary(tmp_path):
    path = Path(write_tokenizer(tmp_path)) / "tokenizer.json"
    definition = json.loads(path.read_text())
    vocabulary = definition["model"]["vocab"]
    # Spelt in bytes: a word of two letters beyond ASCII, half a letter, two spaces, a
    # line break.
    for piece in ("ĠÃ¼Ã¼", "ĠÃ¼Ã", "ĠĠ", "Ġ!!", "Ġrain"):
        vocabulary.setdefault(piece, len(vocabulary))
    path.write_text(json.dumps(definition))
    tokenizer = read_tokenizer(str(tmp_path), {**SETTINGS, "vocab_size": 310})
    words = {piece: tokenizer.words[token] for piece, token in vocabulary.items()}
    expected = {"ĠÃ¼Ã¼": "üü", "Ġ!!": "!!", ",": ",", "Ġrain": "rain"}
    for piece in ("ĠÃ¼Ã", "ĠĠ", "Ġ", "Ċ", "a", "Ã", "<s>", "</s>", "<pad>"):
        expected[piece] = None
    assert {piece: words[piece] for piece in expected} == expected


def test_the_words_of_a_vocabulary_with_spaces():
    from tokenizers import Tokenizer as Definition
    from tokenizers import decoders, models, pre_tokenizers

    pieces = ["<unk>", "▁", "▁rain", "rain", "▁It", ".", "▁▁", "▁(", "é"]
    definition = Definition(models.Unigram([(each, -1.0) for each in pieces], unk_id=0))
    definition.pre_tokenizer = pre_tokenizers.Metaspace()
    definition.decoder = decoders.Metaspace()
    definition.add_special_tokens(["<unk>"])
    words = ImportedTokenizer(definition.to_str()).words
    assert words == (None, None, "rain", None, "It", ".", None, "(", None)
