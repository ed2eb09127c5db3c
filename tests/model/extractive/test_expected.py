"""The summary with the highest expected ROUGE, against all summaries there are."""

import itertools

import numpy as np
import pytest

from precis.model.extractive import expected
from precis.model.extractive.expected import (
    ExpectedReference,
    Option,
    choose_options,
)


def value(options, chosen, reference):
    """The expected F1 of a set of options, by its definition."""
    total = 0.0
    for grams_of, importance, length, weight in (
        (list, reference.words, reference.length, 1.0),
        (
            lambda words: list(itertools.pairwise(words)),
            reference.pairs,
            reference.length - 1,
            expected._PAIR_WEIGHT,
        ),
    ):
        grams = [gram for option in chosen for gram in grams_of(options[option].words)]
        shared = sum(importance.get(gram, 0.0) for gram in set(grams))
        total += weight * 2 * shared / max(len(grams) + length, 1)
    return total


def best_of_all(options, reference, most):
    sets = [
        chosen
        for count in range(1, most + 1)
        for chosen in itertools.combinations(range(len(options)), count)
        if len({options[option].place for option in chosen}) == count
    ]
    return max(value(options, chosen, reference) for chosen in sets)


def random_case(seed):
    rng = np.random.default_rng(seed)
    words = [f"w{number}" for number in range(30)]
    importance = dict(zip(words, rng.beta(0.3, 1.5, 30).tolist(), strict=True))
    pairs = {
        pair: float(rng.beta(0.1, 2.0)) for pair in itertools.permutations(words, 2)
    }
    options = [
        Option(int(place), rng.choice(words, rng.integers(1, 12)).tolist())
        for place in np.repeat(np.arange(5), 2)
    ]
    return options, ExpectedReference(importance, pairs, 12.0)


def test_the_search_finds_nearly_always_the_best_of_all_summaries():
    found, best = [], []
    for seed in range(40):
        options, reference = random_case(seed)
        chosen = choose_options(options, reference, most=3)
        assert len({options[option].place for option in chosen}) == len(chosen) <= 3
        found.append(value(options, chosen, reference))
        best.append(best_of_all(options, reference, 3))
    equal = np.isclose(found, best)
    assert equal.mean() >= 0.8
    assert (np.array(found)[~equal] >= 0.9 * np.array(best)[~equal]).all()


def test_a_sentence_that_costs_more_than_it_brings_is_left_out():
    reference = ExpectedReference(
        {"flood": 0.9, "town": 0.8, "hall": 0.05, "was": 0.05, "old": 0.0},
        {("flood", "town"): 0.5},
        3.0,
    )
    short = Option(0, ["flood", "town"])
    long = Option(1, ["hall", "was", "old"])
    assert choose_options([short, long], reference, most=2) == [0]
    # With more to say, the second sentence is worth its words.
    wide = reference._replace(
        words={**reference.words, "hall": 0.9, "was": 0.9, "old": 0.9},
        pairs={**reference.pairs, ("hall", "was"): 0.9, ("was", "old"): 0.9},
    )
    assert choose_options([short, long], wide, most=2) == [0, 1]
    assert choose_options([short, long], wide, most=1) == [1]


@pytest.mark.parametrize("options", [[], [Option(0, [])]])
def test_without_options_or_words_there_is_no_summary_or_one(options):
    reference = ExpectedReference({}, {}, 5.0)
    chosen = choose_options(options, reference, most=2)
    assert chosen == [0][: len(options)]


def test_costs_and_length_speak_against_an_option():
    reference = ExpectedReference({"flood": 0.9, "town": 0.5}, {}, 4.0)
    options = [
        Option(0, ["flood", "town"]),
        Option(0, ["flood"]),
        Option(1, ["hall", "town"], cost=-0.5),
    ]
    assert choose_options(options, reference, most=1) == [2]
    assert choose_options(options[:2], reference, most=1) == [0]
    costly = [options[0]._replace(cost=0.2), options[1]]
    assert choose_options(costly, reference, most=1) == [1]
    assert choose_options(options[:2], reference, most=1, length_cost=0.5) == [1]
