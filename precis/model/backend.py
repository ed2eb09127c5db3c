"""The operations of TensorFlow that `keras.ops` does not have. Layers and search use
`keras.ops` and this file.

A decoding loop writes into buffers row by row, without copying the other rows. A write
changes the buffer itself, so only the result of `write_rows` may be used afterwards.
`tensor_scatter_nd_update` would copy the whole buffer at each step.
"""

from typing import Any, TypeAlias

import keras
import tensorflow as tf

# Operations, and what they take and return, of which docstrings say dtype and shape. A
# type checker would guess wrong types from the code of Keras, which states none.
Tensor: TypeAlias = Any
ops: Any = keras.ops
tree: Any = keras.tree


def with_unknown_size(tensor: Any, axis: int = 0) -> Any:
    """The same tensor with one axis of unknown size in a graph.

    A loop needs this for tensors that it makes larger or smaller. A scalar is returned
    as it is.
    """
    if not tensor.shape or tf.executing_eagerly():
        return tensor
    shape = [None if place == axis else size for place, size in enumerate(tensor.shape)]
    return tf.raw_ops.PlaceholderWithDefault(input=tensor, shape=shape)


def allocate_buffer(shape: tuple[Any, ...], dtype: Any) -> Any:
    """Allocates a buffer of zeros; never a constant that a graph shares."""
    return tf.raw_ops.Empty(shape=shape, dtype=tf.as_dtype(dtype), init=True)


def gather_beams(values: Any, order: Any) -> Any:
    """Takes values [R, N, ...] at order int32 [R, M] -> [R, M, ...]."""
    return tf.gather(values, order, batch_dims=1)


def write_rows(buffer: Any, rows: Any, values: Any) -> Any:
    """Replaces rows int32 [M] of a buffer [N, ...] by values [M, ...], in place.

    XLA does not have that operation. Where it compiles, it finds out by itself that
    nothing else reads the buffer.
    """
    if tf.__internal__.get_enclosing_xla_context() is not None:
        return tf.tensor_scatter_nd_update(buffer, rows[:, None], values)
    return tf.raw_ops.InplaceUpdate(x=buffer, i=rows, v=values)


def after(tensor: Any, other: Any) -> Any:
    """The same tensor, once another is computed.

    Who writes a tensor in place takes it after the last value that is read from it.
    """
    with tf.control_dependencies([other]):
        return tf.identity(tensor)


def add_bias(rows: Any, bias: Any) -> Any:
    """Adds a bias [O] to rows [N, O].

    In this form TensorFlow's graph optimizer fuses product, bias and activation.
    """
    return tf.nn.bias_add(rows, ops.convert_to_tensor(bias))


def keep_mask(
    shape: tuple[Any, ...], rate: float, seeds: keras.random.SeedGenerator
) -> Any:
    """The factors of dropout, float32: 0 for a share `rate` of the values at random,
    1 / (1 - rate) for the others.

    16 random bits decide about each value, a quarter of the work of a random float32.
    The rate is rounded to 1/65536.
    """
    size = tf.reduce_prod(shape)
    dropped = min(round(rate * 65536), 65535)
    bits = tf.random.stateless_uniform(
        [(size + 3) // 4],  # pyright: ignore[reportArgumentType]  # A tensor may be a size.
        tf.cast(seeds.next(), "int32"),
        minval=None,  # pyright: ignore[reportArgumentType]  # None is for all integers.
        maxval=None,
        dtype="uint64",
    )
    bits = tf.reshape(tf.reshape(tf.bitcast(bits, "uint16"), [-1])[:size], shape)
    return tf.cast(bits >= tf.constant(dropped, "uint16"), "float32") * (
        65536 / (65536 - dropped)
    )
