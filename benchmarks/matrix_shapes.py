"""The rate of each matrix product in the search of one batch, beside a large product.

    python benchmarks/matrix_shapes.py

A batch of 16 documents of 400 tokens, 100 tokens of summary and 4 hypotheses, with the
network S of `decode.py` (4 + 4 layers of width 256, 8 heads, 16,000 pieces), in float32
on one core. Times are of the processor, the best of 15, with the matrices in a loop of
a graph. The last lines are the products whose matrices are thin.
"""

import os
import time
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import tensorflow as tf

LEFT = 8  # left matrices in turn, so that a product is not of the same memory
HYPOTHESES, SOURCES, STEPS, LAYERS = 64, 6400, 100, 4

# Name, left shape, right shape, and how often a batch computes it.
PRODUCTS = [
    ("large", (2048, 2048), (2048, 2048), 0),
    ("logits", (HYPOTHESES, 256), (256, 16000), STEPS),
    ("queries, keys, values", (HYPOTHESES, 256), (256, 768), STEPS * LAYERS),
    ("other projections", (HYPOTHESES, 256), (256, 256), 3 * STEPS * LAYERS),
    ("feed-forward in", (HYPOTHESES, 256), (256, 1024), STEPS * LAYERS),
    ("feed-forward out", (HYPOTHESES, 1024), (1024, 256), STEPS * LAYERS),
    ("encoder: queries, keys, values", (SOURCES, 256), (256, 768), LAYERS),
    ("encoder: other projection", (SOURCES, 256), (256, 256), LAYERS),
    ("encoder: feed-forward in", (SOURCES, 256), (256, 1024), LAYERS),
    ("encoder: feed-forward out", (SOURCES, 1024), (1024, 256), LAYERS),
    ("keys and values of the source", (SOURCES, 256), (256, 512), LAYERS),
    ("encoder: scores", (128, 400, 32), (128, 32, 400), LAYERS),
    ("encoder: values", (128, 400, 400), (128, 400, 32), LAYERS),
    ("source: scores", (128, 4, 32), (128, 32, 400), STEPS * LAYERS),
    ("source: values", (128, 4, 400), (128, 400, 32), STEPS * LAYERS),
    ("summary: scores", (128, 4, 32), (128, 32, 128), STEPS * LAYERS),
    ("summary: values", (128, 4, 128), (128, 128, 32), STEPS * LAYERS),
]


def main() -> None:
    """Prints a line for each product."""
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    print(f"{'product':32}{'GFLOP/s':>9}{'ms a batch':>12}")
    for name, left, right, count in PRODUCTS:
        seconds = seconds_of(left, right)
        operations = 2 * right[-1]
        for size in left:
            operations *= size
        rate = operations / seconds / 1e9
        print(f"{name:32}{rate:9.0f}{1e3 * seconds * count:12.0f}", flush=True)


def seconds_of(left: tuple[int, ...], right: tuple[int, ...]) -> float:
    """The seconds of the processor that one product takes."""
    lefts = [tf.random.normal(left) for _ in range(LEFT)]
    weights = tf.random.normal(right)
    rounds = tf.constant(max(1, 400_000 // tf.size(lefts[0]).numpy()))

    @tf.function(autograph=False)
    def products() -> tf.Tensor:
        def step(number: tf.Tensor, total: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            for matrix in lefts:
                total += tf.reshape(tf.matmul(matrix, weights), [-1])[0]
            return number + 1, total

        return tf.while_loop(lambda number, _: number < rounds, step, (0, 0.0))[1]

    products()
    return min(timed(products) for _ in range(15)) / LEFT / int(rounds)


def timed(call: Callable[[], object]) -> float:
    """The seconds of the processor that a call takes."""
    start = time.process_time()
    call()
    return time.process_time() - start


if __name__ == "__main__":
    main()
