"""Numbers and names that a search may only copy: the automaton against plain Python,
and the classes of pieces of real vocabularies.
"""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from support import read_table
from support.plain_facts import VOCABULARY, may_follow
from support.table_network import (
    check,
    compiled_search,
    plain_search_of,
    random_options,
    random_tables,
    search,
)

from precis.model.inference.fact_pieces import fact_pieces
from precis.model.search.config import SearchConfig, SpecialTokens
from precis.model.search.copy_constraint import SCALE, WHOLE, FactSource
from precis.model.tokenization.wordpiece import RESERVED_TOKENS, Tokenizer

DOCUMENTS, SOURCE = 8, 9
SPECIAL = SpecialTokens(start_id=2, end_id=3, pad_id=0, suppressed=(0, 1, 2))
KINDS = ("numbers", "names")


@pytest.fixture(scope="module")
def table():
    return fact_pieces(Tokenizer(VOCABULARY), SPECIAL, KINDS)


def random_sources(seed):
    """Sources of random pieces, mostly those that make units; some are padded."""
    rng = np.random.default_rng(seed)
    sources = rng.integers(4, len(VOCABULARY), (DOCUMENTS, SOURCE)).astype("int32")
    for document in range(0, DOCUMENTS, 3):
        sources[document, rng.integers(1, SOURCE) :] = -1
    return sources


def rule(source):
    """Which token may follow, over ids."""
    pieces = [VOCABULARY[token] for token in source if token >= 0]

    def allows(written, token):
        before = ["[START]", *(VOCABULARY[each] for each in written)]
        return may_follow(before, VOCABULARY[token], pieces)

    return allows


def check_all(results, tables, config, sources) -> None:
    for document, source in enumerate(sources):
        may_follow = {"may_follow": rule(source)}
        expected = plain_search_of(tables, document, config, SPECIAL, **may_follow)
        check(results, expected.hypotheses, document, SPECIAL)


@pytest.mark.parametrize(
    "case",
    [*range(4), *(pytest.param(case, marks=pytest.mark.slow) for case in range(4, 16))],
)
def test_a_search_writes_what_the_rules_allow(case, table):
    config, _, _ = random_options(case)
    config = dataclasses.replace(config, max_summary_tokens=6)
    sources = random_sources(case)
    tables = random_tables(DOCUMENTS, 6, len(VOCABULARY), seed=case)
    results = search(tables, config, SPECIAL, fact_source=FactSource(sources, table))
    check_all(results, tables, config, sources)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 3])
def test_a_graph_keeps_the_rules(width, table):
    config = SearchConfig(beam_width=width, max_summary_tokens=20, no_repeat_ngram=0)
    sources = random_sources(77)
    tables = random_tables(DOCUMENTS, 20, len(VOCABULARY), seed=77)
    fact_source = FactSource(tf.constant(sources), table)
    results = compiled_search(tables, config, SPECIAL, fact_source=fact_source)
    check_all(results, tables, config, sources)


def classes_of(pieces, kinds=KINDS):
    """The names of the classes of a vocabulary's pieces."""
    tokenizer = Tokenizer((*RESERVED_TOKENS, *pieces))
    table = fact_pieces(tokenizer, SPECIAL, kinds)
    names = ("free", "fact", "opening", "inner", "inner name", "inner number")
    found = [names[kind] for kind in table.classes[len(RESERVED_TOKENS) :]]
    return dict(zip(pieces, found, strict=True)), table


def test_the_classes_of_pieces():
    expected = read_table("words")["classes"]
    found, table = classes_of(expected)
    assert found == expected
    ids = {piece: 4 + place for place, piece in enumerate(expected)}
    whole = [piece for piece, token in ids.items() if table.marks[token] & WHOLE]
    scale = [piece for piece, token in ids.items() if table.marks[token] & SCALE]
    assert (whole, scale) == (["▁The"], ["▁million"])
    assert table.capitalised[ids["▁march"]] == ids["▁March"]
    pieces = ("▁4", "▁Monday", "▁Kerry", "▁fif", "##ty")
    of_kinds = {"numbers": {"▁4", "▁Monday", "▁fif"}, "names": {"▁Kerry"}}
    for kind, facts in of_kinds.items():
        found, _ = classes_of(pieces, [kind])
        assert {piece for piece in pieces if found[piece] == "fact"} == facts
