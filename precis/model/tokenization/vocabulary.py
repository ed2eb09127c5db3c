"""Counts words and learns a WordPiece vocabulary from the counts.

Counting is cheap: workers count the words of their documents, and the counts are
merged. Learning happens once. Both are deterministic and independent of the order of
the documents: equal counts give an equal vocabulary.
"""

import collections
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from precis.model.errors import UsageError
from precis.model.text.chunks import batches_of_texts, chunk_lists
from precis.model.text.words import UNSPACED_BLOCKS
from precis.model.tokenization.wordpiece import (
    JOINER,
    LINE_BREAK,
    RESERVED_TOKENS,
    SPACE,
    cut_word,
    show_line_breaks,
    split_words,
    words_of_chunk,
)

# Only the most frequent words are learned from, as the time grows with the number of
# distinct words, and rare words add almost nothing to the counts of pieces.
MAX_WORDS = 60_000
# Only the most frequent characters are kept in any case and learned from. The others
# compete with learned pieces.
_MAX_CHARACTERS = 1_000
_MIN_PIECE_COUNT = 2
# tensorflow-text uses four iterations. On news, both give nearly the same number of
# pieces per word.
_ITERATIONS = 3
_MAX_PIECE_CHARACTERS = 40

_ASCII = tuple(map(chr, range(33, 127)))


def count_words(texts: Iterable[str], *, lower_case: bool = False) -> Counter[str]:
    """Counts the words of normalised texts.

    A word is a unit that the tokenizer cuts into pieces, as in "▁paid" or "$". A long
    clause of a script without spaces counts as several: "▁" + 60 letters are "▁" + 37
    letters, and "##" + 23.
    """
    shown = (show_line_breaks(text, lower_case=lower_case) for text in texts)
    return count_words_of_chunks(
        [count_chunks(chunk_lists(batch)) for batch in batches_of_texts(shown)]
    )


def count_words_of_chunks(tables: Sequence[pa.Table]) -> Counter[str]:
    """Counts the words of chunks, given tables from `count_chunks`."""
    counts: Counter[str] = Counter()
    if not tables:
        return counts
    joined = pa.concat_tables(tables).group_by("chunk", use_threads=False)
    chunks, numbers = joined.aggregate([("count", "sum")]).to_pydict().values()
    for chunk, count in zip(chunks, numbers, strict=True):
        words = words_of_chunk(chunk) if chunk else ()  # between two spaces
        if len(chunk) >= _MAX_PIECE_CHARACTERS:
            words = [part for word in words for part in _parts(word)]
        for word in words:
            counts[word] += count
    return counts


def _parts(word: str) -> list[str]:
    """The word, or the parts of a long clause of a script without spaces, which never
    recurs as a whole. Pieces are ends of words, so they are learned from parts.
    """
    if len(word) <= _MAX_PIECE_CHARACTERS or not UNSPACED_BLOCKS.search(word):
        return [word]
    size = _MAX_PIECE_CHARACTERS - len(JOINER)
    parts = (JOINER + word[start : start + size] for start in range(0, len(word), size))
    return [next(parts).removeprefix(JOINER), *parts]


def count_chunks(
    lists: pa.ListArray, is_counted: Sequence[bool] | None = None
) -> pa.Table:
    """How often each chunk occurs in texts, or in those of them that count.

    Args:
      lists: the chunks of the texts, from `chunk_lists`.
      is_counted: whether each text counts.

    Returns:
      A table with the columns `chunk` and `count`.
    """
    chunks = lists.values
    numbers = chunks.indices.to_numpy()
    if is_counted is not None:
        numbers = numbers[np.repeat(is_counted, np.diff(lists.offsets.to_numpy()))]
    counts = np.bincount(numbers, minlength=len(chunks.dictionary))
    table = pa.table({"chunk": chunks.dictionary, "count": counts})
    return table.filter(counts > 0)


def _by_frequency(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Words with their counts, sorted from frequent to rare, then alphabetically."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def learn(
    counts: Mapping[str, int],
    *,
    size: int,
    lower_case: bool = False,
    characters: Mapping[str, int] | None = None,
) -> list[str]:
    """Learns a WordPiece vocabulary from word counts.

    The vocabulary holds, in this order:

        the reserved tokens       [PAD] [UNK] [START] [END]
        space and line break      ▁  ▁␤
        printable ASCII           !  "  ...  a  ##a  b  ##b  ...
        frequent characters       é  ##é  ...
        learned pieces, and       from frequent to rare
        the other characters

    Every word whose characters are in the vocabulary can be written in its pieces.
    Chinese has few other pieces, so that nearly all of its characters have a place.

    Args:
      counts: the number of times each word occurs in the corpus, from `count_words`;
          not empty.
      size: the maximum number of pieces; a small corpus gives fewer.
      lower_case: whether to leave out upper-case ASCII letters, which lower-cased text
          does not contain.
      characters: how often each character occurs in the corpus; to be given if `counts`
          has only the most frequent words.

    Raises:
      UsageError: the size is too small for the reserved tokens and ASCII.
    """
    words = _by_frequency(counts)
    letters = [each for each in _ASCII if not (lower_case and each.isupper())]
    base = [*RESERVED_TOKENS, SPACE, SPACE + LINE_BREAK, *_forms(letters)]
    if size < len(base):
        raise UsageError(
            f"a vocabulary of {size} pieces has no room for the reserved tokens and "
            f"ASCII; use at least {len(base)}"
        )
    # At most a quarter of the vocabulary is for frequent characters, in two forms each,
    # so that there is room for words even if a corpus has many scripts.
    if characters is None:
        characters = collections.defaultdict(int)
        for word, count in words:
            for character in word:
                characters[character] += count
    in_order = [each for each, _ in _by_frequency(characters)]
    in_order = [each for each in in_order if each not in (SPACE, LINE_BREAK)]
    frequent = in_order[:_MAX_CHARACTERS]
    fixed = list(dict.fromkeys([*base, *_forms(frequent[: size // 8])]))[:size]
    room = size - len(fixed)
    pieces = _learn_pieces(words[:MAX_WORDS], frequent, size=room)
    for character in {*in_order}.difference(fixed):
        pieces |= dict.fromkeys(_forms([character]), characters[character])
    return fixed + [piece for piece, _ in _by_frequency(pieces)][:room]


def _learn_pieces(
    words: Sequence[tuple[str, int]], characters: Sequence[str], *, size: int
) -> dict[str, int]:
    """The most frequent pieces of two and more characters, with their counts.

    The threshold is the minimum number of times that words must end with a piece. Every
    word above the threshold is a piece. So the count of word number `size` is a
    threshold that usually gives enough pieces at once; the rarest surplus pieces are
    dropped. A search for the best threshold is hardly better: on news, it gives nearly
    the same number of pieces per word.

    Args:
      words: words with their counts, from frequent to rare.
      characters: words with other characters are left out.
      size: the number of pieces that are wanted; few words give fewer.
    """
    # If every word of a corpus occurs once, each word is a piece.
    least = min(_MIN_PIECE_COUNT, words[0][1])
    threshold = max(words[min(len(words), size) - 1][1], least)
    while True:
        pieces = pieces_above(threshold, words, {SPACE, *characters})
        if len(pieces) >= size or threshold <= least:
            return pieces
        threshold = max(threshold // 2, least)


def pieces_above(
    threshold: int, words: Iterable[tuple[str, int]], characters: Collection[str]
) -> dict[str, int]:
    """The pieces of two and more characters that words end with at least `threshold`
    times, and how often.

    They are the same as from the top-down learner of tensorflow-text
    (https://www.tensorflow.org/text/guide/subwords_tokenizer). It counts every
    substring of a word and then, from the longest substring to the shortest, subtracts
    its count from the counts of its prefixes. What remains for a substring is how often
    words end with it. Counting only the ends of words is a fraction of the work:

        words                 counts of ends
        ▁paid 2, ▁unpaid 1    ▁paid 2, ▁unpaid 1, ##paid 3 ... ##d 3, ##unpaid 1 ...

    A piece may begin where the pieces of the previous iteration cut a word; the first
    iteration starts with single characters. A word that occurs `threshold` times is a
    piece in every iteration, so only rare words are cut.

    Args:
      threshold: at least 1.
      words: distinct words with their counts. Words of more than 40 characters and
          words with other characters than `characters` are left out.
    """
    known = frozenset(characters)
    usable = [
        (word, count)
        for word, count in words
        if len(word) <= _MAX_PIECE_CHARACTERS and known.issuperset(word)
    ]
    rare = [(word, count) for word, count in usable if count < threshold]
    whole = {word: count for word, count in usable if count >= threshold}
    counts: dict[str, int] = collections.defaultdict(int)
    for word, count in usable:
        for start in range(1, len(word)):
            counts[word[start:]] += count
        if word.startswith(JOINER):  # a part of a long clause, which is also an end
            counts[word.removeprefix(JOINER)] += count
    inner = {JOINER + end: count for end, count in counts.items() if count >= threshold}
    frequent = whole | inner
    letters = {*known, *(JOINER + character for character in known)}
    for _ in range(_ITERATIONS - 1):
        pieces = letters | frequent.keys()
        longest = max(map(len, pieces), default=0)
        counts = collections.defaultdict(int, whole)
        for word, count in rare:
            start = 0
            for piece in cut_word(word, pieces, longest):
                counts[JOINER + word[start:] if start else word] += count
                start += len(piece) - (len(JOINER) if start else 0)
        frequent = {end: count for end, count in counts.items() if count >= threshold}
    return {end: count for end, count in frequent.items() if end not in letters}


def _forms(characters: Iterable[str]) -> list[str]:
    """The pieces of single characters.

    A character has one form at the beginning of a word and one (##) within it, unless
    it is always a separate word: a, ##a, !, b, ##b.
    """
    forms = []
    for character in characters:
        forms.append(character)
        if len(split_words(f"{character}a")) == 1:
            forms.append(JOINER + character)
    return forms
