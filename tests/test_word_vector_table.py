"""Embedding tables with word vectors: the rows that are replaced are those of the words
that tokens stand for.
"""

import json

import numpy as np
import pytest
from support.small_checkpoint import SETTINGS, write_tokenizer
from support.small_encoder_checkpoint import BERT, PIECES, write_pieces

from precis.model.errors import DataError, UsageError
from precis.model.tokenization.checkpoint_files import read_tokenizer
from precis.model.tokenization.imported import ImportedTokenizer
from precis.model.tokenization.wordpiece import RESERVED_TOKENS, Tokenizer
from precis.model.training.word_vectors import initial_table


def write(folder, content: bytes) -> str:
    path = folder / "vectors"
    path.write_bytes(content)
    return str(path)


VOCABULARY = [
    *RESERVED_TOKENS,
    "▁",
    "▁␤",
    "▁He",
    "▁It",
    "##m",
    "##he",
    "4",
    ",",
    "▁Rain",
    "▁[PAD]",
    "▁##a",
]


def test_the_words_of_our_tokens():
    words = Tokenizer(VOCABULARY).words
    assert words == (
        *[None] * 6,
        "He",
        "It",
        None,
        None,
        "4",
        ",",
        "Rain",
        "[PAD]",
        "##a",
    )


def test_rows_are_replaced_by_the_vectors_of_their_tokens(tmp_path):
    rows = {
        "he": [1, 2],
        "He": [3, 0],
        "it": [0, 1],
        "m": [9, 9],
        "4": [1, -1],
        "RAIN": [9, 9],
        ",,": [9, 9],
        "[PAD]": [1, 0],
    }
    path = write(
        tmp_path, "".join(f"{word} {x} {y}\n" for word, (x, y) in rows.items()).encode()
    )
    table = np.full((len(VOCABULARY), 2), 0.5, "float32")
    table[0] = [0.0, 1.0]
    new_table, replaced, words = initial_table(table, Tokenizer(VOCABULARY), path)
    # The new rows are (3, 0), (0, 1), (1, -1), (1, 0): a mean square of 13 / 8. That of
    # the table is 8 / 30.
    places = [VOCABULARY.index(piece) for piece in ("▁He", "▁It", "4", "▁[PAD]")]
    factor = np.sqrt(8 / 30) / np.sqrt(13 / 8)
    np.testing.assert_allclose(
        new_table[places],
        factor * np.array([[3, 0], [0, 1], [1, -1], [1, 0]]),
        rtol=1e-6,
    )
    np.testing.assert_allclose(
        np.sqrt(np.mean(new_table[places] ** 2)), np.sqrt(np.mean(table**2)), rtol=1e-6
    )
    others = [place for place in range(len(VOCABULARY)) if place not in places]
    np.testing.assert_array_equal(new_table[others], table[others])
    assert new_table.dtype == "float32" and (replaced, words) == (4, 7)
    assert table[places].tolist() == [[0.5, 0.5]] * 4


def test_vectors_of_another_width_are_refused_before_they_are_read(tmp_path):
    path = write(tmp_path, b"9 3\nhe 1 2 3\n")  # cut off, but that comes later
    with pytest.raises(
        UsageError,
        match=f"^{path}: its vectors have 3 numbers, and the embedding has 2; "
        "train with --width 3",
    ):
        initial_table(
            np.ones((len(VOCABULARY), 2), "float32"), Tokenizer(VOCABULARY), path
        )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"il 1 2\n",
            "none of the 7 words of the tokenizer is in it; "
            "take vectors of the corpus's language",
        ),
        (
            b"he 0 0\nit 0 0\n",
            "the vectors of all 2 words found are zero; take another file",
        ),
    ],
)
def test_a_file_without_vectors_of_the_tokens_is_refused(content, message, tmp_path):
    path = write(tmp_path, content)
    with pytest.raises(DataError, match=rf"^{path}: {message}"):
        initial_table(
            np.ones((len(VOCABULARY), 2), "float32"), Tokenizer(VOCABULARY), path
        )


def test_the_words_of_word_pieces(tmp_path):
    tokenizer = read_tokenizer(write_pieces(tmp_path), BERT)
    expected = [None if piece.startswith(("##", "[")) else piece for piece in PIECES]
    assert list(tokenizer.words) == expected and expected.count(None) == 5 + 6


def test_the_words_of_a_byte_level_vocabulary(tmp_path):
    write_tokenizer(tmp_path, as_definition=False)
    vocabulary = json.loads((tmp_path / "vocab.json").read_text())
    # Spelt in bytes: a word of two letters beyond ASCII, half a letter, two spaces, a
    # line break.
    for piece in ("ĠÃ¼Ã¼", "ĠÃ¼Ã", "ĠĠ", "Ġ!!", "Ġrain"):
        vocabulary.setdefault(piece, len(vocabulary))
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    tokenizer = read_tokenizer(str(tmp_path), {**SETTINGS, "vocab_size": 310})
    words = {piece: tokenizer.words[token] for piece, token in vocabulary.items()}
    expected = {"ĠÃ¼Ã¼": "üü", "Ġ!!": "!!", ",": ",", "Ġrain": "rain"}
    for piece in ("ĠÃ¼Ã", "ĠĠ", "Ġ", "Ċ", "a", "Ã", "<s>", "</s>", "<pad>"):
        expected[piece] = None
    assert {piece: words[piece] for piece in expected} == expected
    assert len(tokenizer.words) == tokenizer.vocabulary_size


def test_rows_of_an_imported_vocabulary(tmp_path):
    from tokenizers import Tokenizer as Definition
    from tokenizers import decoders, models, pre_tokenizers

    pieces = ["<unk>", "▁", "▁rain", "rain", "▁It", ".", "▁▁", "▁(", "é"]
    definition = Definition(
        models.Unigram([(piece, -1.0) for piece in pieces], unk_id=0)
    )
    definition.pre_tokenizer = pre_tokenizers.Metaspace()
    definition.decoder = decoders.Metaspace()
    definition.add_special_tokens(["<unk>"])
    tokenizer = ImportedTokenizer(definition.to_str())
    assert tokenizer.words == (None, None, "rain", None, "It", ".", None, "(", None)
    path = write(tmp_path, "rain 3 4\nit 0 0\né 9 9\n".encode())
    table, replaced, words = initial_table(np.ones((10, 2), "float32"), tokenizer, path)
    # The mean square of (3, 4) and (0, 0) is 25 / 4, that of the table 1.
    np.testing.assert_allclose(table[[2, 4]], [[1.2, 1.6], [0, 0]], rtol=1e-6)
    assert (table[[0, 1, 3, 5, 6, 7, 8, 9]] == 1).all()
    assert (replaced, words) == (2, 4)
