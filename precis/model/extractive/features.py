"""The input features of a selector, besides the sentence vectors: the position, the
length, the terms, the similarities and the characters of a sentence.

On news these features explain most of the choice (Kedzie et al. 2018 for the position);
the vector adds the content. All are computed only from the document.
"""

import functools
import itertools
import re
from collections.abc import Sequence

import numpy as np

from precis.model.extractive.terms import READ_TOGETHER, Terms, find_terms
from precis.model.text.chunks import Chunks, split_chunks
from precis.model.text.words import ChunkCache

# The columns, in order: position, content, similarities and characters. As many columns
# follow with their logarithms, log(1 + x).
FEATURE_NAMES = tuple(
    (
        "position from_end relative_position sentences words relative_words "
        "words_before words_after document_words lead_words previous_words next_words "
        "terms term_share new_terms term_frequency mean_term_frequency term_weight "
        "mean_term_weight "
        "centroid degree forward backward repeats repeated first lead previous next "
        "digits commas colons quotes question no_end said personal opens_with_pronoun "
        "characters_a_word"
    ).split()
)
FEATURE_COUNT = 2 * len(FEATURE_NAMES)
# Scaled features are clipped to +-6, so that a document unlike the training articles
# stays near the values that the network was trained on.
LARGEST_FEATURE = 6.0

_LEAD = 3
_COUNTED = 7
_COMPARED = 250  # first sentences that each sentence is compared with
_SAID = re.compile(r"\b(?:said|says|say|told|added|adds|asked)\b")
_PERSONAL = re.compile(r"\b(?:i|we|you|my|our|your|me|us)\b")
_QUOTE = re.compile("``|''|[\"“”]")
_PRONOUN = re.compile(
    r"\W*(?:he|she|it|they|this|that|these|those|his|her|their|its"
    r"|but|and|however|so|i|we|you)\b"
)
# Marks of other languages, and what they count as. Not », which ends links in English.
_MARKS = str.maketrans("，、،：？؟„«「」『』", ',,,:??""""""')
_ENDS = tuple(".!?。！？।؟۔։።။")
_CLOSING = "'\"”’) 」』）"


def features_of_all(
    documents: Sequence[Sequence[str]],
    terms: Sequence[Terms] | None = None,
    languages: Sequence[str | None] | None = None,
) -> list[np.ndarray]:
    """The features of the sentences of many documents, float32 [N, FEATURE_COUNT] for
    each document.

    Args:
      documents: the sentences of each document.
      terms: the terms of each document; computed here by default.
      languages: the language of each document, to compute its terms.
    """
    rows: list[np.ndarray] = []
    for start in range(0, len(documents), READ_TOGETHER):
        group = documents[start : start + READ_TOGETHER]
        chunks = split_chunks(list(itertools.chain.from_iterable(group)))
        of_group = terms and terms[start : start + READ_TOGETHER]
        languages_of_group = languages and languages[start : start + READ_TOGETHER]
        of_group = of_group or find_terms(group, languages=languages_of_group)
        ends = np.cumsum(list(map(len, group)))
        counts = np.split(_counts(chunks), ends[:-1])
        rows += map(features, group, of_group, counts)
    return rows


def features(sentences: Sequence[str], terms: Terms, counts: np.ndarray) -> np.ndarray:
    """The features of a document's sentences, float32 [N, FEATURE_COUNT].

    Args:
      sentences: the sentences of the document.
      terms: the terms of the sentences.
      counts: int64 [N, 7], from `_counts`.
    """
    if not sentences:
        return np.zeros((0, FEATURE_COUNT), np.float32)
    lengths = np.bincount(terms.rows, minlength=len(sentences))
    words = np.maximum(lengths, 1).astype(np.float64)
    columns = np.stack(
        [
            *_position_columns(words),
            *_content_columns(terms, words),
            *_similarity_columns(terms),
            *_surface_columns(sentences, words, counts),
        ],
        axis=1,
    )
    return np.concatenate([columns, np.log1p(columns)], axis=1).astype(np.float32)


def _position_columns(words: np.ndarray) -> list[np.ndarray]:
    """The position of each sentence and the lengths in words around it.

    Args:
      words: the number of words in each sentence, float64 [N].
    """
    count = len(words)
    position = np.arange(count, dtype=np.float64)
    before = np.cumsum(words) - words
    total = words.sum()
    ones = np.ones(count)
    return [
        position,
        count - 1 - position,
        position / count,
        count * ones,
        words,
        words / words.mean(),
        before,
        total - before - words,
        total * ones,
        words[:_LEAD].sum() * ones,
        np.append(0.0, words[:-1]),
        np.append(words[1:], 0.0),
    ]


def _content_columns(terms: Terms, words: np.ndarray) -> list[np.ndarray]:
    """The number, novelty, frequency and weight of each sentence's terms."""
    rows, columns, counts = terms.cells

    def sum_by_sentence(values: np.ndarray) -> np.ndarray:  # [cells] -> [N]
        return np.bincount(rows, values, terms.sentences)

    # The first cell of a term belongs to the first sentence with the term.
    is_new = np.zeros(len(rows))
    is_new[np.unique(columns, return_index=True)[1]] = 1.0
    highest = max(terms.frequencies.max(initial=1), 1)
    frequency = sum_by_sentence(counts * terms.frequencies[columns]) / highest
    weight = np.sqrt(sum_by_sentence((counts * terms.idf[columns]) ** 2))
    lengths = np.maximum(terms.lengths, 1)
    return [
        terms.lengths.astype(np.float64),
        terms.lengths / words,
        sum_by_sentence(is_new),
        frequency,
        frequency / lengths,
        weight,
        weight / lengths,
    ]


def _similarity_columns(terms: Terms) -> list[np.ndarray]:
    """The cosines of each sentence with the centroid, with all other, later and earlier
    sentences, with the first sentences and with its neighbours.

    In a very long document, a sentence is compared with the first sentences only.
    """
    rows, columns, counts = terms.cells
    count = terms.sentences
    centroid = np.bincount(columns, counts * terms.idf[columns], terms.vocabulary)
    centroid = centroid / (np.linalg.norm(centroid) or 1.0)
    values = terms.unit_values
    if terms.is_small:
        cosines = terms.products(values)
        neighbours = np.diagonal(cosines, 1).copy()
    else:
        unit = terms.matrix(values)
        cosines = (unit @ unit[:_COMPARED].T).toarray()  # [N, M]
        neighbours = np.array(unit[:-1].multiply(unit[1:]).sum(axis=1)).reshape(-1)
    compared = cosines.shape[1]
    np.fill_diagonal(cosines, 0.0)
    position = np.arange(count)
    others = np.arange(compared)[None, :]
    after = np.where(others > position[:, None], cosines, 0.0)
    before = np.where(others < position[:, None], cosines, 0.0)
    return [
        np.bincount(rows, values * centroid[columns], count),
        cosines.mean(axis=1),
        after.sum(axis=1) / np.maximum(compared - 1 - position, 1),
        before.sum(axis=1) / np.clip(position, 1, compared),
        before.max(axis=1, initial=0.0),
        after.max(axis=1, initial=0.0),
        cosines[:, 0],
        cosines[:, :_LEAD].mean(axis=1),
        np.append(0.0, neighbours),
        np.append(neighbours, 0.0),
    ]


def _surface_columns(
    sentences: Sequence[str], words: np.ndarray, counts: np.ndarray
) -> list[np.ndarray]:
    """Features from the characters of each sentence.

    Capital letters are ignored, because a corpus may be in lower case.
    """
    digits, commas, colons, quotes, questions, said, personal = counts.T
    characters = np.array(list(map(len, sentences)))
    return [
        *(digits, commas, colons, quotes),
        questions > 0,
        np.array([not ends_with_mark(sentence) for sentence in sentences]),
        said > 0,
        personal,
        np.array([_PRONOUN.match(each.lower()) is not None for each in sentences]),
        characters / words,
    ]


def _counts(chunks: Chunks) -> np.ndarray:
    """Counts digits, commas, colons, quotation marks, question marks, verbs of saying
    and personal pronouns in each text; int64 [T, 7].
    """
    cached = b"".join(_COUNTS.values_of(chunks.distinct))
    of_chunks = np.frombuffer(cached, np.uint8).reshape(-1, _COUNTED)
    before = np.zeros((len(chunks.numbers) + 1, _COUNTED), np.int64)
    np.cumsum(of_chunks[chunks.numbers], axis=0, out=before[1:])
    return np.diff(before[chunks.offsets], axis=0)


def ends_with_mark(sentence: str) -> bool:
    """Whether a full stop, exclamation or question mark ends a sentence."""
    return sentence.rstrip(_CLOSING).endswith(_ENDS)


def _count(chunk: str) -> bytes:
    """The counts of a chunk, one byte each, at most 255."""
    if not chunk.isascii():
        chunk = chunk.translate(_MARKS)
    lowered = chunk.lower()
    counts = (
        sum(map(str.isdigit, chunk)),
        *map(chunk.count, ",:"),
        len(_QUOTE.findall(chunk)),
        chunk.count("?"),
        len(_SAID.findall(lowered)),
        len(_PERSONAL.findall(lowered)),
    )
    return bytes(min(count, 255) for count in counts)


_COUNTS = ChunkCache(functools.partial(map, _count))
