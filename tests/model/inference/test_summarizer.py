"""Hypotheses become distinct texts with their scores."""

from support.small_search import TOKENIZER

from precis.model.inference.batches import Hypothesis
from precis.model.inference.summarizer import distinct_summaries


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
