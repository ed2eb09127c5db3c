"""What all networks that write have in common: how the states of a decoder become the
next token, and what a search keeps meanwhile.
"""

from typing import Any, NamedTuple

import keras
from keras import ops

from precis.model.network.config import NetworkConfig
from precis.model.network.decoder_step import Product, multiply, ready
from precis.model.network.layers import Linear
from precis.model.network.pointer import (
    PointerGenerator,
    coverage_loss,
    coverage_penalty,
)
from precis.model.network.positions import TokenEmbedding
from precis.model.network.prediction import Prediction, log_probs


class Memory(NamedTuple):
    """What an encoder made of a source.

    Attributes:
      states: [B, S, D].
      source: int32 [B, S].
      bias: float32 [B, 1, 1, S], MASKED at padding.
      blocks: what else the decoder reads, of each of its blocks; () where the states
          are all.
    """

    states: Any
    source: Any
    bias: Any
    blocks: Any = ()


class Cache(NamedTuple):
    """What a step needs of the steps before it. A step consumes the cache it is given:
    only the one it gives back may be used on.

    Attributes:
      beams: nested tensors [B, K, ...] that belong to a hypothesis; a search that
          reorders hypotheses reorders these.
      shared: nested tensors that belong to the document or to the network; a search
          hands them on as they are.
    """

    beams: Any
    shared: Any


class Output(NamedTuple):
    """The end of the network as a step reads it: the output layer made ready, and what
    the pointer reads, or ().
    """

    product: Product
    pointer: Any


class AttentionMap(NamedTuple):
    """Who read what.

    Attributes:
      block: encoder, self, cross or copy.
      layer: its number from below; 0 for copy.
      weights: float32 [B, H, T, S], what each of T tokens read of S.
      rows, columns: which tokens these are, `source`, `target` or, of columns, `both`
          for the source with the target behind it.
    """

    block: str
    layer: int
    weights: Any
    rows: str
    columns: str


class Generator(keras.Model):
    """Source ids in, logits of the summary's next token out: the base of all networks
    that write.

    A network sets `embedding` (of the source) and calls `add_output` in its
    constructor; it defines `encode`, `decode`, `start`, `step`, `grow`, `narrow` and
    `encoder_parts`.

    Attributes:
      config: its shape.
      target_embedding: of what was written; the same layer as `embedding` where source
          and target share a vocabulary.
      is_encoder_frozen: whether the encoder stays as it is in training; it then reads
          without dropout.
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
        """Makes the layers behind the decoder.

        Args:
          target_embedding: of the target's tokens.
          memory_width: of the memory's states.
          has_bias: whether an untied output layer has one.
          scale: what a tied output layer multiplies states with.
        """
        self.target_embedding, self.output_scale = target_embedding, scale
        width, size = target_embedding.width, target_embedding.vocabulary_size
        self.output_layer = (
            None
            if self.config.tied_output
            else Linear(size, use_bias=has_bias, name="output_layer")
        )
        self.pointer = None
        if self.config.pointer:
            self.pointer = PointerGenerator(
                width=width,
                memory_width=memory_width,
                has_coverage=self.config.coverage,
                name="pointer",
            )

    def build_output(self) -> None:
        """Makes the weights of the layers behind the decoder."""
        for part in (self.target_embedding, self.output_layer, self.pointer):
            if part is not None and not part.built:
                part.build((None, None, self.target_embedding.width))

    def call(self, source: Any, target: Any, training: bool = False) -> Any:
        """Teacher forcing: int32 [B, S] and [B, T] (start token first) -> float32
        logits [B, T, V] of each next token.
        """
        return log_probs(self.predict_next(source, target, training=training))

    def predict_next(
        self, source: Any, target: Any, training: bool = False
    ) -> Prediction:
        """Teacher forcing, in the parts that a loss reads; the arguments are those of a
        call.
        """
        memory = self.encode(source, training=training)
        states, inputs, _ = self.decode(target, memory, training=training)
        logits = self._logits(states)
        if self.pointer is None:
            return Prediction(logits, None, None)
        reading = self.pointer(
            states, inputs, memory.source, memory.states, memory.bias[:, 0]
        )
        return Prediction(
            logits,
            reading,
            coverage_loss(reading.copy) if self.config.coverage else None,
        )

    def attention(self, source: Any, target: Any) -> list[AttentionMap]:
        """What every block reads, teacher-forced: int32 [B, S] and [B, T] (start token
        first).
        """
        memory, maps = self.encode_seen(source)
        states, inputs, read = self.decode(target, memory)
        if self.pointer is None:
            return [*maps, *read]
        copy = self.pointer(
            states, inputs, memory.source, memory.states, memory.bias[:, 0]
        ).copy
        return [
            *maps,
            *read,
            AttentionMap("copy", 0, copy[:, None], "target", "source"),
        ]

    def encode(self, source: Any, training: bool = False) -> Memory:
        """Reads the source once: int32 [B, S] -> Memory."""
        memory, _ = self.encode_seen(
            source, training=training and not self.is_encoder_frozen
        )
        return memory

    def encode_seen(
        self, source: Any, training: bool = False
    ) -> tuple[Memory, list[AttentionMap]]:
        """`encode`, and what its blocks read."""
        raise NotImplementedError

    def decode(
        self, target: Any, memory: Memory, training: bool = False
    ) -> tuple[Any, Any, list[AttentionMap]]:
        """int32 [B, T] -> the decoder's last states and what entered its first block,
        both [B, T, D], and what its blocks read.
        """
        raise NotImplementedError

    def encoder_parts(self) -> list[keras.layers.Layer]:
        """The layers that read the source and nothing else."""
        raise NotImplementedError

    def freeze_encoder(self) -> None:
        """Takes the encoder out of training."""
        self.is_encoder_frozen = True
        for part in self.encoder_parts():
            part.trainable = False

    def coverage_penalty(self, cache: Cache) -> Any:
        """How little of the source each hypothesis has read, float32 [B, K], at most 0;
        of a cache that counts it.
        """
        return coverage_penalty(
            cache.beams.coverage, cache.shared.output.pointer.source_bias
        )

    def start_output(self, memory: Memory) -> Output:
        """The end of the network as a search needs it, once per search."""
        if self.output_layer:
            product = ready(self.output_layer, "float32")
        else:
            bias = self.target_embedding.logits_bias
            table = ops.transpose(self.target_embedding.table) * self.output_scale
            product = Product(
                table, () if bias is None else ops.convert_to_tensor(bias)
            )
        return Output(
            product,
            self.pointer.start(memory.source, memory.states, memory.bias[:, 0])
            if self.pointer
            else (),
        )

    def start_coverage(
        self, memory: Memory, beams: int, *, counts_coverage: bool
    ) -> Any:
        """No coverage yet, float32 [B, K, S]; () where nobody counts it."""
        if not (counts_coverage or self.config.coverage):
            return ()
        batch, length = ops.shape(memory.source)
        return ops.zeros((batch, beams, length), dtype="float32")

    def step_output(
        self, states: Any, inputs: Any, output: Output, coverage: Any
    ) -> tuple[Any, Any]:
        """float32 logits [B, K, V] of states and inputs [B, K, D], and the coverage
        after them.
        """
        batch, beams, width = ops.shape(states)
        rows = ops.reshape(states, (-1, width))
        logits = ops.reshape(
            multiply(rows, output.product),
            (batch, beams, self.target_embedding.vocabulary_size),
        )
        return (
            self.pointer.step(logits, states, inputs, output.pointer, coverage)
            if self.pointer
            else (logits, coverage)
        )

    def _logits(self, states: Any) -> Any:
        if self.output_layer:
            return ops.cast(self.output_layer(states), "float32")
        return self.target_embedding.logits(
            states * self.output_scale, self.compute_dtype
        )
