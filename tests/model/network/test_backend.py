"""Buffers that a loop writes in place."""

import tensorflow as tf

from precis.model.backend import allocate_buffer, write_rows


def test_buffers_of_one_shape_are_not_shared():
    """If buffers were constants that a graph shares, a write in place would show in the
    other buffers and in the next call.
    """

    def write_two_of_three(size, row):
        first, second, third = (allocate_buffer((size, 2), "float32") for _ in range(3))
        return (
            write_rows(first, row, tf.ones((1, 2))),
            write_rows(second, row + 1, tf.fill((1, 2), 5.0)),
            third,
        )

    for write in (write_two_of_three, tf.function(write_two_of_three, autograph=False)):
        for size in (3, tf.constant(3)):
            for row, expected in (
                (0, [[1, 0, 0], [0, 5, 0], [0, 0, 0]]),
                (1, [[0, 1, 0], [0, 0, 5], [0, 0, 0]]),
            ):
                assert [
                    part.numpy()[:, 0].tolist()
                    for part in write(size, tf.constant([row]))
                ] == expected
