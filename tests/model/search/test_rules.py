"""The constraints on the next token, each by hand and all against plain Python, and the
length penalty.
"""

import dataclasses
from collections import Counter

import numpy as np
import pytest
from keras import ops
from support import plain_search

from precis.model.cache import Cache
from precis.model.search.config import SearchConfig, SpecialTokens
from precis.model.search.constraints import score_next
from precis.model.search.scores import is_possible, length_penalty

NONE = SearchConfig(max_summary_tokens=8, no_repeat_ngram=0)
SPECIAL = SpecialTokens(start_id=0, end_id=1, pad_id=0)
PROBABILITIES = [0.1, 0.2, 0.3, 0.4]
LOGITS = np.log(PROBABILITIES) + 5.0


def next_of(written, config, special=SPECIAL, logits=LOGITS):
    """The tokens that may follow, with their log-probabilities, of one hypothesis among
    others that wrote something else.
    """
    rows = np.full((2, 3, config.max_summary_tokens + 1), special.pad_id, "int32")
    rows[..., 0] = special.start_id
    rows[..., 1 : len(written) + 1] = 3
    rows[1, 2, 1 : len(written) + 1] = written
    logits = np.broadcast_to(logits, (2, 3, len(logits))).astype("float32")
    tensors = map(ops.convert_to_tensor, (logits, rows, np.int32(len(written))))
    rules = {"config": config, "special": special}
    scores = score_next(*tensors, Cache({}, {}, {}), **rules)
    log_probs = enumerate(np.asarray(scores.logits - scores.norm)[1, 2])
    return {n: float(each) for n, each in log_probs if np.asarray(is_possible(each))}


NGRAMS = [
    (1, [], {0}),
    (1, [2, 3], {0, 2, 3}),
    (2, [], set()),
    (2, [2, 2], {2}),
    (2, [2, 3, 2], {3}),
    (2, [2, 0], {2}),  # the start token is part of "0 2"
    (2, [2, 3, 3, 2, 1, 2], {1, 3}),
    (3, [2, 3, 1, 2, 3], {1}),
    (3, [2, 2], set()),
    (3, [2, 2, 2], {2}),
    (4, [2, 3, 1, 2, 3], set()),
]


@pytest.mark.parametrize(("order", "written", "forbidden"), NGRAMS)
def test_ngrams_by_hand(order, written, forbidden):
    config = dataclasses.replace(NONE, no_repeat_ngram=order)
    allowed = set(range(4)) - forbidden
    expected = {token: np.log(PROBABILITIES[token]) for token in allowed}
    assert next_of(written, config) == pytest.approx(expected, abs=1e-5)


def test_all_constraints_by_plain_python():
    rng = np.random.default_rng(0)
    sizes = Counter()
    for case in range(150):
        start, end = rng.integers(4, size=2).tolist()
        special = SpecialTokens(
            start_id=start,
            end_id=end,
            pad_id=int(rng.integers(4)),
            suppressed=((), (1,), (0, 3))[case % 3],
            prefix=((), (2,), (3, end))[rng.integers(3)],
            last_id=(None, end, 2)[rng.integers(3)],
        )
        config = SearchConfig(
            max_summary_tokens=6,
            min_summary_tokens=int(rng.integers(6)),
            no_repeat_ngram=int(rng.integers(5)),
            repetition_penalty=(1.0, 0.6, 1.3)[rng.integers(3)],
            repetition_penalty_form=("log_probs", "logits")[case % 2],
        )
        written = tuple(rng.integers(4, size=rng.integers(6)).tolist())
        logits = rng.normal(0, 3, 4)
        expected = plain_search.next_log_probs(logits, written, config, special)
        found = next_of(written, config, special, logits)
        assert found == pytest.approx(expected, abs=1e-5)
        sizes[len(expected)] += 1
    assert all(sizes[size] >= 3 for size in range(5)), sizes


PENALTIES = [
    ("wu", 1, 0.6, 1.0),
    ("wu", 7, 1.0, 2.0),
    ("wu", 7, 0.0, 1.0),
    ("wu", 13, 2.0, 9.0),
    ("wu", 19, 0.5, 2.0),
    ("wu", 7, -1.0, 0.5),
    ("average", 1, 2.0, 1.0),
    ("average", 4, 1.0, 4.0),
    ("average", 9, 0.5, 3.0),
    ("average", 4, -0.5, 0.5),
    ("none", 9, 2.0, 1.0),
]


@pytest.mark.parametrize(("form", "length", "alpha", "expected"), PENALTIES)
def test_the_length_penalty_by_hand(form, length, alpha, expected):
    config = SearchConfig(length_penalty_form=form, length_penalty=alpha)
    assert float(length_penalty(length, config)) == pytest.approx(expected)
    assert plain_search.penalty(length, config) == pytest.approx(expected)
