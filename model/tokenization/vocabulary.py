"""Counts words and learns a WordPiece vocabulary from the counts.

Counting is cheap: workers count their own documents and the counts are merged. Learning
happens once. Neither depends on chance or on the order of the documents: equal counts
give an equal vocabulary.
"""

import functools
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from precis.model.errors import DataError, UsageError
from precis.model.tokenization.piece_learner import pieces_above
from precis.model.tokenization.wordpiece import (
    JOINER,
    LINE_BREAK,
    RESERVED_TOKENS,
    SPACE,
)

# The learner takes time in proportion to the number of different words. Rarer words add
# almost nothing to the counts of pieces.
_MAX_WORDS = 60_000
# The rarest characters beyond this number are left out. A word with such a character
# becomes an unknown token.
_MAX_CHARACTERS = 1_000
_MIN_PIECE_COUNT = 2
_BATCH_CHARACTERS = 4 << 20

_ASCII = tuple(map(chr, range(33, 127)))
# tf.text cuts at every character of a Unicode category P, at these symbols, and around
# ideographs. It keeps all other characters together.
_ASCII_SYMBOLS = "$+<=>^`|~"
_IDEOGRAPHS = (
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f"
)


def count_words(texts: Iterable[str], *, lower_case: bool = False) -> Counter[str]:
    """Counts the words of normalised texts.

    A word is a unit that the tokenizer cuts into pieces, as in "▁paid" or "$".
    """
    find_words = _word_pattern().findall
    counts: Counter[str] = Counter()
    # Each different run of characters without spaces is cut once.
    for run, count in _count_runs(texts).items():
        run = SPACE + (run.lower() if lower_case else run)
        for word in find_words(run):
            counts[word] += count
    return counts


def _count_runs(texts: Iterable[str]) -> Counter[str]:
    """Counts the runs of normalised texts; Arrow does so in a third of the time."""
    import pyarrow as pa
    import pyarrow.compute as pc

    counts: Counter[str] = Counter()
    for batch in _batches(text.replace("\n", f" {LINE_BREAK} ") for text in texts):
        runs = pc.split_pattern(pa.array(batch), " ").values.value_counts()
        numbers = runs.field("counts").to_pylist()
        counts.update(dict(zip(runs.field("values").to_pylist(), numbers, strict=True)))
    counts.pop("", None)  # between two spaces
    return counts


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """The texts, some megabytes at a time."""
    batch: list[str] = []
    characters = 0
    for text in texts:
        batch.append(text)
        characters += len(text)
        if characters >= _BATCH_CHARACTERS:
            yield batch
            batch = []
            characters = 0
    if batch:
        yield batch


def most_frequent(counts: Mapping[str, int]) -> dict[str, int]:
    """The most frequent words, as many as `learn` uses.

    The counts of a part of a corpus can be reduced to these words before merging.
    """
    if len(counts) <= _MAX_WORDS:
        return dict(counts)
    by_frequency = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return dict(by_frequency[:_MAX_WORDS])


def count_characters(counts: Mapping[str, int]) -> Counter[str]:
    """The characters of words, each as often as the words have it."""
    characters: Counter[str] = Counter()
    for word, count in counts.items():
        for character in word:
            characters[character] += count
    return characters


def learn(
    counts: Mapping[str, int],
    *,
    size: int,
    lower_case: bool = False,
    reserved: Sequence[str] = RESERVED_TOKENS,
    characters: Mapping[str, int] | None = None,
) -> list[str]:
    """Learns a WordPiece vocabulary from word counts.

    The vocabulary holds, in this order:

        the reserved tokens       [PAD] [UNK] [START] [END]
        space and line break      ▁  ▁␤
        printable ASCII           !  "  ...  a  ##a  b  ##b  ...
        characters of the corpus  é  ##é  ...
        learned pieces            from frequent to rare

    Every word whose characters are in the vocabulary can be written in its pieces.

    Args:
      counts: the number of times each word occurs in the corpus, from `count_words`.
      size: the greatest number of pieces; a small corpus gives fewer.
      lower_case: leave out upper-case ASCII letters, which lower-cased text does not
          contain.
      reserved: the first tokens, in this order. They begin with RESERVED_TOKENS.
      characters: the counts of `count_characters` where `counts` has the most frequent
          words alone.

    Raises:
      UsageError: the size is too small for the reserved tokens and ASCII, or the
          reserved tokens repeat or begin with others than RESERVED_TOKENS.
      DataError: there are no words.
    """
    _check_reserved(reserved)
    words = sorted(
        ((word, count) for word, count in counts.items() if count > 0),
        key=lambda item: (-item[1], item[0]),
    )
    if not words:
        raise DataError(
            "there are no words to learn a vocabulary from: "
            "every document is empty or was left out; see the counts"
        )
    letters = [
        character for character in _ASCII if not (lower_case and character.isupper())
    ]
    base = list(dict.fromkeys([*reserved, SPACE, SPACE + LINE_BREAK, *_forms(letters)]))
    if size < len(base):
        raise UsageError(
            f"a vocabulary of {size} pieces cannot hold the reserved tokens and ASCII; "
            f"ask for at least {len(base)}"
        )
    # At most a quarter of the vocabulary is for characters, two forms each, so that a
    # corpus in many scripts leaves room for words.
    if characters is None:
        characters = count_characters(dict(words))
    frequent = _most_frequent_first(characters)[:_MAX_CHARACTERS]
    fixed = list(dict.fromkeys([*base, *_forms(frequent[: size // 8])]))[:size]
    pieces = _learn_pieces(words[:_MAX_WORDS], frequent, size=size - len(fixed))
    return fixed + pieces


def _check_reserved(tokens: Sequence[str]) -> None:
    begins_right = tuple(tokens[: len(RESERVED_TOKENS)]) == RESERVED_TOKENS
    if not begins_right or len(set(tokens)) != len(tokens):
        raise UsageError(
            f"reserved tokens must begin with {' '.join(RESERVED_TOKENS)} and differ; "
            f"they are {' '.join(tokens)}"
        )


def _learn_pieces(
    words: Sequence[tuple[str, int]], characters: Sequence[str], *, size: int
) -> list[str]:
    """The most frequent pieces of two and more characters, from frequent to rare.

    A threshold says how often words end with a piece at least. Every word above the
    threshold is a piece, so the count of word number `size` gives enough pieces, mostly
    at the first trial, and the rarest of the surplus are cut off. On news the number of
    pieces per word agrees with that of a search for the best threshold to the third
    digit.

    Args:
      words: words with their counts, from frequent to rare.
      characters: words with other characters are left out.
      size: the greatest number of pieces; few words give fewer.
    """
    # In a corpus whose words all occur once, each of them is a piece.
    least = min(_MIN_PIECE_COUNT, words[0][1])
    threshold = max(words[min(len(words), size) - 1][1], least)
    while True:
        pieces = pieces_above(threshold, words, {SPACE, *characters})
        if len(pieces) >= size or threshold <= least:
            return pieces[:size]
        threshold = max(threshold // 2, least)


def _forms(characters: Iterable[str]) -> list[str]:
    """The pieces of single characters.

    A character begins a word, and it continues a word (##) unless it is always a word
    by itself: a, ##a, !, b, ##b.
    """
    is_word = _single_character_word_pattern().match
    forms = []
    for character in characters:
        forms.append(character)
        if not is_word(character):
            forms.append(JOINER + character)
    return forms


def _most_frequent_first(characters: Mapping[str, int]) -> list[str]:
    return sorted(
        characters.keys() - {SPACE, LINE_BREAK},
        key=lambda character: (-characters[character], character),
    )


@functools.cache
def _single_character_words() -> str:
    """The characters that are always words by themselves.

    The result is the content of a character class of a regular expression.
    """
    marks = [
        chr(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code))[0] == "P"
    ]
    return re.escape("".join(marks) + _ASCII_SYMBOLS) + _IDEOGRAPHS


@functools.cache
def _single_character_word_pattern() -> re.Pattern[str]:
    return re.compile(f"[{_single_character_words()}]")


@functools.cache
def _word_pattern() -> re.Pattern[str]:
    characters = _single_character_words()
    return re.compile(f"[{characters}]|[^{characters}\\s]+")
