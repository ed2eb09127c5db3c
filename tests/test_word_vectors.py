"""Files of word vectors: every format gives the same numbers, and a damaged file is
refused by name.
"""

import gzip
import tracemalloc

import numpy as np
import pytest

from precis.model.errors import DataError, UsageError
from precis.model.training import word_vectors
from precis.model.training.word_vectors import read_vectors, read_width

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


def lists_of(path, wanted) -> dict[str, list]:
    """The vectors of words, as lists."""
    vectors = read_vectors(path, wanted).vectors
    return {word: vector.tolist() for word, vector in vectors.items()}


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_every_format_gives_the_same_vectors(compress, tmp_path):
    for name, content in FORMATS.items():
        path = write(tmp_path, compress(content))
        width, vectors = read_vectors(path, WANTED)
        assert width == read_width(path) == 3, name
        assert vectors.keys() == {"he", "rain", "über"}, name
        for word, vector in vectors.items():
            assert vector.dtype == "float32"
            assert vector.tolist() == np.array(ROWS[word], "float32").tolist(), name


def test_words_across_the_blocks_that_are_read(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    rows = {
        f"word{'x' * int(length)}{place}": rng.normal(size=20).tolist()
        for place, length in enumerate(rng.integers(0, 30, 200))
    }
    path = write(tmp_path, binary(rows, width=20))
    monkeypatch.setattr(word_vectors, "_BLOCK", 64)
    vectors = read_vectors(path, rows).vectors
    assert list(vectors) == list(rows)
    np.testing.assert_array_equal(
        np.stack(list(vectors.values())), np.array(list(rows.values()), "float32")
    )


@pytest.mark.parametrize(("is_binary", "rows"), [(False, 6_000), (True, 15_000)])
def test_a_file_is_not_held_in_memory(is_binary, rows, tmp_path):
    numbers = np.full(100, 0.25, "float32")
    row = numbers.tobytes() if is_binary else b" ".join([b"0.2500000000"] * 100)
    path = write(
        tmp_path,
        b"%d 100\n" % rows
        + b"".join(b"w%d %s\n" % (place, row) for place in range(rows)),
    )
    tracemalloc.start()
    vectors = read_vectors(path, {"w0", f"w{rows - 1}"}).vectors
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [vector.tolist() for vector in vectors.values()] == [numbers.tolist()] * 2
    assert peak < 4_000_000 < 6_000_000 < (tmp_path / "vectors").stat().st_size


def test_the_first_vector_of_a_word_counts(tmp_path):
    path = write(tmp_path, b"3 2\nhe 1 2\nhe 3 4\nit 5 6\n")
    assert lists_of(path, ["he", "it"]) == {"he": [1, 2], "it": [5, 6]}


BROKEN = [
    b"3 3\nh\xe9 1 2 3\n\xff\xfe 1 2 3\nhe 4 5 6\n",
    binary({"%": [1, 2, 3], "he": [4, 5, 6]}).replace(b"%", b"\xe9\xff"),
]


@pytest.mark.parametrize("content", BROKEN)
def test_a_word_that_is_not_utf_8_is_passed_over(content, tmp_path):
    path = write(tmp_path, content)
    assert lists_of(path, ["he", "h\xe9", "\ufffd"]) == {"he": [4, 5, 6]}


@pytest.mark.parametrize("first", [b"he 1 2 3", b". . . 1 2 3"])
def test_words_with_spaces(first, tmp_path):
    path = write(
        tmp_path, first + b"\nsee name@domain.com 4 5 6\n1999 7 8 9\n. 0.5 .5 5.\n"
    )
    assert lists_of(path, ["see name@domain.com", "1999", ".", "see"]) == {
        "see name@domain.com": [4, 5, 6],
        "1999": [7, 8, 9],
        ".": [0.5, 0.5, 5],
    }


def test_a_number_as_the_first_word_without_a_header(tmp_path):
    path = write(tmp_path, b"7 1 2 3\nhe 4 5 6\n")
    assert lists_of(path, ["7"]) == {"7": [1, 2, 3]} and read_width(path) == 3


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    for path in (tmp_path / "none", tmp_path):
        for read in (lambda path: read_vectors(path, ["he"]), read_width):
            with pytest.raises(
                UsageError,
                match=rf"^{path}: there is no such file of word vectors; "
                "name one that was downloaded",
            ):
                read(str(path))


UNKNOWN_FORMAT = (
    "it begins neither with two whole numbers nor with a word and its numbers; "
    "take a file of word vectors"
)
TOO_SHORT = "the 5 words of 3 numbers that its header says; download it again"
COMPRESSED = gzip.compress(binary(), mtime=0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", UNKNOWN_FORMAT),
        (b"He paid.\n", UNKNOWN_FORMAT),
        (b"\x80\x04\x95 pickled", UNKNOWN_FORMAT),
        (b"he 1 2 x 3\n", UNKNOWN_FORMAT),
        (
            b"he 1 2 3\nit 1 2\n",
            "line 2 has 2 numbers, and the first has 3; "
            "download it again, or correct it",
        ),
        (
            b"2 3\nit 1 2 3\n\nhe 1 2 3 4\n",
            "line 4 has 4 numbers, and the header says 3; "
            "download it again, or correct it",
        ),
        (
            b"2 4\nit 1 2 3\nhe 1 2 3\n",
            "line 2 has 3 numbers, and the header says 4; "
            "download it again, or correct it",
        ),
        (
            b"3 2\nit 1 2\nhe 1 2\n",
            "it holds 2 words, and its header says 3; "
            "download it again, or correct the header",
        ),
        (
            b"1 2\nit 1 2\nhe 1 2\n",
            "it holds 2 words, and its header says 1; "
            "download it again, or correct the header",
        ),
        (
            b"it 1 2\nhe 1 1,5\n",
            "line 2: could not convert .*1,5.*; download it again, or correct the line",
        ),
        (
            b"it 1 2\nhe 1 nan\n",
            "the vector of 'he' is not finite; "
            "remove the word from the file, or take another",
        ),
        (b"it 1 2\nhe 1 1e39\n", "the vector of 'he' is not finite; remove"),
        (
            binary({**ROWS, "he": [1, float("inf"), 2]}),
            "the vector of 'he' is not finite; remove",
        ),
        (binary()[:-2], rf"it ends in word 5 of {TOO_SHORT}"),
        (binary()[:15], rf"it ends in word 1 of {TOO_SHORT}"),
        (
            binary(count=6),
            "it ends in word 6 of the 6 words of 3 numbers that its header says; "
            "download it again",
        ),
        (
            binary(count=4),
            "more follows behind the 4 words of 3 numbers that its header says; "
            "download it again",
        ),
        (binary(end=b"", count=4), "more follows behind the 4 words"),
        (
            binary(width=300),
            "it ends in word 1 of the 5 words of 300 numbers that its header says; "
            "download it again",
        ),
        (COMPRESSED[:-20], r"its compression is damaged \(.*\); download it again"),
        (
            COMPRESSED[:10] + b"\xff" * 20 + COMPRESSED[30:],
            r"its compression is damaged \(.*\); download it again",
        ),
        (
            COMPRESSED[:-8] + bytes(8),
            r"its compression is damaged \(.*\); download it again",
        ),
    ],
)
def test_a_damaged_file_is_refused(content, message, tmp_path):
    path = write(tmp_path, content)
    with pytest.raises(DataError, match=rf"^{path}: {message}"):
        read_vectors(path, ["he"])


def test_vectors_that_are_not_wanted_need_not_be_finite(tmp_path):
    path = write(tmp_path, b"it 1 nan\nhe 1 2\n")
    assert lists_of(path, ["he"]) == {"he": [1, 2]}
