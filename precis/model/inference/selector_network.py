"""The selector, computed by numpy, without TensorFlow.

`precis.model.network.selector` is the same network for training.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from precis.model.extractive.features import FEATURE_COUNT, LARGEST_FEATURE
from precis.model.network.config import SelectorConfig

if TYPE_CHECKING:  # TensorFlow takes seconds to import.
    from precis.model.network.selector import Selector

# The prefix of the paths of all weights.
PREFIX = "extractor/"
_MASKED = np.float32(-1e9)


class SelectorInputs(NamedTuple):
    """The inputs of the network, for B windows of N sentences.

    Attributes:
      vectors: float32 [B, N, D].
      features: float32 [B, N, F]; F is the number of features.
      places: int32 [B, N], the place of each sentence in its document; -1 is padding.
    """

    vectors: np.ndarray
    features: np.ndarray
    places: np.ndarray


def pad_inputs(
    vectors: Sequence[np.ndarray],
    feature_rows: Sequence[np.ndarray],
    firsts: Sequence[int],
) -> SelectorInputs:
    """Makes one batch of windows, padded to the longest.

    Args:
      vectors: [N, D] for each window.
      feature_rows: [N, F] for each window.
      firsts: the place of each window's first sentence in its document.
    """
    shape = (len(feature_rows), max(map(len, feature_rows)))
    batch = SelectorInputs(
        np.zeros((*shape, vectors[0].shape[1]), np.float32),
        np.zeros((*shape, FEATURE_COUNT), np.float32),
        np.full(shape, -1, np.int32),
    )
    windows = zip(vectors, feature_rows, firsts, strict=True)
    for row, (window_vectors, window_features, first) in enumerate(windows):
        count = len(window_features)
        batch.vectors[row, :count] = window_vectors
        batch.features[row, :count] = window_features
        batch.places[row, :count] = np.arange(first, first + count)
    return batch


class SelectorNetwork(NamedTuple):
    """The shape and the weights of a selector.

    Attributes:
      config: the shape.
      weights: the weights, float32, by their path in `Selector`.
    """

    config: SelectorConfig
    weights: Mapping[str, np.ndarray]

    @classmethod
    def of(cls, selector: "Selector") -> "SelectorNetwork":
        """A network with the present weights of a selector."""
        weights = {weight.path: weight.numpy() for weight in selector.weights}
        return cls(selector.config, weights)

    def logits(self, inputs: SelectorInputs) -> np.ndarray:
        """The logit of each sentence, float32 [B, N], as `Selector.call` gives it."""
        config, activation = self.config, _ACTIVATIONS[self.config.activation]
        features = inputs.features - self._weight("feature_mean")
        features *= self._weight("feature_scale")
        np.clip(features, -LARGEST_FEATURE, LARGEST_FEATURE, out=features)
        states = self._linear(features, "feature_inner")
        states = self._linear(activation(states), "feature_outer")
        if config.vector_width:
            states += self._linear(inputs.vectors, "vector_input")
        # Sentences after the last learned position use that position.
        places = np.clip(inputs.places, 0, config.max_sentences - 1)
        states = self._norm(states + self._weight("positions")[places], "norm")
        bias = np.where(inputs.places >= 0, 0, _MASKED)[:, None, None, :]
        for number in range(config.layers):
            block = f"block_{number}"
            states += self._attention(states, bias, f"{block}/attention")
            states = self._norm(states, f"{block}/attention_residual/norm")
            inner = activation(self._linear(states, f"{block}/feed_forward/inner"))
            states += self._linear(inner, f"{block}/feed_forward/outer")
            states = self._norm(states, f"{block}/feed_forward_residual/norm")
        return self._linear(states, "output_layer")[..., 0]

    def _weight(self, path: str) -> np.ndarray:
        return self.weights[f"{PREFIX}{path}"]

    def _linear(self, states: np.ndarray, path: str) -> np.ndarray:
        """States [B, N, I] -> [B, N, O], in one product of matrices."""
        kernel = self._weight(f"{path}/kernel")
        product = states.reshape(-1, len(kernel)) @ kernel
        product += self._weight(f"{path}/bias")
        return product.reshape(*states.shape[:-1], -1)

    def _norm(self, states: np.ndarray, path: str) -> np.ndarray:
        """LayerNorm (Ba et al. 2016) over the width."""
        centred = states - states.mean(axis=-1, keepdims=True)
        variance = np.einsum("bnd,bnd->bn", centred, centred) / states.shape[-1]
        centred /= np.sqrt(variance + self.config.norm_epsilon)[..., None]
        centred *= self._weight(f"{path}/gamma")
        centred += self._weight(f"{path}/beta")
        return centred

    def _attention(self, states: np.ndarray, bias: np.ndarray, path: str) -> np.ndarray:
        """Multi-head self-attention (Vaswani et al. 2017, section 3.2.2).

        Args:
          states: float32 [B, N, D].
          bias: float32 [B, 1, 1, N], added to the scores.
          path: the path of the weights.
        """
        rows, sentences, width = states.shape
        heads = self.config.heads
        query, key, value = (
            self._linear(states, f"{path}/{name}")
            .reshape(rows, sentences, heads, -1)
            .transpose(0, 2, 1, 3)  # [B, H, N, D/H]
            for name in ("query", "key", "value")
        )
        scores = query @ key.swapaxes(2, 3)  # [B, H, N, N]
        scores *= np.float32((width / heads) ** -0.5)
        scores += bias
        scores -= scores.max(axis=-1, keepdims=True)
        weights = np.exp(scores, out=scores)
        weights /= weights.sum(axis=-1, keepdims=True)
        attended = (weights @ value).transpose(0, 2, 1, 3)
        return self._linear(attended.reshape(states.shape), f"{path}/output")


def _gelu(values: np.ndarray) -> np.ndarray:
    from scipy.special import erf  # Imported here, as it takes 0.1 s.

    return values * np.float32(0.5) * (1 + erf(values * np.float32(0.5**0.5)))


def _relu(values: np.ndarray) -> np.ndarray:
    return np.maximum(values, 0)


_ACTIVATIONS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "gelu": _gelu,
    "relu": _relu,
}
