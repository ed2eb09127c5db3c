"""Counting words and learning a WordPiece vocabulary from the counts.

Counting is cheap, done wherever the documents are, and merged; learning happens once.
Both are free of chance and of order: equal counts give an equal vocabulary.
"""

import functools
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from precis.model.errors import DataError, UsageError
from precis.model.tokenization.wordpiece import (
    JOINER,
    LINE_BREAK,
    RESERVED_TOKENS,
    SPACE,
)

# The learner's time is in proportion to the number of different words. Rarer ones than
# these add next to nothing to the counts of pieces.
_MAX_WORDS = 60_000
# Characters beyond these, rarest first, are left out: a word that holds one is an
# unknown token.
_MAX_CHARACTERS = 1_000
_MIN_PIECE_COUNT = 2
_MAX_PIECE_CHARACTERS = 40

_ASCII = tuple(map(chr, range(33, 127)))
# tf.text cuts at every character of a Unicode category P, at these, and around
# ideographs; all others stay with their neighbours.
_ASCII_SYMBOLS = "$+<=>^`|~"
_IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f"


def count_words(texts: Iterable[str], *, lower_case: bool = False) -> Counter[str]:
    """How often each word stands in normalised texts; a word is what the tokenizer cuts
    into pieces, as in "▁paid" or "$".
    """
    runs: Counter[str] = Counter()
    for text in texts:
        runs.update(text.replace("\n", f" {LINE_BREAK} ").split())
    cut = _word_pattern().findall
    counts: Counter[str] = Counter()
    for (
        run,
        count,
    ) in (
        runs.items()
    ):  # A run of text without spaces is cut once, not each time it stands somewhere.
        for word in cut(SPACE + (run.lower() if lower_case else run)):
            counts[word] += count
    return counts


def merge_counts(parts: Iterable[Mapping[str, int]]) -> Counter[str]:
    """The sum of word counts."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return total


def most_frequent(counts: Mapping[str, int]) -> dict[str, int]:
    """The words that learning looks at, so that counts of a large corpus can be cut
    part by part without changing what is learned.
    """
    kept = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MAX_WORDS]
    return dict(kept)


def learn(
    counts: Mapping[str, int],
    *,
    size: int,
    lower_case: bool = False,
    reserved: Sequence[str] = RESERVED_TOKENS,
) -> list[str]:
    """Learns a WordPiece vocabulary from word counts.

    It holds, in this order: the reserved tokens, the space and the line break, every
        printable ASCII character, the characters of the
    corpus, and the learned pieces from frequent to rare. So every word of ASCII
    characters, and every word whose characters made it into the vocabulary, can be
    written in its pieces.

    Args:
      counts: how often each word stands in the corpus, as `count_words` gives them.
      size: the number of pieces. A small corpus may give fewer, never more.
      lower_case: leaves out upper-case ASCII letters, which lower-cased text does not
          hold.
      reserved: tokens that stand first, in this order; the tokenizer's own must be the
          first of them.

    Raises:
      UsageError: the size leaves no room for the reserved tokens and ASCII, or the
          reserved tokens are not as they must be.
      DataError: there are no words.
    """
    if tuple(reserved[: len(RESERVED_TOKENS)]) != RESERVED_TOKENS or len(
        set(reserved)
    ) != len(reserved):
        raise UsageError(
            f"reserved tokens must begin with {' '.join(RESERVED_TOKENS)} and differ; they are {' '.join(reserved)}"
        )
    words = sorted(
        ((word, count) for word, count in counts.items() if count > 0),
        key=lambda item: (-item[1], item[0]),
    )
    if not words:
        raise DataError(
            "there are no words to learn a vocabulary from: every document is empty or was left out; see the counts"
        )
    letters = [
        character for character in _ASCII if not (lower_case and character.isupper())
    ]
    base = list(dict.fromkeys([*reserved, SPACE, SPACE + LINE_BREAK, *_forms(letters)]))
    if size < len(base):
        raise UsageError(
            f"a vocabulary of {size} pieces cannot hold the reserved tokens and ASCII; ask for at least {len(base)}"
        )
    # At most a quarter of the vocabulary goes to characters, so that a corpus in many
    # scripts leaves room for words.
    alphabet = _characters(words)[: min(_MAX_CHARACTERS, size // 8)]
    fixed = list(dict.fromkeys([*base, *_forms(alphabet)]))[:size]
    return fixed + _learn_pieces(words[:_MAX_WORDS], room=size - len(fixed))


def _learn_pieces(words: Sequence[tuple[str, int]], *, room: int) -> list[str]:
    """As many pieces of two and more characters as there is room for, from frequent to
    rare; fewer where the words hold no more.

    tensorflow-text's learner takes a threshold, how often a piece must stand in the
    corpus, and searches for the one that gives the wanted size by halving the range of
    all counts: a dozen trials of many seconds. Every word above the threshold becomes a
        piece, so the count of the `room`-th word gives enough, mostly at once; the
        rarest of the surplus are cut off. On news the pieces per word are
    the same to the third digit as after a search.
    """
    threshold = max(words[min(len(words), room) - 1][1], _MIN_PIECE_COUNT)
    pieces = _pieces_above(threshold, words)
    while len(pieces) < room and threshold > _MIN_PIECE_COUNT:
        threshold = max(threshold // 2, _MIN_PIECE_COUNT)
        pieces = _pieces_above(threshold, words)
    return pieces[:room]


def _pieces_above(threshold: int, words: Sequence[tuple[str, int]]) -> list[str]:
    """The pieces of two and more characters that stand in the words at least so often,
    from frequent to rare.
    """
    # Imports TensorFlow, which counting does without.
    from tensorflow_text.tools.wordpiece_vocab import (
        wordpiece_tokenizer_learner_lib as learner,
    )

    pieces = learner.learn(
        list(words),
        vocab_size=len(words),
        reserved_tokens=[],
        upper_thresh=threshold,
        lower_thresh=threshold,
        max_input_tokens=-1,  # no limit
        max_token_length=_MAX_PIECE_CHARACTERS,
        max_unique_chars=_MAX_CHARACTERS,
        joiner=JOINER,
    )
    return [
        piece
        for piece in pieces
        if len(piece.removeprefix(JOINER)) > 1 and piece != SPACE + LINE_BREAK
    ]


def _forms(characters: Iterable[str]) -> list[str]:
    """Each character as the piece that begins a word and, unless it is always a word of
    its own, as one that goes on.
    """
    alone = _alone_pattern().match
    return [
        form
        for character in characters
        for form in (
            [character] if alone(character) else [character, JOINER + character]
        )
    ]


def _characters(words: Iterable[tuple[str, int]]) -> list[str]:
    """The characters of the words, from frequent to rare."""
    counts: Counter[str] = Counter()
    for word, count in words:
        for character in word:
            counts[character] += count
    return sorted(
        counts.keys() - {SPACE, LINE_BREAK},
        key=lambda character: (-counts[character], character),
    )


@functools.cache
def _alone_class() -> str:
    """The inside of a regular expression's character class: the characters that are
    words of their own.
    """
    marks = [
        chr(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code))[0] == "P"
    ]
    return re.escape("".join(marks) + _ASCII_SYMBOLS) + _IDEOGRAPHS


@functools.cache
def _alone_pattern() -> re.Pattern[str]:
    return re.compile(f"[{_alone_class()}]")


@functools.cache
def _word_pattern() -> re.Pattern[str]:
    return re.compile(f"[{_alone_class()}]|[^{_alone_class()}\\s]+")
