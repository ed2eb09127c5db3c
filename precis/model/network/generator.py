"""The base of all networks that write summaries.

It computes the logits of the next token from decoder states, with or without a pointer,
and the parts of a search's cache that this output needs.
"""

from typing import Any, NamedTuple

import keras

from precis.model.backend import Tensor, ops
from precis.model.cache import Cache
from precis.model.network.config import NetworkConfig
from precis.model.network.layers import (
    Linear,
    LinearWeights,
    Memory,
    build_parts,
    multiply,
    prepare_linear,
)
from precis.model.network.pointer import (
    PointerGenerator,
    Prediction,
    log_probs,
)
from precis.model.network.positions import TokenEmbedding

# The cache entry of a search with a shortlist: a bias of the logits of each document.
ALLOWED = "allowed"


class AttentionMap(NamedTuple):
    """The attention weights of one block.

    Attributes:
      block: encoder, self, cross or copy.
      layer: the number of the block from below; 0 for copy.
      weights: float32 [B, H, T, S], from each of T tokens to each of S tokens.
      rows: the tokens of the rows, `source` or `target`.
      columns: the tokens of the columns, `source`, `target` or `both`: the source
          followed by the target.
    """

    block: str
    layer: int
    weights: Tensor
    rows: str
    columns: str


class Generator(keras.Model):
    """Computes the logits of the summary's next token from source ids.

    A network sets `embedding` (of the source) and calls `add_output` in its
    constructor. It defines `encode_with_attention`, `decode`, `start`, `step` and
    `encoder_parts`.

    Attributes:
      config: the shape of the network.
      target_embedding: the embedding of the target; the same layer as `embedding` if
          source and target share a vocabulary.
      is_encoder_frozen: whether training leaves the encoder unchanged. A frozen
          encoder runs without dropout.
    """

    embedding: TokenEmbedding

    def __init__(self, config: NetworkConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config
        self.is_encoder_frozen = False

    def add_output(
        self,
        target_embedding: TokenEmbedding,
        *,
        memory_width: int,
        has_bias: bool = True,
        scale: float = 1.0,
    ) -> None:
        """Makes the layers after the decoder.

        Args:
          target_embedding: the embedding of the target's tokens.
          memory_width: the width of the memory's states.
          has_bias: whether an untied output layer has a bias.
          scale: the factor of the states before a tied output layer.
        """
        self.target_embedding = target_embedding
        self.output_scale = scale
        self.output_layer = None
        if not self.config.tied_output:
            self.output_layer = Linear(
                target_embedding.vocabulary_size, use_bias=has_bias, name="output_layer"
            )
        self.pointer = None
        if self.config.pointer:
            self.pointer = PointerGenerator(
                width=target_embedding.width,
                memory_width=memory_width,
                name="pointer",
            )

    def build_output(self) -> None:
        """Makes the weights of the layers after the decoder."""
        parts = [self.target_embedding, self.output_layer, self.pointer]
        build_parts(parts, self.target_embedding.width)

    def call(self, source: Tensor, target: Tensor, training: bool = False) -> Tensor:
        """Computes the logits of each next token with teacher forcing.

        Args:
          source: int32 [B, S], padded with SOURCE_PADDING.
          target: int32 [B, T], start token first.
          training: whether dropout is on.

        Returns:
          float32 [B, T, V].
        """
        return log_probs(self.predict_next(source, target, training=training))

    def predict_next(
        self, source: Tensor, target: Tensor, training: bool = False
    ) -> Prediction:
        """Computes what a loss needs, with the arguments of `call`."""
        memory = self.encode(source, training=training)
        states, inputs, _ = self.decode(target, memory, training=training)
        if self.output_layer:
            logits = ops.cast(self.output_layer(states), "float32")
        else:
            scaled = states * self.output_scale
            logits = self.target_embedding.logits(scaled, self.compute_dtype)
        if self.pointer is None:
            return Prediction(logits, None)
        return Prediction(logits, self.pointer(states, inputs, memory))

    def attention(self, source: Tensor, target: Tensor) -> list[AttentionMap]:
        """Computes the attention maps of all blocks with teacher forcing.

        Args:
          source: int32 [B, S].
          target: int32 [B, T], start token first.
        """
        memory, encoder_maps = self.encode_with_attention(source)
        states, inputs, decoder_maps = self.decode(target, memory)
        maps = [*encoder_maps, *decoder_maps]
        if self.pointer is not None:
            copy = self.pointer(states, inputs, memory).copy_probabilities[:, None]
            maps.append(AttentionMap("copy", 0, copy, "target", "source"))
        return maps

    def encode(self, source: Tensor, training: bool = False) -> Memory:
        """Encodes a source, int32 [B, S], padded with SOURCE_PADDING."""
        memory, _ = self.encode_with_attention(
            source, training=training and not self.is_encoder_frozen
        )
        return memory

    def encode_with_attention(
        self, source: Tensor, training: bool = False
    ) -> tuple[Memory, list[AttentionMap]]:
        """Encodes a source, int32 [B, S], and returns the encoder's attention maps."""
        raise NotImplementedError

    def decode(
        self, target: Tensor, memory: Memory, training: bool = False
    ) -> tuple[Tensor, Tensor, list[AttentionMap]]:
        """Runs the decoder over a whole target, int32 [B, T].

        Returns:
          The decoder's last states and the input of its first block, both [B, T, D],
          and the attention maps of its blocks.
        """
        raise NotImplementedError

    def start(self, memory: Memory, beams: int, length: int) -> Cache:
        """Makes the cache for the first step of a search.

        Args:
          memory: B encoded sources.
          beams: K.
          length: the number of steps to make room for.
        """
        raise NotImplementedError

    def step(self, tokens: Tensor, cache: Cache, index: Tensor) -> tuple[Tensor, Cache]:
        """Computes the logits after one more token of each hypothesis.

        Args:
          tokens: int32 [B, K].
          cache: the cache of the previous steps; must not be used again.
          index: int32 scalar, the position of the tokens.

        Returns:
          float32 [B, K, V], and the cache for the next step.
        """
        raise NotImplementedError

    def encoder_parts(self) -> list[keras.layers.Layer]:
        """The layers that only the encoder uses."""
        raise NotImplementedError

    def freeze_encoder(self) -> None:
        """Takes the encoder out of training."""
        self.is_encoder_frozen = True
        for part in self.encoder_parts():
            part.trainable = False

    def prepare_output(self) -> LinearWeights:
        """The output layer for `step_output`."""
        if self.output_layer:
            return prepare_linear(self.output_layer, "float32")
        bias = self.target_embedding.logits_bias
        return LinearWeights(
            kernel=ops.transpose(self.target_embedding.table) * self.output_scale,
            bias=() if bias is None else ops.convert_to_tensor(bias),
        )

    def step_output(self, states: Tensor, inputs: Tensor, cache: Cache) -> Tensor:
        """Computes the logits of a step.

        Args:
          states: [B, K, D], the decoder's last states.
          inputs: [B, K, D], the input of its first block.
          cache: the cache of the previous steps.

        Returns:
          float32 [B, K, V].
        """
        batch, beams, width = ops.shape(states)
        rows = ops.reshape(states, (-1, width))
        logits = multiply(rows, cache.shared["output"])
        logits = ops.reshape(logits, (batch, beams, logits.shape[-1] or -1))
        if ALLOWED in cache.per_document:
            logits = logits + cache.per_document[ALLOWED]
        if not self.pointer:
            return logits
        return self.pointer.step(logits, states, inputs, cache.per_document["pointer"])
