"""The operations of TensorFlow that `keras.ops` does not have. Layers and search use
only `keras.ops` and this file.

A decoding loop writes rows of a buffer in place, as `tensor_scatter_nd_update` would
copy the whole buffer at each step. After a write, only the result of `write_rows` may
be used.
"""

from typing import Any, TypeAlias

import keras
import tensorflow as tf

# Any: docstrings say dtype and shape, and a type checker would infer wrong types from
# the untyped code of Keras.
Tensor: TypeAlias = Any
ops: Any = keras.ops
tree: Any = keras.tree


def with_unknown_size(tensor: Any, axis: int = 0) -> Any:
    """The same tensor with one axis of unknown size in a graph; scalars are unchanged.

    A loop needs this for tensors whose size it changes.
    """
    if not tensor.shape or tf.executing_eagerly():
        return tensor
    shape = [None if place == axis else size for place, size in enumerate(tensor.shape)]
    return tf.raw_ops.PlaceholderWithDefault(input=tensor, shape=shape)


def allocate_buffer(shape: tuple[Any, ...], dtype: Any) -> Any:
    """Allocates a buffer of zeros, which is never a shared constant of a graph."""
    return tf.raw_ops.Empty(shape=shape, dtype=tf.as_dtype(dtype), init=True)


def gather_beams(values: Any, order: Any) -> Any:
    """Takes values [R, N, ...] at order int32 [R, M] -> [R, M, ...]."""
    return tf.gather(values, order, batch_dims=1)


def write_rows(buffer: Any, rows: Any, values: Any) -> Any:
    """Replaces rows int32 [M] of a buffer [N, ...] by values [M, ...], in place.

    XLA does not have the in-place operation, but finds out by itself that nothing else
    reads the buffer.
    """
    if tf.__internal__.get_enclosing_xla_context() is not None:
        return tf.tensor_scatter_nd_update(buffer, rows[:, None], values)
    return tf.raw_ops.InplaceUpdate(x=buffer, i=rows, v=values)


def after(tensor: Any, other: Any) -> Any:
    """The same tensor, available only after another tensor is computed.

    Before a tensor is overwritten in place, all values read from it must be computed.
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
    """The factors of dropout, float32: 0 for a random share `rate` of the values,
    1 / (1 - rate) for the others.

    Each value is decided by 16 random bits, which is faster than a random float32. The
    rate is rounded to a multiple of 1/65536.
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
