"""Random walks: what a search might do with a network, step by step, and the
teacher-forced logits of the same tokens.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from precis.model.cache import Cache, grow, reorder_beams, select_documents
from precis.model.network.config import SOURCE_PADDING
from support.small_network import VOCABULARY

_ = SOURCE_PADDING
# Three documents, all of different length.
SOURCE = np.array(
    [[7, 8, 7, 0, _, _], [3, 12, 5, 8, 8, 9], [10, _, _, _, _, _]], "int32"
)
STEPS = 7
ROOMS = (2, 5, STEPS)


class Walk(NamedTuple):
    """The tokens that a search might write, and how it might reorder hypotheses.

    Attributes:
      tokens: int32 [B, K, T].
      parents: int32 [B, K, T], the hypothesis that each hypothesis continues after
          step t.
      histories: int32 [B, K, T, T], the tokens of each hypothesis up to step t, then 0.
    """

    tokens: np.ndarray
    parents: np.ndarray
    histories: np.ndarray


def random_walk(beams: int, *, seed: int = 0, steps: int = STEPS) -> Walk:
    documents = len(SOURCE)
    rng = np.random.default_rng([beams, seed])
    tokens = rng.integers(0, VOCABULARY, (documents, beams, steps)).astype("int32")
    parents = rng.integers(0, beams, tokens.shape).astype("int32")
    histories = np.zeros((documents, beams, steps, steps), "int32")
    for document in range(documents):
        pasts: list[list[int]] = [[] for _ in range(beams)]
        for step in range(steps):
            pasts = [[*past, tokens[document, k, step]] for k, past in enumerate(pasts)]
            for k, past in enumerate(pasts):
                histories[document, k, step, : step + 1] = past
            pasts = [pasts[parent] for parent in parents[document, :, step]]
    return Walk(tokens, parents, histories)


class Taken(NamedTuple):
    """What a step left behind.

    Attributes:
      index: the number of steps before it.
      documents: those that are still there.
      logits: float32 [B, K, V].
      cache: before hypotheses are reordered.
    """

    index: int
    documents: list[int]
    logits: Any
    cache: Cache


def take_steps(
    network: Any,
    source: np.ndarray,
    walk: Walk,
    rooms: Sequence[int] = ROOMS,
    *,
    selections: Mapping[int, Sequence[int]] | None = None,
) -> Iterator[Taken]:
    """Takes the steps of a walk.

    Args:
      network: takes the steps.
      source: int32 [B, S].
      walk: its tokens and parents.
      rooms: the cache grows at each of these steps and has room up to the next.
      selections: the documents that are kept before a step.
    """
    beams, steps = walk.tokens.shape[1:]
    cache = network.start(network.encode(source), beams, rooms[0])
    documents = list(range(len(source)))
    for index in range(steps):
        if index in rooms:
            more = rooms[rooms.index(index) + 1] - index
            cache = grow(cache, written=index, more=more)
        if selections and index in selections:
            documents = list(selections[index])
            cache = select_documents(cache, ops.convert_to_tensor(documents, "int32"))
        logits, cache = network.step(
            ops.convert_to_tensor(walk.tokens[documents, :, index]),
            cache,
            ops.convert_to_tensor(index, "int32"),
        )
        assert keras.backend.standardize_dtype(logits.dtype) == "float32"
        yield Taken(index, documents, logits, cache)
        cache = reorder_beams(cache, walk.parents[documents, :, index])


def walk_steps(
    network: Any, source: np.ndarray, walk: Walk, *arguments: Any, **options: Any
) -> np.ndarray:
    """Log-probabilities [B, K, T, V] of `take_steps`; NaN where a document was
    dropped.
    """
    size = network.target_embedding.vocabulary_size
    log_probs = np.full((*walk.tokens.shape, size), np.nan, "float32")
    for step in take_steps(network, source, walk, *arguments, **options):
        log_probs[step.documents, :, step.index] = ops.log_softmax(step.logits)
    return log_probs


def teacher_forced(network: Any, source: np.ndarray, walk: Walk) -> np.ndarray:
    """The same [B, K, T, V] from the teacher-forced call, with a row per history."""
    documents, beams, steps = walk.tokens.shape
    logits = np.asarray(
        network(
            np.repeat(source, beams * steps, axis=0), walk.histories.reshape(-1, steps)
        )
    )
    logits = logits.reshape(documents, beams, steps, steps, -1)
    own = np.stack([logits[:, :, step, step] for step in range(steps)], axis=2)
    return np.array(ops.log_softmax(own, axis=-1))


def every_summary(
    start_id: int, live: Sequence[int], length: int
) -> tuple[np.ndarray, dict[tuple[int, ...], int]]:
    """All inputs of a decoder that writes `length` tokens, int32 [N, T], start token
    first; and for each beginning a row that starts with it.

    The teacher-forced call of these rows gives all logits that a search may need.
    """
    written = list(itertools.product(live, repeat=length - 1))
    rows = {
        tokens[:count]: row
        for row, tokens in enumerate(written)
        for count in range(length)
    }
    return np.array([(start_id, *tokens) for tokens in written], "int32"), rows
