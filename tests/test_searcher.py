"""The searcher: ids come back in the order of the documents, whatever the batches;
lengths and special ids reach the search.
"""

import dataclasses
import itertools

import numpy as np
import pytest

from precis.model.errors import UsageError
from precis.model.inference import batches
from precis.model.inference.searcher import Searcher
from precis.model.search.config import SearchConfig, SpecialTokens
from tests.small_network import PAD, VOCABULARY, make_network, network_of

START, END = 1, 2
SPECIAL = SpecialTokens(start_id=START, end_id=END, pad_id=PAD, suppressed=(START, PAD))
SOURCES = [
    np.random.default_rng(seed).integers(5, 13, size=length).astype("int32")
    for seed, length in enumerate([3, 9, 1, 20, 6, 6])
]


def special(**changes):
    return SpecialTokens(
        **{
            "start_id": START,
            "end_id": END,
            "pad_id": PAD,
            "suppressed": (START, PAD),
            **changes,
        }
    )


def only(*tokens):
    """Special ids that leave nothing else to write."""
    return special(
        suppressed=tuple(token for token in range(VOCABULARY) if token not in tokens)
    )


LIMITS = {"max_source_tokens": 8, "max_target_tokens": 6}


@pytest.fixture(scope="module")
def network():
    return make_network(encoder_layers=1, decoder_layers=1, **LIMITS)


def tokens_of(found):
    return [[hypothesis.tokens for hypothesis in ranked] for ranked in found]


@pytest.mark.parametrize(
    ("variant", "width", "penalty"),
    [
        ("pointer", 1, 0.0),
        ("pointer", 3, 0.0),
        ("decoder_only_relative", 3, 0.3),
        ("gru", 3, 0.3),
        pytest.param("decoder_only", 1, 0.0, marks=pytest.mark.slow),
        pytest.param("lstm", 1, 0.0, marks=pytest.mark.slow),
    ],
)
def test_a_document_alone_and_among_others_finds_the_same(
    monkeypatch, variant, width, penalty
):
    network = make_network(variant, **LIMITS)
    config = SearchConfig(
        beam_width=width,
        n_best=min(width, 2),
        max_summary_tokens=6,
        coverage_penalty=penalty,
    )
    searcher = Searcher(network, config=config, special=SPECIAL)
    together = searcher.search(SOURCES)
    assert [len(ranked) for ranked in together] == [min(width, 2)] * 6
    assert len({tuple(ranked[0].tokens) for ranked in together}) > 1
    assert all(
        ranked == sorted(ranked, key=lambda found: -found.score) for ranked in together
    )
    alone = [searcher.search([source])[0] for source in SOURCES]
    monkeypatch.setattr(batches, "BATCH_BEAM_TOKENS", 2 * 8 * width)  # batches of two
    for other in (
        alone,
        searcher.search(SOURCES),
        searcher.search(SOURCES[::-1])[::-1],
    ):
        assert tokens_of(other) == tokens_of(together)
        scores = [[found.score for found in ranked] for ranked in other]
        assert scores == [
            pytest.approx([found.score for found in ranked], abs=1e-4)
            for ranked in together
        ]


def test_tokens_go_up_to_and_with_the_end(network):
    searcher = Searcher(
        network, config=SearchConfig(beam_width=4, n_best=4), special=only(END, 5, 6)
    )
    found = [
        tokens for ranked in tokens_of(searcher.search(SOURCES)) for tokens in ranked
    ]
    assert all(
        tokens.index(END) == len(tokens) - 1 if END in tokens else len(tokens) == 6
        for tokens in found
    )
    assert {len(tokens) for tokens in found if END in tokens} >= {1, 2}


def test_no_document_and_a_document_of_nothing(network):
    searcher = Searcher(network, config=SearchConfig(beam_width=2), special=SPECIAL)
    assert searcher.search([]) == []
    empty, other = searcher.search([np.zeros(0, "int32"), SOURCES[0]])
    assert len(empty) == 1 and np.isfinite(empty[0].score)
    assert other[0].tokens == searcher.search([SOURCES[0]])[0][0].tokens


def test_sources_are_cut_at_the_length_of_the_network(network):
    searcher = Searcher(network, config=SearchConfig(beam_width=2), special=SPECIAL)
    assert searcher.max_source_tokens == 8
    assert searcher.search([SOURCES[3]]) == searcher.search([SOURCES[3][:8]])
    assert searcher.search([SOURCES[3]]) != searcher.search([SOURCES[3][:7]])


@pytest.mark.parametrize("width", [1, 3])
def test_lengths_are_cut_at_what_the_network_can_write(network, width):
    config = SearchConfig(
        beam_width=width,
        min_summary_tokens=50,
        max_summary_tokens=99,
        no_repeat_ngram=2,
    )
    searcher = Searcher(network, config=config, special=SPECIAL)
    assert (searcher.config.max_summary_tokens, searcher.config.min_summary_tokens) == (
        6,
        5,
    )
    for ranked in searcher.search(SOURCES):
        tokens = ranked[0].tokens
        pairs = list(zip(tokens, tokens[1:], strict=False))
        assert (
            len(tokens) == 6 and END not in tokens[:5] and len(set(pairs)) == len(pairs)
        )
    shorter = Searcher(
        network,
        config=SearchConfig(
            beam_width=width, max_summary_tokens=4, min_summary_tokens=2
        ),
        special=SPECIAL,
    )
    assert (shorter.config.max_summary_tokens, shorter.config.min_summary_tokens) == (
        4,
        2,
    )


def test_what_cannot_be_written_is_no_hypothesis(network):
    """Two hypotheses of one token are all there is, though four were asked for."""
    searcher = Searcher(
        network,
        config=SearchConfig(beam_width=4, n_best=4, max_summary_tokens=1),
        special=only(END, 7),
    )
    assert [sorted(ranked) for ranked in tokens_of(searcher.search(SOURCES[:2]))] == [
        [[END], [7]]
    ] * 2


def test_log_probability_and_margin_are_those_of_the_beam(network):
    """The penalty is `n^1`, so the score is the mean; the margin is there although only
    the best is kept.
    """
    config = SearchConfig(beam_width=4, n_best=4, length_penalty_form="average")
    ranked = Searcher(network, config=config, special=SPECIAL).search(SOURCES)
    (best, *_) = zip(
        *Searcher(
            network, config=dataclasses.replace(config, n_best=1), special=SPECIAL
        ).search(SOURCES),
        strict=True,
    )
    assert len({len(found.tokens) for hypotheses in ranked for found in hypotheses}) > 1
    for hypotheses, one in zip(ranked, best, strict=True):
        for found, after in itertools.pairwise(hypotheses):
            assert found.margin == pytest.approx(found.score - after.score, abs=1e-6)
        assert hypotheses[-1].margin is None and one.margin == pytest.approx(
            hypotheses[0].margin, abs=1e-6
        )
        for found in (*hypotheses, one):
            assert (
                found.log_prob / len(found.tokens)
                == pytest.approx(found.score, rel=1e-5)
                and found.log_prob < 0
            )


def test_there_is_no_margin_to_a_hypothesis_that_is_none(network):
    (greedy,) = Searcher(
        network, config=SearchConfig(beam_width=1), special=SPECIAL
    ).search(SOURCES[:1])
    assert greedy[0].margin is None
    searcher = Searcher(
        network,
        config=SearchConfig(beam_width=4, n_best=4, max_summary_tokens=1),
        special=only(END, 7),
    )
    (two,) = searcher.search(SOURCES[:1])
    assert [found.margin is None for found in two] == [False, True]


def test_the_special_ids_reach_the_search(network):
    config = SearchConfig(beam_width=1)
    searcher = Searcher(
        network,
        config=config,
        special=special(prefix=(9, 5), last_id=11, suppressed=(END,)),
    )
    for ranked in searcher.search(SOURCES):
        assert (
            ranked[0].tokens[:2] == [9, 5]
            and ranked[0].tokens[-1] == 11
            and len(ranked[0].tokens) == 6
        )
    other = [special(start_id=3), special(suppressed=(START, PAD, 6, 7, 8))]
    found = [
        tokens_of(Searcher(network, config=config, special=ids).search(SOURCES))
        for ids in (SPECIAL, *other)
    ]
    assert found[0] != found[1] and found[0] != found[2]
    assert {6, 7, 8} & {token for ranked in found[0] for token in ranked[0]}
    assert not {6, 7, 8} & {token for ranked in found[2] for token in ranked[0]}


def test_a_coverage_penalty_chooses_among_what_a_network_read(network):
    """The network was not trained with coverage: what its pointer read is counted all
    the same.
    """
    config = SearchConfig(beam_width=4, n_best=4, length_penalty=0.0, no_repeat_ngram=0)
    without, weighed = (
        Searcher(
            network,
            config=dataclasses.replace(config, coverage_penalty=penalty),
            special=SPECIAL,
        ).search(SOURCES)
        for penalty in (0.0, 2.0)
    )
    assert tokens_of(without) != tokens_of(weighed)
    for ranked, source in zip(weighed, SOURCES, strict=True):
        source = source[None, :8]
        for found in ranked:
            target = np.array([[START, *found.tokens[:-1]]], "int32")
            read = np.asarray(network.attention(source, target)[-1].weights)[0, 0].sum(
                0
            )  # [S]
            expected = found.log_prob + 2.0 * np.log(np.minimum(read, 1)).sum()
            assert found.score == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("variant", "width", "words"),
    [
        (
            "plain",
            4,
            "weighs what the pointer has read .* has no pointer; leave it at 0",
        ),
        ("pointer", 1, "needs a --beam_width of at le"),
    ],
)
def test_a_coverage_penalty_that_nobody_can_weigh_is_refused(variant, width, words):
    with pytest.raises(UsageError, match=words):
        Searcher(
            network_of(variant),
            config=SearchConfig(coverage_penalty=0.2, beam_width=width),
            special=SPECIAL,
        )
