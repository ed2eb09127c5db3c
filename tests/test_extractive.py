"""Extractive methods: their scores by hand, by an independent route for long documents,
and the same whatever was scored before.
"""

import hashlib
import math
import random as random_numbers
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from nltk.stem.porter import PorterStemmer

from precis.model.extractive import terms as terms_module
from precis.model.extractive.methods import (
    BASELINES,
    METHODS,
    centroid,
    frequency,
    lead,
    lexrank,
    lsa,
    luhn,
    pacsum,
    random,
    sumbasic,
    textrank,
)
from precis.model.extractive.terms import find_terms
from precis.model.extractive.threads import NEVER_SPLIT
from precis.model.text.article import Article
from precis.model.text.stop_words import STOP_WORDS, TOKENISED_FRAGMENTS
from precis.model.text.words import words
from precis.pipelines.corpus.sample import generator

# Written for this test. Content words by stem: marta 3; bridge, flood, village, repair
# 2 each; eighteen others 1 each.
PARAGRAPH = (
    "Marta measured the cracked bridge before the flooding reached its wooden legs. "
    "The villages paid for repairs after an earlier flood. "
    "Marta repaired the bridge with oak planks, iron nails and 12 borrowed ropes. "
    "Nobody in the village thanked Marta until winter came quietly."
)
NAME, TWICE, ONCE = Fraction(1), Fraction(2, 3), Fraction(1, 3)
SCORES = [
    NAME
    + 2 * TWICE
    + 5 * ONCE,  # marta; bridge flood; measured cracked reached wooden legs
    3 * TWICE + 2 * ONCE,  # village repair flood; paid earlier
    NAME
    + 2 * TWICE
    + 6 * ONCE,  # marta; repair bridge; oak planks iron nails borrowed ropes
    NAME + 1 * TWICE + 5 * ONCE,  # marta; village; nobody thanked winter came quietly
]


def long_document(count, *, seed=5, vocabulary=900):
    """Sentences of 1 to 14 made-up words that Porter's algorithm leaves alone, some of
    them said twice.
    """
    chance = random_numbers.Random(seed)
    made = [
        f"{a}{b}{c}"
        for a in "bdfgklmnprtv"
        for b in ("ax", "ox", "uk", "am", "on")
        for c in ("ab", "ob", "uk", "am", "ix", "um", "ak")
    ]
    made = [word + end for word in made for end in ("", "tab", "dok")][:vocabulary]
    weights = [1 / (rank + 5) for rank in range(len(made))]
    return [
        " ".join(chance.choices(made, weights, k=chance.randint(1, 14))) + "."
        for _ in range(count)
    ]


def test_terms_are_the_stems_of_words_that_count():
    terms = find_terms(["The flood reached it.", "Floods, in 2014!", "Why?"])
    flood, reached = terms.terms[0], terms.terms[1]
    assert terms.rows.tolist() == [
        0,
        0,
        0,
        0,
        1,
        1,
        1,
        2,
    ] and terms.places.tolist() == [1, 2, 4]
    assert terms.terms.tolist() == [flood, reached, flood] and {flood, reached} == {
        0,
        1,
    }
    assert sorted(zip(*(part.tolist() for part in terms.cells), strict=True)) == sorted(
        [(0, flood, 1.0), (1, flood, 1.0), (0, reached, 1.0)]
    )
    assert terms.cells[1].tolist() == sorted(terms.cells[1].tolist())
    assert terms.lengths.tolist() == [2, 1, 0] and (
        terms.frequencies[flood],
        terms.frequencies[reached],
    ) == (2, 1)
    assert (terms.idf[flood], terms.idf[reached]) == (math.log(3 / 3), math.log(3 / 2))


def test_terms_do_not_mind_the_character_that_parts_sentences():
    assert find_terms(["Kel \0 mor\0tas.", "Kel."]).rows.tolist() == [0, 0, 0, 1]
    assert find_terms(["\0"]).rows.tolist() == [] and find_terms(
        ["\0", "Kel.", "\0"]
    ).rows.tolist() == [1]


def test_terms_are_the_stems_that_rouge_compares():
    texts = [
        sentence.text
        for number in range(400)
        for sentence in Article.from_text(generator.document(number).article).sentences
    ]
    every = (
        {
            word
            for text in texts
            for word in words(text)
            if word.isascii() and word.isalpha()
        }
        - STOP_WORDS
        - TOKENISED_FRAGMENTS
    )
    assert len(every) > 1500
    reference = PorterStemmer()
    listed = sorted(every)
    assert find_terms(listed).vocabulary == len(
        {reference.stem(word) for word in listed}
    )
    assert (
        find_terms(["Marta's Marta"]).vocabulary == 1
        and find_terms(["floods flood flooding"]).vocabulary == 1
    )


def test_frequency_scores_the_worked_paragraph_exactly():
    assert SCORES == [4, Fraction(8, 3), Fraction(13, 3), Fraction(10, 3)]
    scores = frequency(
        [sentence.text for sentence in Article.from_text(PARAGRAPH).sentences]
    )
    assert scores.dtype == np.float64
    assert scores.tolist() == [float(score) for score in SCORES]


def test_frequency_drops_stop_words_numbers_and_punctuation():
    # rain is the only content word, twice in the first sentence
    assert frequency(
        ["It was the rain -- and, the 12 RAIN!", "1,200 of 4.5m in 2014.", "?!"]
    ).tolist() == [2.0, 0.0, 0.0]


def test_frequency_reads_a_possessive_as_its_owner_and_tokenised_text_like_plain_text():
    assert frequency(["Marta's boat.", "Marta sails."]).tolist() == [1.5, 1.5]
    assert frequency(["marta 's boat .", "marta does n't sail ."]).tolist() == [
        1.5,
        1.5,
    ]
    assert frequency(["Marta’s boat.", "Marta didn’t sail."]).tolist() == [1.5, 1.5]


def test_luhn_squares_the_significant_words_of_a_cluster():
    # Significant, being there twice: kel, mor. A cluster ends where five other words
    # stand between two.
    texts = [
        "Kel mor bin the kel.",
        "Kel, rat the the the, mor.",
        "Kel sab the the tup the mor.",
        "The tas.",
        "Kel.",
    ]
    assert luhn(texts).tolist() == [
        9 / 5,
        4 / 6,
        1.0,
        0.0,
        1.0,
    ]  # in the second, rat and the: four in between


def test_luhn_clusters_end_with_the_sentence():
    assert luhn(["Kel.", "Kel."]).tolist() == [1.0, 1.0]


def test_sumbasic_takes_the_best_sentence_with_the_most_probable_word_and_squares_what_it_said():
    # kel 0.4, bin 0.3, mor 0.2, tas 0.1. Taken: 4th (0.325); tas leads (0.1): 1st; bin
    # (0.09): 3rd; then the 2nd.
    assert sumbasic(
        ["Kel tas.", "Kel mor.", "Bin bin.", "Kel kel bin mor.", "The."]
    ).tolist() == [4.0, 2.0, 3.0, 5.0, 0.0]


def test_sumbasic_takes_the_earlier_of_equal_sentences():
    assert sumbasic(["Tas bin.", "Kel mor.", "Mor kel.", "Kel mor."]).tolist() == [
        2.0,
        4.0,
        3.0,
        1.0,
    ]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_sumbasic_takes_averages_that_differ_by_rounding_for_equal(order):
    # Of 21 words kel 7, nim 6, mor 3, tas 2: (7 + 3) / 2 = (7 + 2 + 6) / 3, and (5 x 7
    # + 3) / 8 is less.
    pair = ["Kel mor.", "Kel tas nim."]
    texts = [
        pair[order[0]],
        pair[order[1]],
        "Kel kel kel kel kel bin rok sab.",
        "Mor mor tas nim nim nim nim nim.",
    ]
    assert find_terms(texts).frequencies.sum() == 21
    assert sumbasic(texts)[0] == 4.0


def test_centroid_sums_the_weights_of_the_words_that_weigh_enough():
    # Ten times kel weighs 10 log(4/3) = 2.88, mor and bin log 2 = 0.69, tas 2 log(4/3)
    # = 0.58: under 0.3 of kel.
    scores = centroid(
        ["Kel kel kel kel kel kel kel kel kel mor.", "Kel tas.", "Tas.", "Bin."]
    )
    assert scores == pytest.approx(
        [90 * math.log(4 / 3), 10 * math.log(4 / 3), 0.0, 0.0]
    )
    # Once kel weighs 2 log(4/3) = 0.58 as tas does, and all weigh enough.
    scores = centroid(["Kel mor.", "Kel tas.", "Tas.", "Bin."])
    assert scores == pytest.approx(
        [
            2 * math.log(4 / 3) + math.log(2),
            4 * math.log(4 / 3),
            2 * math.log(4 / 3),
            math.log(2),
        ]
    )


def test_lexrank_walks_over_cosines():
    # kel and mor weigh the same, so the middle of the chain has cosine a with both
    # ends; the fourth is alone.
    a = math.sqrt(0.5)
    end = (0.15 / 4 + 0.85 * 0.75 * a / (1 + 2 * a)) / (
        1 - 0.85 / (1 + a) + 1.7 * a / (1 + 2 * a)
    )
    assert lexrank(["Kel.", "Kel mor.", "Mor.", "Bin."]) == pytest.approx(
        [end, 0.75 - 2 * end, end, 0.25], abs=1e-12
    )


def test_textrank_walks_over_shared_words():
    # Edges 2 / (log 2 + log 3) and 1 / (log 2 + log 3): from the middle two of three go
    # left.
    middle = 0.135 / 0.2775
    expected = [0.05 + 0.85 * middle * 2 / 3, middle, 0.05 + 0.85 * middle / 3]
    assert textrank(["Kel mor.", "Kel tas mor.", "Tas bin."]) == pytest.approx(
        expected, abs=1e-12
    )


def test_textrank_joins_two_equal_words_by_an_edge_of_1_and_no_sentence_with_itself():
    w = (
        1 / math.log(2)
        # the weight of the edges to the third, which has two of them; the first two share
        # one of 1
    )
    # s = 0.05 + 0.85 (s / (1 + w) + (1 - 2 s) / 2)
    s = (0.05 + 0.425) / (1 - 0.85 / (1 + w) + 0.85)
    assert textrank(["Kel.", "Kel.", "Kel mor."]) == pytest.approx(
        [s, s, 1 - 2 * s], abs=1e-12
    )


def test_pacsum_weighs_what_follows_twice_and_takes_off_what_went_before():
    a = math.sqrt(0.5)
    assert pacsum(["Kel.", "Kel mor.", "Mor.", "Bin."]) == pytest.approx(
        [2 * a, a, -a, 0.0], abs=1e-12
    )


def test_lsa_measures_sentences_in_the_main_topics():
    # Squared singular values 6 (three sentences of two words) and 1: the second is
    # under half of the first.
    assert lsa(["Kel mor.", "Mor kel.", "Kel mor.", "Tas."]) == pytest.approx(
        [math.sqrt(2)] * 3 + [0.0], abs=1e-12
    )
    # 2 and 1: both are kept.
    assert lsa(["Kel mor.", "Tas."]) == pytest.approx([math.sqrt(2), 1.0], abs=1e-12)
    # Of kel, twice, and mor, once: 1 and 0.4 + 0.6 / 2.
    assert lsa(["Kel kel mor."]) == pytest.approx([math.sqrt(1.49)])


def test_lead_falls_from_sentence_to_sentence():
    assert (np.diff(lead(["a", "b", "c", "d"])) < 0).all()


def test_random_is_drawn_from_the_text():
    draw = random_numbers.Random(int(hashlib.sha256(b"One.\nTwo.").hexdigest(), 16))
    assert random(["One.", "Two."]).tolist() == [draw.random(), draw.random()]
    assert random(["Two.", "One."]).tolist() != random(["One.", "Two."]).tolist()


def test_the_methods_by_name():
    names = [
        "lead",
        "random",
        "frequency",
        "lexrank",
        "textrank",
        "lsa",
        "luhn",
        "sumbasic",
        "centroid",
        "pacsum",
    ]
    assert list(METHODS) == names and BASELINES == ("lead", "random", "oracle")


ODD_DOCUMENTS = {
    "empty": [],
    "one": ["One."],
    "no terms": ["The.", "", "It was."],
    "the same": ["Boats sail."] * 3,
    "long and the same": ["Boats sail."] * 300,
    "long without terms": ["The."] * 300,
    "long and all different": [
        f"{a}{b}k"
        for a in ("mar", "tol", "vim", "sax", "bel", "dor")
        for b in map(chr, range(0x3B1, 0x3E1))
    ],
    "a word said very often": ["Boats " * 3000, "Sails and boats."],
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("texts", ODD_DOCUMENTS.values(), ids=ODD_DOCUMENTS)
@pytest.mark.filterwarnings("error")
def test_every_method_gives_one_finite_score_a_sentence(method, texts):
    scores = METHODS[method](texts)
    assert scores.shape == (len(texts),) and scores.dtype == np.float64
    assert np.isfinite(scores).all()


def edges_each_with_each(texts, weigh):
    return np.array(
        [[weigh(i, j) for j in range(len(texts))] for i in range(len(texts))]
    )


def walk(edges):
    """PageRank by its definition, five hundred steps."""
    shares = np.full(len(edges), 1 / len(edges))
    towards = (edges / np.maximum(edges.sum(axis=1, keepdims=True), 1e-99)).T
    for _ in range(500):
        shares = 0.15 / len(edges) + 0.85 * towards @ shares
    return shares


@pytest.fixture(scope="module")
def long_texts():
    texts = long_document(300)
    assert not find_terms(texts).is_small
    return texts


@pytest.fixture(scope="module")
def long_counts(long_texts):
    """float64 [N, V], counted word by word."""
    split = [text.lower().removesuffix(".").split() for text in long_texts]
    different = sorted({word for words in split for word in words})
    return np.array(
        [[words.count(word) for word in different] for words in split], np.float64
    )


@pytest.fixture(scope="module")
def long_cosines(long_counts):
    weighed = long_counts * np.log(
        len(long_counts) / (1 + (long_counts > 0).sum(axis=0))
    )
    weighed /= np.linalg.norm(weighed, axis=1, keepdims=True)
    return weighed @ weighed.T


def test_lexrank_of_a_long_document_is_that_of_the_full_graph(long_texts, long_cosines):
    assert lexrank(long_texts) == pytest.approx(walk(long_cosines), rel=1e-9)


def test_graphs_of_a_document_that_is_just_small_are_the_full_ones():
    texts = long_document(120)
    terms = find_terms(texts)
    assert (
        terms.is_small
        and 120 * 120 * np.count_nonzero(terms.sentence_frequencies > 1) > NEVER_SPLIT
    )
    unit = terms.matrix(terms.unit_values)
    assert lexrank(texts) == pytest.approx(walk(unit @ unit.T), rel=1e-9)


def test_textrank_of_a_long_document_is_that_of_the_full_graph(long_texts, long_counts):
    logarithms = np.log(long_counts.sum(axis=1))
    shared = long_counts @ long_counts.T

    def weigh(i, j):
        length = logarithms[i] + logarithms[j]
        return 0.0 if i == j else shared[i, j] / length if length else shared[i, j]

    assert len(set(logarithms)) == 14
    assert textrank(long_texts) == pytest.approx(
        walk(edges_each_with_each(long_texts, weigh)), rel=1e-9
    )


def test_textrank_takes_lengths_in_blocks():
    texts = long_document(300) + [
        " ".join(long_document(1, seed=seed) * (seed % 7 + 2)) for seed in range(90)
    ]
    lengths = find_terms(texts).lengths
    assert len(set(lengths)) > 40  # more than one block
    counts = find_terms(texts).matrix(find_terms(texts).cells[2]).toarray()
    pairs = np.log(lengths)[:, None] + np.log(lengths)
    edges = counts @ counts.T / np.where(pairs == 0, 1, pairs)
    np.fill_diagonal(edges, 0)
    assert textrank(texts) == pytest.approx(walk(edges), rel=1e-9)


def test_pacsum_of_a_long_document_is_that_of_all_pairs(long_texts, long_cosines):
    expected = 2 * np.triu(long_cosines, 1).sum(axis=1) - np.tril(long_cosines, -1).sum(
        axis=1
    )
    assert pacsum(long_texts) == pytest.approx(expected, abs=1e-9)


def test_lsa_of_a_long_document_is_that_of_a_full_decomposition(
    long_texts, long_counts
):
    matrix = np.where(
        long_counts > 0,
        0.4 + 0.6 * long_counts / long_counts.max(axis=1, keepdims=True),
        0,
    )
    left, values, _ = np.linalg.svd(matrix, full_matrices=False)
    kept = values >= values[0] / 2
    assert 1 < kept.sum() < 64
    assert lsa(long_texts) == pytest.approx(
        np.sqrt((left[:, kept] * values[kept]) ** 2 @ np.ones(kept.sum())), rel=1e-4
    )


def test_sumbasic_of_a_long_document_is_that_of_its_words(long_texts):
    split = [text.removesuffix(".").split() for text in long_texts]
    every = [word for words in split for word in words]
    logarithms = {
        word: math.log(every.count(word) / len(every)) for word in dict.fromkeys(every)
    }
    left, expected = list(range(len(split))), np.zeros(len(split))
    while left:
        top = max(
            (word for word in logarithms if any(word in split[i] for i in left)),
            key=lambda word: logarithms[word],
        )
        averages = {
            i: sum(math.exp(logarithms[word]) for word in split[i]) / len(split[i])
            for i in left
            if top in split[i]
        }
        best = next(
            i for i in averages if averages[i] >= max(averages.values()) * (1 - 1e-9)
        )
        expected[best] = len(left)
        left.remove(best)
        for word in split[best]:
            logarithms[word] *= 2
    assert sumbasic(long_texts).tolist() == expected.tolist()


@pytest.mark.parametrize("method", METHODS)
def test_a_score_does_not_depend_on_what_was_scored_before(method):
    documents = [long_document(12, seed=seed) for seed in range(8)] + [
        [sentence.text for sentence in Article.from_text(PARAGRAPH).sentences]
    ]

    def score(order):
        terms_module._find_terms.cache_clear()
        terms_module._chunks.clear()
        return {index: METHODS[method](documents[index]).tobytes() for index in order}

    assert score(range(9)) == score([8, 3, 5, 1, 7, 0, 2, 6, 4])


def test_threads_score_alike(monkeypatch):
    monkeypatch.setattr(
        terms_module, "_REMEMBERED_CHUNKS", 50
    )  # emptied again and again
    monkeypatch.setattr(terms_module, "_chunks", terms_module._Chunks())
    documents = [long_document(12, seed=seed) for seed in range(60)]
    alone = [lexrank(document).tobytes() for document in documents]
    terms_module._find_terms.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        assert (
            list(pool.map(lambda document: lexrank(document).tobytes(), documents))
            == alone
        )
    assert 0 < len(terms_module._chunks) <= 50


def test_a_very_long_word_is_not_remembered():
    word = "kel" * 20
    assert find_terms([word, word]).frequencies.tolist() == [2]
    assert word not in terms_module._chunks


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_memory_grows_with_the_words_and_not_with_the_pairs_of_sentences(method):
    texts = long_document(6000)
    tracemalloc.start()
    try:
        assert len(METHODS[method](texts)) == 6000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60e6  # a matrix of all pairs has 288 MB


def test_the_stop_word_list_is_whole():
    assert len(STOP_WORDS) == 174
    assert {"the", "i", "don't", "very"} <= STOP_WORDS
    assert not {"us", "will", "said"} & STOP_WORDS
