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

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from precis.model.extractive.expected import ExpectedReference, expected_rouge2
from precis.model.extractive.ngrams import Gram, Ngrams, find_ngrams, find_pairs
from precis.model.extractive.threads import single_thread
from precis.model.rouge import tokenizer
from precis.model.text.language import ENGLISH
from precis.model.text.stop_words import STOP_WORDS, stop_words

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


class Lexicon(NamedTuple):
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

    def importance(self, ngrams: Ngrams, features: np.ndarray) -> dict[Gram, float]:
        """The probability of each n-gram; `features` is float32 [G, F]."""
        states = (features - self.mean) * self.scale
        for kernel, bias in zip(self.kernels[:-1], self.biases[:-1], strict=True):
            states = np.maximum(states @ kernel + bias, 0.0)
        logits = (states @ self.kernels[-1] + self.biases[-1])[:, 0].astype(np.float64)
        probabilities = 1.0 / (1.0 + np.exp(-logits))
        return dict(zip(ngrams.grams, probabilities.tolist(), strict=True))


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

    def expect_reference(
        self,
        sentences: Sequence[str],
        scores: np.ndarray,
        language: str | None = ENGLISH,
    ) -> ExpectedReference | None:
        """Predicts the reference of a document.

        Args:
          sentences: the sentences of the document.
          scores: float64 [N], the scores of the selector, from 0 to 1.
          language: the language of the document.

        Returns:
          The prediction, or None if most sentences have no words for ROUGE, as foreign
          alphabets in English.
        """
        tokens = list(map(tokenizer(language, "\n".join(sentences)), sentences))
        if 2 * sum(map(bool, tokens)) < max(len(tokens), 1):
            return None
        words, pairs = find_ngrams(tokens), find_pairs(tokens)
        count = int(words.counts.sum())
        with single_thread():
            stops = stop_words(language)
            features = ngram_features(
                words, scores, count, self.words.lexicon, stops=stops
            )
            of_words = self.words.importance(words, features)
            features = ngram_features(
                *(pairs, scores, count, self.pairs.lexicon),
                of_words=of_words,
                stops=stops,
            )
            of_pairs = self.pairs.importance(pairs, features)
            length = float(np.exp(length_features(tokens) @ self.length_weights))
        return ExpectedReference(of_words, of_pairs, length)


def ngram_features(
    ngrams: Ngrams,
    scores: np.ndarray,
    words: int,
    lexicon: Lexicon,
    *,
    of_words: Mapping[Gram, float] | None = None,
    stops: Collection[str] = STOP_WORDS,
    taken: Sequence[bool] | None = None,
) -> np.ndarray:
    """The features of words, float32 [G, WORD_FEATURES], or of pairs, float32
    [G, PAIR_FEATURES].

    Args:
      ngrams: the words or the pairs of a document.
      scores: float64 [N], the selector's scores of the sentences, from 0 to 1.
      words: the number of words of the document.
      lexicon: the counts of words or of pairs.
      of_words: for pairs, the importance of the words; None for words.
      stops: the stop words of the language.
      taken: as for `lexicon_features`.
    """
    names = WORD_FEATURES if of_words is None else PAIR_FEATURES
    if not ngrams.grams:
        return np.zeros((0, len(names)), np.float32)
    grams: Any = ngrams.grams
    if of_words is None:
        # `isalpha` is fast, but false for words with vowel signs too.
        rows = [
            (
                word in stops,
                len(word),
                not word.isalpha() and any(map(str.isdigit, word)),
            )
            for word in grams
        ]
    else:
        counts = [(a in stops) + (b in stops) for a, b in grams]
        pairs = [(of_words.get(a, 0.0), of_words.get(b, 0.0)) for a, b in grams]
        rows = [(stop, a, b, a * b) for stop, (a, b) in zip(counts, pairs, strict=True)]
    parts = [
        place_features(ngrams, scores, words),
        lexicon_features(grams, lexicon, taken),
        np.array(rows, np.float32),
    ]
    return np.concatenate(parts, axis=1)


def length_features(sentences: Sequence[Sequence[str]]) -> np.ndarray:
    """The features from which the length of a reference is estimated, float64 [3]: 1,
    and the logarithms of the numbers of words and of sentences of the article.
    """
    words = sum(map(len, sentences))
    return np.array([1.0, math.log(max(words, 1)), math.log(max(len(sentences), 1))])


def place_features(ngrams: Ngrams, scores: np.ndarray, words: int) -> np.ndarray:
    """The features that depend only on the document, float32 [G, PLACE_FEATURES].

    Args:
      ngrams: the n-grams of the document, at least one.
      scores: float64 [N], the selector's scores of the sentences, from 0 to 1.
      words: the number of words of the document.
    """
    rows, members = ngrams.sentences, ngrams.members
    size, sentences = len(ngrams.grams), len(scores)
    # The sort is stable: the cells of an n-gram stay in the order of the sentences.
    order = np.argsort(members, kind="stable")
    starts = np.searchsorted(members[order], np.arange(size))
    in_sentences = np.bincount(members, minlength=size)
    first = rows[order[starts]]
    has_second = in_sentences > 1
    second = np.full(size, _NO_SECOND)
    second[has_second] = np.log1p(rows[order[starts[has_second] + 1]])
    ranks = np.empty(sentences)
    ranks[np.argsort(-scores, kind="stable")] = np.arange(sentences)
    cell_scores = scores[rows]
    total = np.bincount(members, cell_scores, size)
    best_rank = np.minimum.reduceat(ranks[rows[order]], starts)
    is_in = np.zeros((3, size))
    for place, of_sentence in enumerate(is_in):
        of_sentence[members[rows == place]] = 1.0
    ones = np.ones(size)
    columns = [
        np.log(ngrams.counts),
        np.log1p(in_sentences),
        np.log1p(first),
        first / sentences,
        second,
        *is_in,
        np.maximum.reduceat(cell_scores[order], starts),
        total,
        total / in_sentences,
        np.log1p(best_rank),
        np.bincount(members, ranks[rows] < _BEST_SENTENCES, size),
        ones * math.log(sentences),
        ones * math.log(words),
        100.0 * ngrams.counts / words,
        in_sentences / sentences,
    ]
    return np.stack(columns, axis=1).astype(np.float32)


def lexicon_features(
    grams: Sequence[Gram], lexicon: Lexicon, taken: Sequence[bool] | None = None
) -> np.ndarray:
    """The features from training articles, float32 [G, LEXICON_FEATURES].

    Args:
      grams: the n-grams of a document, at least one.
      lexicon: the counts in training articles.
      taken: for a training article, whether its reference has each n-gram; the
          article is then subtracted from the counts. None for other articles.
    """
    base = lexicon.taken_share
    rows = map(lexicon.counts.get, grams, itertools.repeat((0, 0)))
    numbers = itertools.chain.from_iterable(rows)
    counts = np.fromiter(numbers, np.float64, 2 * len(grams)).reshape(-1, 2)
    if taken is not None:
        known = counts[:, 0] > 0
        counts[:, 0] -= known
        counts[:, 1] -= known * np.asarray(taken, np.float64)
    articles, references = counts.T
    ratio = (references + _SMOOTHING * base) / (articles + _SMOOTHING) / base
    idf = np.log(max(lexicon.documents, 1) / np.maximum(articles, 0.5))
    return np.stack([np.log(ratio), np.log1p(articles), idf], axis=1).astype(np.float32)
