"""The importance of words and word pairs: the probability that the reference has them.

A small network computes the probability of each n-gram of a document from the places of
the n-gram, how often references took it, and the selector's scores of its sentences.
The approach is by Hong and Nenkova (2014) for words and by Li, Qian and Liu (2013) for
pairs. The tensors in a bundle:

importance/words/mean, scale, kernel_0, bias_0, ...    the network
importance/words/lexicon_text                          its n-grams, UTF-8, one per line
importance/words/lexicon_counts                        int32 [n, 2]
importance/pairs/...                                   the same tensors for pairs
importance/length_weights                              of the length of the reference
importance/calibration                                 float64 [2, K]
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from precis.model.extractive.expected import expected_rouge2
from precis.model.extractive.ngrams import (
    Gram,
    Ngrams,
    NumberedWords,
    find_ngrams,
    number_words,
)
from precis.model.extractive.references import ExpectedReference, Probabilities
from precis.model.extractive.threads import single_thread
from precis.model.rouge import tokenizer
from precis.model.text.language import ENGLISH
from precis.model.text.stop_words import stop_words

# Features of words and pairs.
PLACE_FEATURES = tuple(
    (
        "log_count log_sentences log_first relative_first log_second in_first "
        "in_second in_third best_score sum_of_scores mean_score log_best_rank "
        "in_best_sentences log_document_sentences log_document_words share_of_words "
        "share_of_sentences"
    ).split()
)
LEXICON_FEATURES = ("log_taken", "log_documents", "idf")
WORD_FEATURES = (*PLACE_FEATURES, *LEXICON_FEATURES, "stop_word", "letters", "digit")
_PAIR_MEMBERS = ("stop_words", "first_word", "second_word", "both_words")
PAIR_FEATURES = (*PLACE_FEATURES, *LEXICON_FEATURES, *_PAIR_MEMBERS)
_BEST_SENTENCES = 3
_NO_SECOND = 5.0  # `log_second` of an n-gram of a single sentence
_SMOOTHING = 20.0  # documents added to the counts of each n-gram
_LAYERS = 3
_PREFIX = "importance/"  # begins the names of all tensors


@dataclasses.dataclass(frozen=True)
class Lexicon:
    """Counts of n-grams in training articles and in their references.

    Attributes:
      documents: the number of training articles.
      taken_share: the share of all n-grams of articles that references take, above 0.
      counts: by n-gram, the number of articles that have it, and the number of articles
          whose reference has it too.
    """

    documents: int
    taken_share: float
    counts: Mapping[Gram, tuple[int, int]]

    @functools.cached_property
    def _index(self) -> tuple[dict[str, int], np.ndarray, np.ndarray]:
        """The number of each word, the n-grams as numbers, ascending, and their counts,
        int64 [L] and [L, 2].
        """
        grams = [(each,) if isinstance(each, str) else each for each in self.counts]
        words = dict(zip(dict.fromkeys(itertools.chain(*grams)), itertools.count()))
        members = np.array([[words[word] for word in gram] for gram in grams], np.int64)
        keys = _keys(members, len(words))
        order = np.argsort(keys)
        counts = np.array([*self.counts.values()], np.int64).reshape(-1, 2)
        return words, keys[order], counts[order]

    def counts_of(self, ngrams: Ngrams, vocabulary: Iterable[str]) -> np.ndarray:
        """The counts of each n-gram, float64 [G, 2]; 0 for one that is not there."""
        if not self.counts:
            return np.zeros((len(ngrams.kind_of), 2))
        words, keys, counts = self._index
        known = np.array([words.get(word, -1) for word in vocabulary], np.int64)
        members = known[ngrams.kinds]
        wanted = np.where((members < 0).any(axis=1), -1, _keys(members, len(words)))
        places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        is_known = keys[places] == wanted
        return (counts[places] * is_known[:, None])[ngrams.kind_of].astype(np.float64)


class ImportanceNetwork(NamedTuple):
    """A network of three layers that computes a probability from the features.

    It runs in numpy, because TensorFlow takes seconds to start.

    Attributes:
      mean, scale: float32 [F]; the input is (features - mean) * scale.
      kernels: float32 [F, D], [D, E] and [E, 1].
      biases: float32 [D], [E] and [1].
      lexicon: the counts from which the lexicon features are computed.
    """

    mean: np.ndarray
    scale: np.ndarray
    kernels: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]
    lexicon: Lexicon

    @classmethod
    def of(
        cls,
        tensors: Mapping[str, np.ndarray],
        prefix: str,
        documents: int,
        taken_share: float,
    ) -> "ImportanceNetwork":
        """Builds the network from its `tensors`; see `Lexicon` for the last two."""
        numbers = tensors[f"{prefix}lexicon_counts"].tolist()
        text = tensors[f"{prefix}lexicon_text"].tobytes().decode()
        lines = text.split("\n") if numbers else []
        counts: dict[Gram, tuple[int, int]] = {
            tuple(line.split(" ")) if " " in line else line: (articles, taken)
            for line, (articles, taken) in zip(lines, numbers, strict=True)
        }
        return cls(
            tensors[f"{prefix}mean"],
            tensors[f"{prefix}scale"],
            kernels=tuple(tensors[f"{prefix}kernel_{n}"] for n in range(_LAYERS)),
            biases=tuple(tensors[f"{prefix}bias_{n}"] for n in range(_LAYERS)),
            lexicon=Lexicon(documents, taken_share, counts),
        )

    def tensors(self, prefix: str) -> dict[str, np.ndarray]:
        """The arrays of the network and of its lexicon, by names with this prefix."""
        counts = self.lexicon.counts
        grams: list[Any] = list(counts)  # A word, or the words of a pair.
        texts = (each if isinstance(each, str) else " ".join(each) for each in grams)
        lines = "\n".join(texts).encode()
        named = {
            f"{prefix}mean": self.mean,
            f"{prefix}scale": self.scale,
            f"{prefix}lexicon_text": np.frombuffer(lines, np.uint8),
            f"{prefix}lexicon_counts": np.array([*counts.values()], np.int32).reshape(
                -1, 2
            ),
        }
        for layer in range(_LAYERS):
            named[f"{prefix}kernel_{layer}"] = self.kernels[layer]
            named[f"{prefix}bias_{layer}"] = self.biases[layer]
        return named

    def importance(self, ngrams: Ngrams, features: np.ndarray) -> np.ndarray:
        """The probability of each n-gram, float64 [G], in the order of `ngrams`.

        Args:
          ngrams: the n-grams of documents.
          features: float32 [G, F], in the order of first occurrences.
        """
        inputs = (features - self.mean) * self.scale
        logits = np.empty(len(inputs), np.float32)
        borders = np.flatnonzero(np.diff(ngrams.documents, prepend=-1, append=-1))
        # Document by document: a sum may depend on the number of rows in the last bit.
        for start, end in itertools.pairwise(borders.tolist()):
            states = inputs[start:end]
            for kernel, bias in zip(self.kernels[:-1], self.biases[:-1], strict=True):
                states = np.maximum(states @ kernel + bias, 0.0)
            logits[start:end] = (states @ self.kernels[-1] + self.biases[-1])[:, 0]
        importance = np.empty(len(inputs))
        importance[ngrams.by_first] = 1.0 / (1.0 + np.exp(-logits.astype(np.float64)))
        return importance


class ImportanceModel(NamedTuple):
    """Predicts which n-grams of a document its reference has.

    Attributes:
      words, pairs: the networks.
      length_weights: float64 [3], the weights of `length_features`.
      calibration: float64 [2, K], values of `expected_rouge2` and the ROUGE-2 that
          extracts with these values had, as `np.interp` takes them.
    """

    words: ImportanceNetwork
    pairs: ImportanceNetwork
    length_weights: np.ndarray
    calibration: np.ndarray = np.array([[0.0, 1.0], [0.0, 1.0]])

    @classmethod
    def of(
        cls, config: Mapping[str, Any], tensors: Mapping[str, np.ndarray]
    ) -> "ImportanceModel":
        """Builds the model from its `config` and its `tensors` in a bundle."""
        documents, shares = config["documents"], config["taken_shares"]
        return cls(
            ImportanceNetwork.of(tensors, f"{_PREFIX}words/", documents, shares[0]),
            ImportanceNetwork.of(tensors, f"{_PREFIX}pairs/", documents, shares[1]),
            tensors[f"{_PREFIX}length_weights"],
            tensors[f"{_PREFIX}calibration"],
        )

    @property
    def config(self) -> dict[str, Any]:
        """The fields about the model in config.json of a bundle."""
        lexicons = self.words.lexicon, self.pairs.lexicon
        return {
            "word_features": list(WORD_FEATURES),
            "pair_features": list(PAIR_FEATURES),
            "documents": lexicons[0].documents,
            "taken_shares": [lexicon.taken_share for lexicon in lexicons],
        }

    def tensors(self) -> dict[str, np.ndarray]:
        """The arrays of the model, by their names in a bundle."""
        return {
            **self.words.tensors(f"{_PREFIX}words/"),
            **self.pairs.tensors(f"{_PREFIX}pairs/"),
            f"{_PREFIX}length_weights": self.length_weights,
            f"{_PREFIX}calibration": self.calibration,
        }

    def expect_rouge2(
        self,
        summary: str,
        reference: ExpectedReference,
        language: str | None = ENGLISH,
    ) -> float:
        """The calibrated `expected_rouge2` of a summary."""
        value = expected_rouge2(summary, reference, language)
        return float(np.interp(value, *self.calibration))

    def expect_references(
        self,
        documents: Sequence[Sequence[str]],
        scores: Sequence[np.ndarray],
        languages: Sequence[str | None],
    ) -> list[ExpectedReference | None]:
        """Predicts the references of documents; many at once take less time.

        Args:
          documents: the sentences of each document.
          scores: float64 [N] for each document, the scores of the selector, 0 to 1.
          languages: the language of each document.

        Returns:
          The predictions; None if most sentences of a document have no words for ROUGE,
          as foreign alphabets in English.
        """
        tokens = [
            list(map(tokenizer(language, "\n".join(sentences)), sentences))
            for sentences, language in zip(documents, languages, strict=True)
        ]
        found: list[ExpectedReference | None] = [None] * len(tokens)
        known = [
            n
            for n, sentences in enumerate(tokens)
            if 2 * sum(map(bool, sentences)) >= max(len(sentences), 1)
        ]
        tokens, scores = [tokens[n] for n in known], [scores[n] for n in known]
        stops = [stop_words(languages[n]) for n in known]
        numbered = number_words(tokens)
        words, pairs = (find_ngrams(numbered, size) for size in (1, 2))
        with single_thread():
            features = ngram_features(
                words, numbered, scores, self.words.lexicon, stops
            )
            of_words = self.words.importance(words, features)
            features = ngram_features(
                *(pairs, numbered, scores, self.pairs.lexicon, stops),
                of_words=(words, of_words),
            )
            of_pairs = self.pairs.importance(pairs, features)
            lengths = [
                float(np.exp(length_features(sentences) @ self.length_weights))
                for sentences in tokens
            ]
        count, size = len(known), len(numbered.vocabulary)
        expected = map(
            ExpectedReference,
            itertools.repeat(numbered.vocabulary),
            numbered.by_sentence(),
            _probabilities(words, of_words, count, size),
            _probabilities(pairs, of_pairs, count, size),
            lengths,
        )
        for n, reference in zip(known, expected, strict=True):
            found[n] = reference
        return found


def _keys(members: np.ndarray, base: int) -> np.ndarray:
    """A number for each n-gram, int64 [G]; `members` are the numbers of its words."""
    keys = members[:, 0]
    return keys if members.shape[1] == 1 else keys * base + members[:, 1]


def _probabilities(
    ngrams: Ngrams, importance: np.ndarray, documents: int, base: int
) -> list[Probabilities]:
    """The importance of the n-grams of each document; `base` is the number of words."""
    keys = _keys(ngrams.kinds, base)[ngrams.kind_of]
    borders = np.searchsorted(ngrams.documents, np.arange(documents + 1)).tolist()
    return [
        Probabilities(keys[start:end], importance[start:end])
        for start, end in itertools.pairwise(borders)
    ]


def ngram_features(
    ngrams: Ngrams,
    words: NumberedWords,
    scores: Sequence[np.ndarray],
    lexicon: Lexicon,
    stops: Sequence[frozenset[str]],
    *,
    of_words: tuple[Ngrams, np.ndarray] | None = None,
    taken: Sequence[bool] | None = None,
) -> np.ndarray:
    """The features of words, float32 [G, WORD_FEATURES], or of pairs, float32
    [G, PAIR_FEATURES], in the order of first occurrences.

    Args:
      ngrams: the words or the pairs of documents.
      words: the words of the documents.
      scores: float64 [N] for each document, the scores of its sentences, from 0 to 1.
      lexicon: the counts of words or of pairs.
      stops: the stop words of the language of each document.
      of_words: for pairs, the words of the documents and their importance.
      taken: as for `lexicon_features`, in the order of first occurrences.
    """
    vocabulary, documents = words.vocabulary, ngrams.documents
    members = ngrams.kinds[ngrams.kind_of].T
    lists = dict(zip(dict.fromkeys(stops), itertools.count()))
    is_stop = np.array([[word in each for word in vocabulary] for each in lists], bool)
    of_lists = np.array([lists[each] for each in stops], np.int64)[documents]
    count_stops = is_stop.reshape(len(lists), len(vocabulary))[of_lists, members].sum(
        axis=0
    )
    if of_words is None:
        # `isalpha` is fast, but false for words with vowel signs too.
        digits = [not w.isalpha() and any(map(str.isdigit, w)) for w in vocabulary]
        lengths = np.fromiter(map(len, vocabulary), np.int64, len(vocabulary))
        own = [count_stops, lengths[members[0]], np.array(digits, bool)[members[0]]]
    else:
        known, importance = of_words
        keys = known.documents * len(vocabulary) + known.kind_of
        first, second = (
            importance[np.searchsorted(keys, documents * len(vocabulary) + each)]
            for each in members
        )
        own = [count_stops, first, second, first * second]
    parts = [
        place_features(ngrams, words, scores),
        lexicon_features(ngrams, vocabulary, lexicon, taken),
        np.stack(own, axis=1).astype(np.float32),
    ]
    return np.concatenate(parts, axis=1)[ngrams.by_first]


def length_features(sentences: Sequence[Sequence[str]]) -> np.ndarray:
    """The features from which the length of a reference is estimated, float64 [3]: 1,
    and the logarithms of the numbers of words and of sentences of the article.
    """
    words = sum(map(len, sentences))
    return np.array([1.0, math.log(max(words, 1)), math.log(max(len(sentences), 1))])


def place_features(
    ngrams: Ngrams, words: NumberedWords, scores: Sequence[np.ndarray]
) -> np.ndarray:
    """The features that depend only on the document, float32 [G, PLACE_FEATURES].

    Args:
      ngrams, words, scores: as for `ngram_features`.
    """
    size, documents = len(ngrams.counts), ngrams.documents
    of_sentences, before = words.documents, words.first_sentences
    all_scores = np.concatenate([np.zeros(0), *scores])
    ranks = np.empty(len(all_scores))
    # In each document the best first, and of equal ones the first.
    ranks[np.lexsort((-all_scores, of_sentences))] = np.arange(len(ranks))
    ranks -= before[of_sentences]
    in_sentences = np.diff(ngrams.starts, append=len(ngrams.cells))
    members = np.repeat(np.arange(size), in_sentences)
    rows = ngrams.cells - before[documents[members]]
    first = rows[ngrams.starts]
    has_second = in_sentences > 1
    second = np.full(size, _NO_SECOND)
    second[has_second] = np.log1p(rows[ngrams.starts[has_second] + 1])
    cell_scores, cell_ranks = all_scores[ngrams.cells], ranks[ngrams.cells]
    total = np.bincount(members, cell_scores, size)
    is_in = np.zeros((3, size))
    for place, of_sentence in enumerate(is_in):
        of_sentence[members[rows == place]] = 1.0
    sentences, counts = np.diff(before)[documents], words.counts[documents]
    log_sentences, log_words = (
        np.array([math.log(max(each, 1)) for each in sizes.tolist()])
        for sizes in (np.diff(before), words.counts)
    )
    columns = [
        np.log(ngrams.counts),
        np.log1p(in_sentences),
        np.log1p(first),
        first / sentences,
        second,
        *is_in,
        np.maximum.reduceat(cell_scores, ngrams.starts) if size else total,
        total,
        total / in_sentences,
        np.log1p(np.minimum.reduceat(cell_ranks, ngrams.starts) if size else total),
        np.bincount(members, cell_ranks < _BEST_SENTENCES, size),
        log_sentences[documents],
        log_words[documents],
        100.0 * ngrams.counts / counts,
        in_sentences / sentences,
    ]
    return np.stack(columns, axis=1).astype(np.float32)


def lexicon_features(
    ngrams: Ngrams,
    vocabulary: Iterable[str],
    lexicon: Lexicon,
    taken: Sequence[bool] | None = None,
) -> np.ndarray:
    """The features from training articles, float32 [G, LEXICON_FEATURES].

    Args:
      ngrams: the n-grams of documents.
      vocabulary: the words of the documents.
      lexicon: the counts in training articles.
      taken: for training articles, whether its reference has each n-gram, in the order
          of first occurrences; the article is then subtracted from the counts. None for
          other articles.
    """
    base = lexicon.taken_share
    counts = lexicon.counts_of(ngrams, vocabulary)
    if taken is not None:
        known = counts[:, 0] > 0
        is_taken = np.empty(len(known))
        is_taken[ngrams.by_first] = taken
        counts[:, 0] -= known
        counts[:, 1] -= known * is_taken
    articles, references = counts.T
    ratio = (references + _SMOOTHING * base) / (articles + _SMOOTHING) / base
    idf = np.log(max(lexicon.documents, 1) / np.maximum(articles, 0.5))
    return np.stack([np.log(ratio), np.log1p(articles), idf], axis=1).astype(np.float32)
