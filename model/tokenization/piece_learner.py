"""Learns the pieces of a WordPiece vocabulary from counted words.

The pieces are those of the learner of tensorflow-text, which goes from words down to
characters (https://www.tensorflow.org/text/guide/subwords_tokenizer). It counts every
substring of a word and then, from the longest substring to the shortest, takes its
count off its prefixes. What remains of a substring is how often words end with it. Here
only the ends of words are counted, a fraction of the work:

    words                 counts of ends
    ▁paid 2, ▁unpaid 1    ▁paid 2, ▁unpaid 1, ##paid 3 ... ##d 3, ##unpaid 1, ##npaid 1
"""

from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator

from precis.model.tokenization.wordpiece import JOINER

# The learner of tensorflow-text makes four. On news, the number of pieces per word is
# the same to the third digit.
_ITERATIONS = 3
_MAX_PIECE_CHARACTERS = 40


def pieces_above(
    threshold: int, words: Iterable[tuple[str, int]], characters: Collection[str]
) -> list[str]:
    """The pieces of two and more characters that words end with at least `threshold`
    times, ordered from frequent to rare.

    At first a piece may begin anywhere in a word, later only where the pieces of the
    iteration before cut it.

    Args:
      threshold: at least 1.
      words: different words with their counts. Those of more than 40 characters and
          those with other characters than `characters` are left out.
    """
    usable = [
        (word, count)
        for word, count in words
        if len(word) <= _MAX_PIECE_CHARACTERS and set(word).issubset(characters)
    ]
    letters = {*characters, *(JOINER + character for character in characters)}
    frequent = _frequent_ends(
        ((word, range(len(word)), count) for word, count in usable), threshold
    )
    for _ in range(1, _ITERATIONS):
        known = letters | frequent.keys()
        frequent = _frequent_ends(
            ((word, _cuts(word, known), count) for word, count in usable), threshold
        )
    pieces = sorted(frequent, key=lambda piece: (-frequent[piece], piece))
    return [piece for piece in pieces if piece not in letters]


def _frequent_ends(
    words: Iterable[tuple[str, Iterable[int], int]], threshold: int
) -> dict[str, int]:
    """How often words end with a piece that begins at one of their starts, where that
    is at least `threshold` times.
    """
    counts: Counter[str] = Counter()
    for word, starts, count in words:
        for start in starts:
            counts[JOINER + word[start:] if start else word] += count
    return {piece: count for piece, count in counts.items() if count >= threshold}


def _cuts(word: str, pieces: Container[str]) -> Iterator[int]:
    """Where the pieces of a word start: each is the longest that is possible.

    Every character of the word is a piece.
    """
    start = 0
    while start < len(word):
        yield start
        prefix = JOINER if start else ""
        start = next(
            end
            for end in range(len(word), start, -1)
            if prefix + word[start:end] in pieces
        )
