"""Operations with gradients written by hand: those of automatic differentiation, in
fewer passes over memory.
"""

from typing import Any

import keras
from keras import ops


def attend(
    query: Any, key: Any, value: Any, bias: Any, scale: float = 1.0
) -> tuple[Any, Any]:
    """Dot-product attention: softmax(scale Q K^T + bias) V (Vaswani et al. 2017,
    equation 1).

    Args:
      query: [B, H, T, D/H].
      key, value: [B, H, S, D/H].
      bias: float32, broadcast to [B, H, T, S]; MASKED where nothing may be read.
      scale: of the scores.

    Returns:
      The mixed values [B, H, T, D/H], and the weights float32 [B, H, T, S], through
      which no gradient flows.
    """

    if bias.shape[:2] == (
        1,
        1,
    ):  # the fused operation below is slow where documents share a bias
        bias = ops.broadcast_to(bias, (ops.shape(query)[0], *ops.shape(bias)[1:]))

    @ops.custom_gradient
    def read(query: Any, key: Any, value: Any, bias: Any) -> tuple[Any, Any]:
        # In this order TensorFlow's graph optimizer makes one operation of the product,
        # the scale and the bias.
        scores = (
            ops.cast(ops.matmul(query, ops.swapaxes(key, -1, -2)) * scale, "float32")
            + bias
        )
        weights = ops.softmax(scores, axis=-1)
        mixed = ops.matmul(ops.cast(weights, value.dtype), value)

        def gradient(*upstream: Any) -> tuple[Any, Any, Any, Any]:
            of_mixed, _ = keras.tree.flatten(
                upstream
            )  # two arguments, or on JAX one of two parts
            # What the gradient of a softmax subtracts, the sum over S of weights *
            # gradient, is also the sum over D/H of mixed * gradient (Dao et al. 2022,
            # appendix B.2), a shorter row.
            shift = ops.sum(
                ops.cast(mixed, "float32") * ops.cast(of_mixed, "float32"),
                axis=-1,
                keepdims=True,
            )
            of_scores = weights * (
                ops.cast(ops.matmul(of_mixed, ops.swapaxes(value, -1, -2)), "float32")
                - shift
            )
            of_bias = ops.sum(
                of_scores,
                axis=tuple(axis for axis, size in enumerate(bias.shape) if size == 1),
                keepdims=True,
            )
            of_scores = ops.cast(of_scores, query.dtype)
            # The narrow factor stands first and is turned: products that turn [T, S]
            # are slower.
            of_key = ops.swapaxes(
                ops.matmul(ops.swapaxes(query * scale, -1, -2), of_scores), -1, -2
            )
            of_value = ops.swapaxes(
                ops.matmul(
                    ops.swapaxes(of_mixed, -1, -2), ops.cast(weights, value.dtype)
                ),
                -1,
                -2,
            )
            return ops.matmul(of_scores, key) * scale, of_key, of_value, of_bias

        return (mixed, weights), gradient

    return read(query, key, value, bias)


def layer_norm(states: Any, gamma: Any, beta: Any, epsilon: float) -> Any:
    """LayerNorm (Ba et al. 2016) over the last axis: states float32 [..., D], gamma and
    beta [D].
    """
    width = states.shape[-1]

    @ops.custom_gradient
    def norm(states: Any, gamma: Any, beta: Any) -> tuple[Any, Any]:
        centred = states - ops.mean(states, axis=-1, keepdims=True)
        scale = ops.rsqrt(
            ops.mean(ops.square(centred), axis=-1, keepdims=True) + epsilon
        )
        normed = centred * scale

        def gradient(upstream: Any) -> tuple[Any, Any, Any]:
            rows, products = (
                ops.reshape(upstream, (-1, width)),
                ops.reshape(upstream * normed, (-1, width)),
            )
            # Sums as products with a vector, which need no pass that writes.
            ones = ops.ones((1, ops.shape(rows)[0]))
            mean, slope = (
                ops.reshape(ops.matmul(part, gamma[:, None] / width), ops.shape(scale))
                for part in (rows, products)
            )
            of_states = scale * (upstream * gamma - mean - normed * slope)
            return of_states, ops.matmul(ones, products)[0], ops.matmul(ones, rows)[0]

        return normed * gamma + beta, gradient

    return norm(
        states, ops.reshape(gamma, (width,)), ops.reshape(beta, (width,))
    )  # as tensors: variables are not taken
