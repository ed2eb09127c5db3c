"""Random walks: what a search might do with a network, step by step, and the
teacher-forced logits of the same tokens.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from precis.model.cache import grow, reorder_beams
from support.small_network import PAD, VOCABULARY

# Three documents, all of different length.
SOURCE = np.array(
    [[7, 8, 7, 0, PAD, PAD], [3, 12, 5, 8, 8, 9], [10, PAD, PAD, PAD, PAD, PAD]],
    "int32",
)
STEPS = 9
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

    def rows(self, rows: Any) -> "Walk":
        return Walk(*(part[rows] for part in self))


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


def walk_steps(
    network: Any, source: np.ndarray, walk: Walk, rooms: Sequence[int] = ROOMS
) -> np.ndarray:
    """Log-probabilities [B, K, T, V] of all steps. The cache grows at each of `rooms`
    and has room up to the next.
    """
    steps, step_logits = walk.tokens.shape[2], []
    cache = network.start(network.encode(source), walk.tokens.shape[1], rooms[0])
    for index in range(steps):
        if index in rooms:
            cache = grow(
                cache, written=index, more=rooms[rooms.index(index) + 1] - index
            )
        logits, cache = network.step(
            ops.convert_to_tensor(walk.tokens[:, :, index]),
            cache,
            ops.convert_to_tensor(index, "int32"),
        )
        assert keras.backend.standardize_dtype(logits.dtype) == "float32"
        step_logits.append(np.asarray(logits))
        cache = reorder_beams(cache, walk.parents[:, :, index])
    return normalised(np.stack(step_logits, axis=2))


def compiled_walk(
    network: Any, *, beams: int, rooms: Sequence[int] = ROOMS
) -> Callable[..., Any]:
    """A function of source, tokens and parents that takes all steps in one graph, with
    a loop for each room.
    """
    size = network.target_embedding.vocabulary_size

    def walk_all(source: Any, tokens: Any, parents: Any) -> Any:
        def advance(index: Any, logits: Any, cache: Any) -> tuple[Any, ...]:
            step_logits, cache = network.step(
                tf.gather(tokens, index, axis=2), cache, index
            )
            return (
                index + 1,
                logits.write(index, step_logits),
                reorder_beams(cache, tf.gather(parents, index, axis=2)),
            )

        cache = network.start(network.encode(source), beams, rooms[0])
        state = (
            tf.constant(0),
            tf.TensorArray(tf.float32, STEPS, element_shape=[None, beams, size]),
            cache,
        )
        for begin, end in zip((0, *rooms), rooms, strict=False):
            index, logits, cache = state
            cache = grow(cache, written=begin, more=end - begin) if begin else cache
            state = ops.while_loop(
                lambda index, *_, end=end: index < end, advance, (index, logits, cache)
            )
        return tf.nn.log_softmax(tf.transpose(state[1].stack(), [1, 2, 0, 3]))

    signature = [
        tf.TensorSpec([None, None], tf.int32),
        *[tf.TensorSpec([None, beams, STEPS], tf.int32)] * 2,
    ]
    return tf.function(walk_all, input_signature=signature, autograph=False)


def normalised(logits: Any) -> np.ndarray:
    """Log-probabilities of logits, which are unnormalised."""
    return np.asarray(ops.log_softmax(logits, axis=-1))


def teacher_forced(network: Any, source: np.ndarray, walk: Walk) -> np.ndarray:
    """The same [B, K, T, V] from the teacher-forced call, with a row per history."""
    documents, beams, steps = walk.tokens.shape
    logits = np.asarray(
        network(
            np.repeat(source, beams * steps, axis=0), walk.histories.reshape(-1, steps)
        )
    )
    logits = logits.reshape(documents, beams, steps, steps, -1)
    return normalised(
        np.stack([logits[:, :, step, step] for step in range(steps)], axis=2)
    )


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
