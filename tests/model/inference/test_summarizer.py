"""Hypotheses become distinct texts with their scores."""

import pytest
from support.small_search import TOKENIZER

from precis.model.inference.batches import Hypothesis
from precis.model.inference.summarizer import Summary, distinct_summaries, shorten
from precis.model.text.length_limit import LengthLimit


def test_a_summary_that_differs_in_white_space_only_is_left_out():
    """The better score stays, and the order is that of the scores."""
    space, line, a, b = map(TOKENIZER.vocabulary.index, ("▁", "▁␤", "▁a", "▁b"))
    end = TOKENIZER.end_id
    first = [
        Hypothesis([a, b, end], -0.1, -6.0, 0.1),
        Hypothesis([space, a, b, end], -0.2, -7.0, 0.1),
        Hypothesis([b, end], -0.3, -3.0, 0.1),
        Hypothesis([b, space, end], -0.4, -9.0, None),
    ]
    second = [
        Hypothesis([end], -0.5, -0.25, 0.1),
        Hypothesis([line, end], -0.6, -0.8, 0.1),
        Hypothesis([a, end], -0.7, -1.0, None),
    ]
    # The mean is over the tokens with the end token.
    assert [
        [tuple(summary)[:4] for summary in distinct_summaries(ranked, TOKENIZER)]
        for ranked in (first, second)
    ] == [
        [("a b", -0.1, -2.0, 0.1), ("b", -0.3, -1.5, 0.1)],
        [("", -0.5, -0.25, 0.1), ("a", -0.7, -0.5, None)],
    ]


LONG = Summary("Rain fell all day. Nobody came.", -1.0, -0.5, 0.1)
SHORT = Summary("Rain fell all night.", -2.0, -0.9, None)
CUT = SHORT._replace(text="Rain fell all", is_finished=False)
TITLE = Summary("Rain all day", -1.0, -0.5, None)


CHOICES = [
    ([LONG, SHORT], LengthLimit(words=6), [LONG.text, SHORT.text]),
    # A shorter hypothesis before the beginning of a better one.
    ([LONG, SHORT], LengthLimit(words=5), [SHORT.text]),
    ([LONG, LONG], LengthLimit(words=5), ["Rain fell all day."]),
    ([LONG, SHORT], LengthLimit(words=3), []),
    # No clause is cut, by the limit or by the search.
    ([LONG, CUT], LengthLimit(words=5), ["Rain fell all day."]),
    ([LONG, CUT._replace(is_finished=True)], LengthLimit(words=3), []),
    ([CUT], LengthLimit(words=9), []),
    (
        [LONG._replace(text=f"{LONG.text} It", is_finished=False)],
        LengthLimit(9),
        [LONG.text],
    ),
    ([LONG._replace(text=f"{LONG.text} It fell, which")], LengthLimit(9), [LONG.text]),
    # No quotation and no brackets are cut.
    ([LONG._replace(text='"Go home. Stay there." It rained.')], LengthLimit(3), []),
    ([LONG._replace(text="Rain (some. Not all.) fell.")], LengthLimit(3), []),
    # Headlines have no full stop.
    (
        [TITLE._replace(text="Rain all day long"), TITLE],
        LengthLimit(3, 0, 1),
        [TITLE.text],
    ),
    ([LONG], LengthLimit(0, 0, 1), ["Rain fell all day."]),
    ([LONG], LengthLimit(0, 0, 5), ["Rain fell all day.\nNobody came."]),
    ([SHORT._replace(text=""), LONG], LengthLimit(words=9), [LONG.text]),
    ([], LengthLimit(1), []),
]


@pytest.mark.parametrize(("ranked", "limit", "texts"), CHOICES)
def test_a_limit_chooses_among_hypotheses(ranked, limit, texts):
    kept = shorten(ranked, limit)
    assert [each.text for each in kept] == texts
    assert all(each.score in {one.score for one in ranked} for each in kept)
