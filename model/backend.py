"""What TensorFlow needs said in its own words, so that layers and search can speak
`keras.ops`: the one file that knows the backend.

A decoding loop writes into buffers row by row, without a copy of what is there already.
On TensorFlow a write changes the buffer itself, so a buffer that was written to must
not be read again; the one that `write_rows` gives back is the one to go on with.
`tensor_scatter_nd_update` would copy all of it at each step.
"""

from typing import Any

import keras
from keras import ops


def has_static_shapes() -> bool:
    """Whether shapes must be known when a search is compiled."""
    return keras.backend.backend() != "tensorflow"


def with_unknown_size(tensor: Any, axis: int = 0) -> Any:
    """The same tensor, an axis of which is not known before it runs: for what a loop
    makes larger or smaller.
    """
    if has_static_shapes() or not tensor.shape:
        return tensor
    import tensorflow as tf

    shape = [None if place == axis else size for place, size in enumerate(tensor.shape)]
    return (
        tensor
        if tf.executing_eagerly()
        else tf.raw_ops.PlaceholderWithDefault(input=tensor, shape=shape)
    )


def allocate_buffer(shape: tuple[Any, ...], dtype: Any) -> Any:
    """A buffer of zeros of its own: never a constant that others share."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.raw_ops.Empty(shape=shape, dtype=tf.as_dtype(dtype), init=True)
    return ops.zeros(shape, dtype)


def write_rows(buffer: Any, rows: Any, values: Any) -> Any:
    """The buffer [N, ...] with the given rows, int32 [M], replaced by values [M, ...]."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.raw_ops.InplaceUpdate(x=buffer, i=rows, v=values)
    return ops.scatter_update(buffer, rows[:, None], values)


def add_bias(rows: Any, bias: Any) -> Any:
    """Rows [N, O] plus a bias [O]; in this form TensorFlow's graph optimizer fuses
    product, bias and activation.
    """
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.nn.bias_add(rows, ops.convert_to_tensor(bias))
    return rows + bias


def keep_mask(
    shape: tuple[Any, ...], rate: float, seeds: keras.random.SeedGenerator
) -> Any:
    """What dropout multiplies with, float32: 0 for a share `rate` of the values at
    random, 1 / (1 - rate) for the others.

    On TensorFlow, 16 random bits decide about each value, a quarter of the work of a
    random float32 for each; the rate is rounded to 1/65536.
    """
    if keras.backend.backend() != "tensorflow":
        return ops.cast(
            keras.random.bernoulli(shape, 1.0 - rate, seed=seeds), "float32"
        ) / (1.0 - rate)
    import tensorflow as tf

    size, dropped = tf.reduce_prod(shape), min(round(rate * 65536), 65535)
    bits = tf.random.stateless_uniform(
        [(size + 3) // 4],
        tf.cast(seeds.next(), "int32"),
        minval=None,
        maxval=None,
        dtype="uint64",
    )
    bits = tf.reshape(tf.reshape(tf.bitcast(bits, "uint16"), [-1])[:size], shape)
    return tf.cast(bits >= tf.constant(dropped, "uint16"), "float32") * (
        65536 / (65536 - dropped)
    )
