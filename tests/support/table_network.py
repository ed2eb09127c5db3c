"""A network that is a table of random numbers, and the comparison of what a search
finds over it with the plain search.

The logits of a document depend on the step, the last token and a fingerprint of all
tokens so far. The fingerprint is read from the KV cache, where the tokens are the keys:
a cache that follows the wrong hypothesis, belongs to another document or has no room
gives other logits.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from precis.model.cache import Cache, open_slots, start_kv_cache
from precis.model.search.beam import beam_search
from precis.model.search.config import (
    EARLY_STOPPING,
    LENGTH_PENALTIES,
    SearchConfig,
    SpecialTokens,
)
from precis.model.search.copy_constraint import FactSource
from support import plain_search

PRINTS = 7
WEIGHTS = (1, 3, 2, 6, 4, 5)  # of the places in the fingerprint
# float64 numpy or float32 tensors: [B, T, V, V] by step and last token, [B, 7, V] by
# fingerprint.
Tables = tuple[Any, Any]

# Special tokens as networks have them: start is padding, all differ, start is the end,
# padding is the end.
SCHEMES = tuple(
    SpecialTokens(start_id=start, end_id=end, pad_id=pad, suppressed=suppressed)
    for start, end, pad, suppressed in (
        (0, 1, 0, (0,)),
        (2, 1, 0, ()),
        (2, 2, 1, (1,)),
        (0, 2, 2, ()),
    )
)


class Slots(NamedTuple):
    """The self-attention whose keys are the written tokens, as `start_kv_cache` reads
    it.
    """

    kv_heads: int = 1
    head_width: int = 1
    compute_dtype: str = "float32"


class TableNetwork:
    """A network as a search knows it; its memory is `Tables`.

    Attributes:
      calls: the index of each step, where steps run eagerly.
      documents: B of each of these steps.
      rooms: each time these steps find new room: the steps so far and the steps that
          there is room for.
    """

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.documents: list[int] = []
        self.rooms: list[tuple[int, int]] = []

    def start(self, memory: Tables, beams: int, length: int) -> Cache:
        batch = ops.shape(memory[0])[0]
        mask, kv_cache = start_kv_cache(
            [Slots()], batch=batch, beams=beams, length=length
        )
        return Cache(
            per_beam={"attention_mask": mask},
            per_document={"kv_cache": kv_cache, "tables": memory},
            shared={},
        )

    def step(self, tokens: Any, cache: Cache, index: Any) -> tuple[Any, Cache]:
        batch, beams = ops.shape(tokens)
        kv_cache = cache.per_document["kv_cache"]
        if not tf.is_symbolic_tensor(index):
            self._note_step(int(index), batch, int(kv_cache.positions[0, -1]) + 1)
        mask, rows = open_slots(cache.per_beam["attention_mask"], kv_cache, index)
        numbers = ops.cast(tokens + 1, "float32")
        keys = ops.scatter_update(kv_cache.self_keys[0], rows[:, None], numbers)
        written = ops.reshape(keys, (batch, 1, -1))  # [B, 1, M]
        weights = ops.take(
            ops.convert_to_tensor(WEIGHTS, "float32"), kv_cache.positions % len(WEIGHTS)
        )
        weighted = ops.where(mask, written * weights[:, None], 0.0)
        print_ = ops.cast(ops.sum(weighted, axis=2), "int32") % PRINTS  # [B, K]

        table, prints = cache.per_document["tables"]
        logits = ops.take_along_axis(
            ops.take(table, index, axis=1), tokens[..., None], axis=1
        ) + ops.take_along_axis(prints, print_[..., None], axis=1)
        kv_cache = kv_cache._replace(self_keys=(keys,))
        return logits, cache._replace(
            per_beam={"attention_mask": mask},
            per_document={**cache.per_document, "kv_cache": kv_cache},
        )

    def _note_step(self, index: int, documents: int, end: int) -> None:
        self.calls.append(index)
        self.documents.append(documents)
        if not self.rooms or end != sum(self.rooms[-1]):
            self.rooms.append((index, end - index))


def fingerprint(tokens: plain_search.Tokens) -> int:
    total = 0
    for place, token in enumerate(tokens):
        total += (token + 1) * WEIGHTS[place % len(WEIGHTS)]
    return total % PRINTS


def plain_logits(tables: Tables, document: int, start_id: int) -> plain_search.Logits:
    table, prints = (part[document].tolist() for part in tables)

    def logits_after(tokens: plain_search.Tokens) -> list[float]:
        history = (start_id, *tokens)
        return [
            a + b
            for a, b in zip(
                table[len(tokens)][history[-1]],
                prints[fingerprint(history)],
                strict=True,
            )
        ]

    return logits_after


def random_tables(
    documents: int, length: int, size: int, *, seed: int, scale: float = 1.5
) -> Tables:
    rng = np.random.default_rng(seed)
    shapes = (documents, length, size, size), (documents, PRINTS, size)
    return rng.normal(0, scale, shapes[0]).astype("float32"), rng.normal(
        0, 1, shapes[1]
    ).astype("float32")


def ending_tables(documents, length, size, *, seed):
    """Tables where documents are decided at different steps."""
    table, prints = random_tables(documents, length, size, seed=seed, scale=3.0)
    table[:, :, :, 1] += np.linspace(-4, 6, documents, dtype="float32")[:, None, None]
    return table, prints


def whole_tables(documents: int, length: int, size: int, *, seed: int) -> Tables:
    """Tables whose log-probabilities are whole numbers, exactly, so that sums that
    ought to be equal are: of one more token than `size`.

    The last token takes all the probability there is, to the last digit, and must be
    suppressed.
    """
    rng = np.random.default_rng(seed)
    table, prints = (
        np.zeros((documents, length, size + 1, size + 1), "float32"),
        np.zeros((documents, PRINTS, size + 1), "float32"),
    )
    table[..., :size] = rng.integers(-42, -39, (documents, length, size + 1, size))
    prints[..., :size] = rng.integers(-1, 1, (documents, PRINTS, size))
    return table, prints


def random_options(
    case: int, *, whole: bool = False
) -> tuple[SearchConfig, SpecialTokens, int]:
    """A configuration, special tokens and the size of the vocabulary; half of the
    options are off in each.

    With `whole`, all the numbers are such that sums and products of whole
    log-probabilities stay exact in float32.
    """
    rng = np.random.default_rng(case)

    def draw(values: Sequence[Any], off: Any) -> Any:
        return values[rng.integers(len(values))] if rng.random() < 0.5 else off

    size, length = int(rng.integers(3, 6)), int(rng.integers(1, 6))
    beams = (1, 2, 3, 4, 2, 4, 6, 3)[case % 8]
    form = LENGTH_PENALTIES[rng.integers(3)]
    config = SearchConfig(
        beam_width=beams,
        max_summary_tokens=length,
        min_summary_tokens=min(draw((1, 2, 3), 0), length - 1),
        length_penalty_form=form,
        length_penalty=(1.0 if form == "average" else 0.0)
        if whole
        else draw((0.6, 2.0, -0.5, 0.0), 1.0),
        no_repeat_ngram=draw((1, 2, 2, 3), 0),
        repetition_penalty=draw((0.5, 1.5, 2.0), 1.0),
        early_stopping=EARLY_STOPPING[rng.integers(3)],
        unfinished=draw(("compete",), "last"),
    )
    special = SCHEMES[rng.integers(len(SCHEMES))]
    special = dataclasses.replace(
        special,
        suppressed=tuple(
            {*special.suppressed, *draw(((size - 1,), (size - 1, size - 2)), ())}
        ),
        prefix=draw(((2,), (size - 1, 0), (size - 1, size - 1)), ()),
        last_id=draw((special.end_id, special.end_id, size - 1), None),
    )
    config = dataclasses.replace(
        config, repetition_penalty_form=draw(("logits",), "log_probs")
    )
    if whole:  # the token that takes all the probability
        special = dataclasses.replace(special, suppressed=(*special.suppressed, size))
    return config, special, size


def search(
    tables: Tables,
    config: SearchConfig,
    special: SpecialTokens,
    *,
    network: TableNetwork | None = None,
    fact_source: FactSource | None = None,
    longest: Any = None,
) -> Any:
    """Beam search over tables, as numpy arrays or, within a graph, tensors."""
    memory = tuple(ops.convert_to_tensor(part) for part in tables)
    return beam_search(
        network or TableNetwork(),
        memory,
        batch=ops.shape(memory[0])[0],
        config=config,
        special=special,
        fact_source=fact_source,
        longest=longest,
    )


def compiled_search(
    tables: Tables, config: SearchConfig, special: SpecialTokens, **options: Any
) -> Any:
    """The same in one graph."""
    compiled = tf.function(
        lambda *memory: search(memory, config, special, **options), autograph=False
    )
    return compiled(*(tf.constant(part) for part in tables))


def plain_search_of(
    tables: Tables,
    document: int,
    config: SearchConfig,
    special: SpecialTokens,
    **options: Any,
) -> plain_search.SearchResult:
    logits = plain_logits(tables, document, special.start_id)
    return plain_search.beam_search(logits, config=config, special=special, **options)


def check(
    results: Any,
    expected: list[plain_search.SearchResult],
    document: int,
    special: SpecialTokens,
    tolerance: float = 1e-4,
) -> None:
    """Row `document` of found hypotheses equals a list; places beyond the list hold
    nothing that can be written.
    """
    tokens, scores, log_probs, least, finished = (
        np.asarray(part)[document] for part in results
    )
    length = tokens.shape[1]
    assert len(expected) <= len(tokens)
    for place, hypothesis in enumerate(expected):
        padding = [special.pad_id] * (length - len(hypothesis.tokens))
        assert tokens[place].tolist() == [*hypothesis.tokens, *padding], (
            f"document {document}, place {place}"
        )
        assert scores[place] == pytest.approx(hypothesis.score, abs=tolerance)
        assert log_probs[place] == pytest.approx(hypothesis.log_prob, abs=tolerance)
        assert least[place] == pytest.approx(hypothesis.min_log_prob, abs=tolerance)
        assert bool(finished[place]) == hypothesis.finished
    assert (log_probs[len(expected) :] < -5e8).all()
    assert not finished[len(expected) :].any()
