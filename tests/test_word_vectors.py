"""Word vectors: every format gives the same numbers, damage is refused by name, and the
rows of a table are those of its tokens.
"""

import gzip
import json
import tracemalloc

import numpy as np
import pytest
from small_checkpoint import SETTINGS, write_tokenizer
from small_encoder_checkpoint import BERT, PIECES, write_pieces

from precis.model.errors import DataError, UsageError
from precis.model.tokenization.checkpoint_files import read_tokenizer
from precis.model.tokenization.imported import ImportedTokenizer
from precis.model.tokenization.wordpiece import RESERVED_TOKENS, Tokenizer
from precis.model.training import word_vectors
from precis.model.training.word_vectors import initial_table, read_vectors, read_width

# The second number of `rain` is four bytes that are spaces and line breaks.
ODD = float(np.frombuffer(b" \n \n", "<f4")[0])
ROWS = {
    "</s>": [0.0, 0.0, 0.5],
    "He": [1.0, -2.0, 0.25],
    "rain": [3.5, ODD, -1e-3],
    "über": [2.0, 4.0, 8.0],
    "he": [7.0, 7.0, 7.0],
}
WANTED = {"he", "rain", "über", "absent"}


def text(rows=None, *, header=True, end="\n", gap=" ") -> bytes:
    rows = ROWS if rows is None else rows
    first = [f"{len(rows)} 3"] if header else []
    lines = first + [
        gap.join([word, *(repr(number) for number in numbers)])
        for word, numbers in rows.items()
    ]
    return "".join(line + end for line in lines).encode()


def binary(rows=None, *, end=b"\n", count=None, width=3) -> bytes:
    rows = ROWS if rows is None else rows
    body = [
        word.encode() + b" " + np.array(numbers, "<f4").tobytes() + end
        for word, numbers in rows.items()
    ]
    return b"%d %d\n" % (len(rows) if count is None else count, width) + b"".join(body)


FORMATS = {
    "word2vec_text": text(),
    "spaces_and_carriage_returns": text(end=" \r\n"),
    "tabs": text(gap="\t"),
    "glove": text(header=False),
    "no_last_line_break": text(header=False).rstrip(b"\n"),
    "empty_lines": text(header=False, end="\n\n"),
    "binary": binary(),
    "binary_without_line_breaks": binary(end=b""),
}


def write(folder, content: bytes) -> str:
    path = folder / "vectors"
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_vectors(name, compress, tmp_path):
    path = write(tmp_path, compress(FORMATS[name]))
    width, found = read_vectors(path, WANTED)
    assert width == read_width(path) == 3 and found.keys() == {"he", "rain", "über"}
    for word, vector in found.items():
        assert (
            vector.dtype == "float32"
            and vector.tolist() == np.array(ROWS[word], "float32").tolist()
        )


def test_words_across_the_blocks_that_are_read(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    rows = {
        f"word{'x' * int(length)}{place}": rng.normal(size=20).tolist()
        for place, length in enumerate(rng.integers(0, 30, 200))
    }
    path = write(tmp_path, binary(rows, width=20))
    monkeypatch.setattr(word_vectors, "_BLOCK", 64)
    found = read_vectors(path, rows).found
    assert list(found) == list(rows)
    np.testing.assert_array_equal(
        np.stack(list(found.values())), np.array(list(rows.values()), "float32")
    )


@pytest.mark.parametrize("is_binary", [False, True])
def test_a_file_is_not_held_in_memory(is_binary, tmp_path):
    numbers = np.full(100, 0.25, "float32")
    row = numbers.tobytes() if is_binary else b" ".join([b"0.25"] * 100)
    path = write(
        tmp_path,
        b"15000 100\n"
        + b"".join(b"w%d %s\n" % (place, row) for place in range(15_000)),
    )
    tracemalloc.start()
    found = read_vectors(path, {"w0", "w14999"}).found
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [vector.tolist() for vector in found.values()] == [numbers.tolist()] * 2
    assert peak < 4_000_000 < 6_000_000 < (tmp_path / "vectors").stat().st_size


def test_the_first_vector_of_a_word_counts(tmp_path):
    path = write(tmp_path, b"3 2\nhe 1 2\nhe 3 4\nit 5 6\n")
    assert {
        word: vector.tolist()
        for word, vector in read_vectors(path, ["he", "it"]).found.items()
    } == {"he": [1, 2], "it": [5, 6]}


BROKEN = [
    b"3 3\nh\xe9 1 2 3\n\xff\xfe 1 2 3\nhe 4 5 6\n",
    binary({"%": [1, 2, 3], "he": [4, 5, 6]}).replace(b"%", b"\xe9\xff"),
]


@pytest.mark.parametrize("content", BROKEN)
def test_a_word_that_is_not_utf_8_is_passed_over(content, tmp_path):
    path = write(tmp_path, content)
    assert {
        word: vector.tolist()
        for word, vector in read_vectors(path, ["he", "h\xe9", "\ufffd"]).found.items()
    } == {"he": [4, 5, 6]}


@pytest.mark.parametrize("first", [b"he 1 2 3", b". . . 1 2 3"])
def test_words_with_spaces(first, tmp_path):
    path = write(
        tmp_path, first + b"\nsee name@domain.com 4 5 6\n1999 7 8 9\n. 0.5 .5 5.\n"
    )
    found = read_vectors(path, ["see name@domain.com", "1999", ".", "see"]).found
    assert {word: vector.tolist() for word, vector in found.items()} == {
        "see name@domain.com": [4, 5, 6],
        "1999": [7, 8, 9],
        ".": [0.5, 0.5, 5],
    }


def test_a_number_as_the_first_word_without_a_header(tmp_path):
    path = write(tmp_path, b"7 1 2 3\nhe 4 5 6\n")
    assert (
        read_vectors(path, ["7"]).found["7"].tolist() == [1, 2, 3]
        and read_width(path) == 3
    )


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    for path in (tmp_path / "none", tmp_path):
        for read in (lambda path: read_vectors(path, ["he"]), read_width):
            with pytest.raises(
                UsageError,
                match=rf"^{path}: there is no such file of word vectors; name one that was downloaded",
            ):
                read(str(path))


OTHER = "it begins neither with two whole numbers nor with a word and its numbers; take a file of word vectors"
LACKING = "the 5 words of 3 numbers that its header says; download it again"
SQUEEZED = gzip.compress(binary(), mtime=0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", OTHER),
        (b"He paid.\n", OTHER),
        (b"\x80\x04\x95 pickled", OTHER),
        (b"he 1 2 x 3\n", OTHER),
        (
            b"he 1 2 3\nit 1 2\n",
            "line 2 has 2 numbers, and the first has 3; download it again, or correct it",
        ),
        (
            b"2 3\nit 1 2 3\n\nhe 1 2 3 4\n",
            "line 4 has 4 numbers, and the header says 3; download it again, or correct it",
        ),
        (
            b"2 4\nit 1 2 3\nhe 1 2 3\n",
            "line 2 has 3 numbers, and the header says 4; download it again, or correct it",
        ),
        (
            b"3 2\nit 1 2\nhe 1 2\n",
            "it holds 2 words, and its header says 3; download it again, or correct the header",
        ),
        (
            b"1 2\nit 1 2\nhe 1 2\n",
            "it holds 2 words, and its header says 1; download it again, or correct the header",
        ),
        (
            b"it 1 2\nhe 1 1,5\n",
            r"line 2: could not convert .*1,5.*; download it again, or correct the line",
        ),
        (
            b"it 1 2\nhe 1 nan\n",
            "the vector of 'he' is not finite; remove the word from the file, or take another",
        ),
        (b"it 1 2\nhe 1 1e39\n", "the vector of 'he' is not finite; remove"),
        (
            binary({**ROWS, "he": [1, float("inf"), 2]}),
            "the vector of 'he' is not finite; remove",
        ),
        (binary()[:-2], rf"it ends in word 5 of {LACKING}"),
        (binary()[:15], rf"it ends in word 1 of {LACKING}"),
        (
            binary(count=6),
            "it ends in word 6 of the 6 words of 3 numbers that its header says; download it again",
        ),
        (
            binary(count=4),
            "more follows behind the 4 words of 3 numbers that its header says; download it again",
        ),
        (binary(end=b"", count=4), "more follows behind the 4 words"),
        (
            binary(width=300),
            "it ends in word 1 of the 5 words of 300 numbers that its header says; download it again",
        ),
        (SQUEEZED[:-20], r"its compression is damaged \(.*\); download it again"),
        (
            SQUEEZED[:10] + b"\xff" * 20 + SQUEEZED[30:],
            r"its compression is damaged \(.*\); download it again",
        ),
        (
            SQUEEZED[:-8] + bytes(8),
            r"its compression is damaged \(.*\); download it again",
        ),
    ],
)
def test_a_damaged_file_is_refused(content, message, tmp_path):
    path = write(tmp_path, content)
    with pytest.raises(DataError, match=rf"^{path}: {message}"):
        read_vectors(path, ["he"])


def test_what_is_not_wanted_need_not_be_finite(tmp_path):
    assert read_vectors(write(tmp_path, b"it 1 nan\nhe 1 2\n"), ["he"]).found[
        "he"
    ].tolist() == [1, 2]


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
    made, found, of = initial_table(table, Tokenizer(VOCABULARY), path)
    # The rows found are (3, 0), (0, 1), (1, -1), (1, 0): a mean square of 13 / 8. That
    # of the table is 8 / 30.
    places = [VOCABULARY.index(piece) for piece in ("▁He", "▁It", "4", "▁[PAD]")]
    factor = np.sqrt(8 / 30) / np.sqrt(13 / 8)
    np.testing.assert_allclose(
        made[places], factor * np.array([[3, 0], [0, 1], [1, -1], [1, 0]]), rtol=1e-6
    )
    np.testing.assert_allclose(
        np.sqrt(np.mean(made[places] ** 2)), np.sqrt(np.mean(table**2)), rtol=1e-6
    )
    others = [place for place in range(len(VOCABULARY)) if place not in places]
    np.testing.assert_array_equal(made[others], table[others])
    assert (
        made.dtype == "float32"
        and (found, of) == (4, 7)
        and table[places].tolist() == [[0.5, 0.5]] * 4
    )


def test_vectors_of_another_width_are_refused_before_they_are_read(tmp_path):
    path = write(tmp_path, b"9 3\nhe 1 2 3\n")  # cut off, but that comes later
    with pytest.raises(
        UsageError,
        match=rf"^{path}: its vectors have 3 numbers, and the embedding has 2; train with --width 3",
    ):
        initial_table(
            np.ones((len(VOCABULARY), 2), "float32"), Tokenizer(VOCABULARY), path
        )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"il 1 2\n",
            "none of the 7 words of the tokenizer is in it; take vectors of the corpus's language",
        ),
        (
            b"he 0 0\nit 0 0\n",
            "the vectors of all 2 words found are zero; take another file",
        ),
    ],
)
def test_a_file_that_says_nothing_of_the_tokens_is_refused(content, message, tmp_path):
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
    assert {
        piece: words[piece]
        for piece in (
            "ĠÃ¼Ã¼",
            "ĠÃ¼Ã",
            "ĠĠ",
            "Ġ!!",
            "Ġ",
            "Ċ",
            ",",
            "a",
            "Ã",
            "<s>",
            "</s>",
            "<pad>",
        )
    } == {
        **{
            "ĠÃ¼Ã¼": "üü",
            "ĠÃ¼Ã": None,
            "ĠĠ": None,
            "Ġ!!": "!!",
            "Ġ": None,
            "Ċ": None,
            ",": ",",
            "a": None,
            "Ã": None,
        },
        **{"<s>": None, "</s>": None, "<pad>": None},
    }
    assert (
        words["Ġrain"] == "rain" and len(tokenizer.words) == tokenizer.vocabulary_size
    )


def test_rows_of_an_imported_vocabulary(tmp_path):
    from tokenizers import Tokenizer as Definition
    from tokenizers import decoders, models, pre_tokenizers

    pieces = ["<unk>", "▁", "▁rain", "rain", "▁It", ".", "▁▁", "▁(", "é"]
    definition = Definition(
        models.Unigram([(piece, -1.0) for piece in pieces], unk_id=0)
    )
    definition.pre_tokenizer, definition.decoder = (
        pre_tokenizers.Metaspace(),
        decoders.Metaspace(),
    )
    definition.add_special_tokens(["<unk>"])
    tokenizer = ImportedTokenizer(definition.to_str())
    assert tokenizer.words == (None, None, "rain", None, "It", ".", None, "(", None)
    path = write(tmp_path, "rain 3 4\nit 0 0\né 9 9\n".encode())
    made, found, of = initial_table(np.ones((10, 2), "float32"), tokenizer, path)
    # The mean square of (3, 4) and (0, 0) is 25 / 4, that of the table 1.
    np.testing.assert_allclose(made[[2, 4]], [[1.2, 1.6], [0, 0]], rtol=1e-6)
    assert (found, of) == (2, 4) and (made[[0, 1, 3, 5, 6, 7, 8, 9]] == 1).all()
