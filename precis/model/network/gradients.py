"""The attention formula, and attention and layer norm with hand-written gradients. They
equal automatic differentiation but need fewer passes over memory.
"""

from collections.abc import Sequence
from typing import Any

from precis.model.backend import Tensor, ops


def mix_values(
    query: Tensor, parts: Sequence[tuple[Tensor, Tensor, Tensor]], scale: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Dot-product attention: softmax(scale Q K^T + bias) V (Vaswani et al. 2017,
    equation 1), with one softmax over all parts.

    Args:
      query: [B, H, T, D/H].
      parts: transposed keys [B, H, D/H, S], values [B, H, S, D/H], and the bias,
          float32, broadcast to [B, H, T, S]; MASKED where nothing may be read.
      scale: the factor of the scores.

    Returns:
      The mixed values [B, H, T, D/H], and the weights float32 [B, H, T, S].
    """
    scores = []
    for keys, _, bias in parts:
        # In this order TensorFlow's graph optimizer fuses the product, the scale and
        # the bias.
        products = ops.matmul(query, keys)
        if scale != 1.0:
            products = products * scale
        scores.append(ops.cast(products, "float32") + bias)
    joined = scores[0] if len(parts) == 1 else ops.concatenate(scores, axis=-1)
    weights = ops.softmax(joined, axis=-1)
    shares, first, mixed = ops.cast(weights, parts[0][1].dtype), 0, 0
    if len(parts) == 1:
        return ops.matmul(shares, parts[0][1]), weights
    for score, (_, values, _) in zip(scores, parts, strict=True):
        end = first + ops.shape(score)[3]
        mixed = mixed + ops.matmul(shares[..., first:end], values)
        first = end
    return mixed, weights


def attend(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor, scale: float = 1.0
) -> tuple[Tensor, Tensor]:
    """`mix_values` of one part, with a hand-written gradient.

    Args:
      query: [B, H, T, D/H].
      key, value: [B, H, S, D/H].
      bias: float32, broadcast to [B, H, T, S]; MASKED where nothing may be read.
      scale: the factor of the scores.

    Returns:
      The mixed values [B, H, T, D/H], and the weights float32 [B, H, T, S], through
      which no gradient flows.
    """
    if bias.shape[:2] == (1, 1):
        # The fused operation below is slow where documents share a bias.
        bias = ops.broadcast_to(bias, (ops.shape(query)[0], *ops.shape(bias)[1:]))

    @ops.custom_gradient
    def mix(query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> tuple[Any, Any]:
        part = (ops.swapaxes(key, -1, -2), value, bias)
        mixed, weights = mix_values(query, [part], scale)

        def gradient(of_mixed: Tensor, _: Tensor) -> tuple[Tensor, ...]:
            """The gradients of query, key, value and bias, given the one of `mixed`."""
            # The gradient of a softmax subtracts the sum over S of weights * gradient.
            # This equals the sum over D/H of mixed * gradient (Dao et al. 2022,
            # appendix B.2), which is shorter.
            products = ops.cast(mixed, "float32") * ops.cast(of_mixed, "float32")
            shift = ops.sum(products, axis=-1, keepdims=True)
            of_weights = ops.matmul(of_mixed, ops.swapaxes(value, -1, -2))
            of_scores = weights * (ops.cast(of_weights, "float32") - shift)
            shared = tuple(axis for axis, size in enumerate(bias.shape) if size == 1)
            of_bias = ops.sum(of_scores, axis=shared, keepdims=True)
            of_scores = ops.cast(of_scores, query.dtype)  # [B, H, T, S]
            # The narrow factor comes first and is transposed, as transposing [T, S] is
            # slower.
            of_key = ops.matmul(ops.swapaxes(query * scale, -1, -2), of_scores)
            shares = ops.cast(weights, value.dtype)
            of_value = ops.matmul(ops.swapaxes(of_mixed, -1, -2), shares)
            return (
                ops.matmul(of_scores, key) * scale,
                ops.swapaxes(of_key, -1, -2),
                ops.swapaxes(of_value, -1, -2),
                of_bias,
            )

        return (mixed, weights), gradient

    return mix(query, key, value, bias)


def layer_norm(states: Tensor, gamma: Tensor, beta: Tensor, epsilon: float) -> Tensor:
    """LayerNorm (Ba et al. 2016) over the last axis.

    Args:
      states: float32 [..., D].
      gamma, beta: float32 [D].
      epsilon: added to the variance.

    Returns:
      float32 [..., D].
    """
    width = states.shape[-1]

    @ops.custom_gradient
    def norm(states: Tensor, gamma: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
        centred = states - ops.mean(states, axis=-1, keepdims=True)
        variance = ops.mean(ops.square(centred), axis=-1, keepdims=True)
        scale = ops.rsqrt(variance + epsilon)
        normed = centred * scale

        def gradient(upstream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            rows = ops.reshape(upstream, (-1, width))
            products = ops.reshape(upstream * normed, (-1, width))
            # Sums as products with a vector, as these write no temporary array.
            ones = ops.ones((1, ops.shape(rows)[0]))
            averages = gamma[:, None] / width  # [D, 1]
            mean = ops.reshape(ops.matmul(rows, averages), ops.shape(scale))
            slope = ops.reshape(ops.matmul(products, averages), ops.shape(scale))
            of_states = scale * (upstream * gamma - mean - normed * slope)
            of_gamma = ops.matmul(ones, products)[0]
            of_beta = ops.matmul(ones, rows)[0]
            return of_states, of_gamma, of_beta

        return normed * gamma + beta, gradient

    # Reshaped to tensors, because `custom_gradient` takes no variables.
    return norm(states, ops.reshape(gamma, (width,)), ops.reshape(beta, (width,)))
