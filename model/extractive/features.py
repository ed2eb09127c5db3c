"""What a neural extractor is told of a sentence besides its vector: where it stands,
how long it is, what it shares with others.

On news these cheap figures carry most of what can be learned (Kedzie et al. 2018 show
it for the position); the vector adds the content. All are computed from the document
alone.
"""

import re
from collections.abc import Sequence

import numpy as np
import scipy.sparse

from precis.model.extractive.terms import Terms, find_terms

# In the order of the columns; further right follow their logarithms, log(1 + x).
NAMES = (
    *("position", "from_end", "relative_position", "sentences"),
    *(
        "words",
        "relative_words",
        "words_before",
        "words_after",
        "document_words",
        "lead_words",
        "previous_words",
        "next_words",
    ),
    *(
        "terms",
        "term_share",
        "new_terms",
        "term_frequency",
        "mean_term_frequency",
        "term_weight",
        "mean_term_weight",
    ),
    *(
        "centroid",
        "degree",
        "forward",
        "backward",
        "repeats",
        "repeated",
        "first",
        "lead",
        "previous",
        "next",
    ),
    *(
        "digits",
        "commas",
        "colons",
        "quotes",
        "question",
        "no_end",
        "said",
        "personal",
        "opens_with_pronoun",
        "characters_a_word",
    ),
)
COUNT = 2 * len(NAMES)

_LEAD = 3
_COMPARED = 250  # each sentence is compared with so many, the first ones, at most
_SAID = re.compile(r"\b(?:said|says|say|told|added|adds|asked)\b")
_PERSONAL = re.compile(r"\b(?:i|we|you|my|our|your|me|us)\b")
_PRONOUN = re.compile(
    r"\W*(?:he|she|it|they|this|that|these|those|his|her|their|its|but|and|however|so|i|we|you)\b"
)
_QUOTE = re.compile("``|''|[\"“”]")
_ENDS = (".", "!", "?")
_CLOSING = "'\"”’) "


def features(sentences: Sequence[str]) -> np.ndarray:
    """The features of a document's sentences, float32 [N, COUNT]."""
    if not sentences:
        return np.zeros((0, COUNT), np.float32)
    terms = find_terms(sentences)
    words = np.maximum(np.bincount(terms.rows, minlength=len(sentences)), 1).astype(
        np.float64
    )
    columns = np.stack(
        [*_places(words), *_contents(terms, words), *_surfaces(sentences, words)],
        axis=1,
    )
    return np.concatenate([columns, np.log1p(columns)], axis=1).astype(np.float32)


def _places(words: np.ndarray) -> list[np.ndarray]:
    """Where a sentence stands and how many words, float64 [N], it and its neighbours
    have.
    """
    count = len(words)
    place = np.arange(count, dtype=np.float64)
    before = np.cumsum(words) - words
    total = words.sum()
    same = np.ones(count)
    return [
        *(place, count - 1 - place, place / count, count * same),
        *(
            words,
            words / words.mean(),
            before,
            total - before - words,
            total * same,
            words[:_LEAD].sum() * same,
        ),
        *(np.append(0.0, words[:-1]), np.append(words[1:], 0.0)),
    ]


def _contents(terms: Terms, words: np.ndarray) -> list[np.ndarray]:
    """What a sentence's terms say of it, and their cosines with those of other
    sentences.
    """
    rows, columns, counts = terms.cells
    count = terms.sentences

    def over_sentence(values: np.ndarray) -> np.ndarray:
        return np.bincount(rows, values, count)

    is_new = np.zeros(len(rows))
    is_new[np.unique(columns, return_index=True)[1]] = (
        1.0  # cells are in the order of the sentences
    )
    frequency = over_sentence(counts * terms.frequencies[columns]) / max(
        terms.frequencies.max(initial=1), 1
    )
    weight = np.sqrt(over_sentence((counts * terms.idf[columns]) ** 2))
    lengths = np.maximum(terms.lengths, 1)
    return [
        *(
            terms.lengths.astype(np.float64),
            terms.lengths / words,
            over_sentence(is_new),
        ),
        *(frequency, frequency / lengths, weight, weight / lengths),
        *_similarities(terms),
    ]


def _similarities(terms: Terms) -> list[np.ndarray]:
    """Cosines with the centroid, with all others, with those behind and before, with
    the first ones and with the neighbours.

    The sentences of a very long document are compared with its beginning alone.
    """
    rows, columns, counts = terms.cells
    count = terms.sentences
    unit = scipy.sparse.csr_array(
        (terms.unit_values, (rows, columns)), shape=(count, max(terms.vocabulary, 1))
    )
    cosines = (unit @ unit[:_COMPARED].T).toarray()  # [N, M]
    known = cosines.shape[1]
    np.fill_diagonal(cosines, 0.0)
    place = np.arange(count)[:, None]
    others = np.arange(known)[None, :]
    behind, before = (
        np.where(others > place, cosines, 0.0),
        np.where(others < place, cosines, 0.0),
    )
    centroid = np.bincount(
        columns, counts * terms.idf[columns], max(terms.vocabulary, 1)
    )
    centroid = centroid / (np.linalg.norm(centroid) or 1.0)
    neighbour = (
        np.array(np.sum(unit[:-1].multiply(unit[1:]), axis=1)).reshape(-1)
        if count > 1
        else np.zeros(0)
    )
    return [
        unit @ centroid,
        cosines.mean(axis=1),
        behind.sum(axis=1) / np.maximum(known - 1 - place[:, 0], 1),
        before.sum(axis=1) / np.clip(place[:, 0], 1, known),
        before.max(axis=1, initial=0.0),
        behind.max(axis=1, initial=0.0),
        cosines[:, 0],
        cosines[:, :_LEAD].mean(axis=1),
        np.append(0.0, neighbour),
        np.append(neighbour, 0.0),
    ]


def _surfaces(sentences: Sequence[str], words: np.ndarray) -> list[np.ndarray]:
    """What the characters of a sentence show; no capitals, as a corpus may be in lower
    case.
    """
    columns = np.array([_surface(sentence) for sentence in sentences], np.float64).T
    return [*columns, np.array([len(sentence) for sentence in sentences]) / words]


def _surface(sentence: str) -> tuple[float, ...]:
    lowered = sentence.lower()
    return (
        sum(map(str.isdigit, sentence)),
        sentence.count(","),
        sentence.count(":"),
        len(_QUOTE.findall(sentence)),
        "?" in sentence,
        not sentence.rstrip(_CLOSING).endswith(_ENDS),
        _SAID.search(lowered) is not None,
        len(_PERSONAL.findall(lowered)),
        _PRONOUN.match(lowered) is not None,
    )
