"""The Transformer encoder-decoder (Vaswani et al. 2017) with an optional pointer-generator output (See et al. 2017)."""

from typing import Any, NamedTuple

import keras
from keras import ops

from model.config import NetworkConfig
from model.network.layers import DecoderBlock, EncoderBlock, TokenEmbedding, look_ahead_mask, padding_mask
from model.network.pointer import PointerGenerator


class Memory(NamedTuple):
    """What the encoder made of a source: states [B, S, D] and the source int32 [B, S] itself."""

    states: Any
    source: Any


class Cache(NamedTuple):
    """What a step needs of the steps before it.

    Attributes:
      beams: nested tensors [B, K, ...] that belong to a hypothesis; a search that reorders hypotheses reorders these.
      shared: nested tensors [B, ...] that belong to the document; never changed.
    """

    beams: Any
    shared: Any


class Transformer(keras.Model):
    """Source ids in, logits of the summary's next token out."""

    def __init__(self, config: NetworkConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config
        shape: dict[str, Any] = {
            "width": config.width,
            "feed_forward": config.feed_forward,
            "heads": config.heads,
            "dropout": config.dropout,
        }
        self.embedding = TokenEmbedding(
            vocabulary_size=config.vocabulary_size,
            width=config.width,
            # The target is one longer than its pieces: it begins with the start token.
            max_tokens=max(config.max_source_tokens, config.max_target_tokens + 1),
            dropout=config.dropout,
            name="embedding",
        )
        self.encoder = [EncoderBlock(name=f"encoder_{i}", **shape) for i in range(config.encoder_layers)]
        self.decoder = [DecoderBlock(name=f"decoder_{i}", **shape) for i in range(config.decoder_layers)]
        self.output_layer = None if config.tied_output else keras.layers.Dense(config.vocabulary_size, name="output_layer")
        self.pointer = PointerGenerator(width=config.width, name="pointer") if config.pointer else None

    def build(self, _: Any = None) -> None:
        states = (None, None, self.config.width)
        for part in (self.embedding, *self.encoder, *self.decoder, self.output_layer, self.pointer):
            if part is not None:
                part.build(states)
        self.built = True

    def call(self, source: Any, target: Any, training: bool = False) -> Any:
        """Teacher forcing: int32 [B, S] and [B, T] (start token first) -> float32 logits [B, T, V] of each next token."""
        memory = self.encode(source, training=training)
        states = inputs = self.embedding(target, training=training)
        own_mask, source_mask = look_ahead_mask(ops.shape(target)[1]), padding_mask(source, self.config.pad_id)
        for block in self.decoder:
            states = block(states, memory.states, own_mask, source_mask, training=training)
        keys = self.pointer.keys(memory.states) if self.pointer else None
        return self._output(states, inputs, memory, keys, source_mask)

    def encode(self, source: Any, training: bool = False) -> Memory:
        """Reads the source once: int32 [B, S] -> Memory."""
        mask = padding_mask(source, self.config.pad_id)
        states = self.embedding(source, training=training)
        for block in self.encoder:
            states = block(states, mask, training=training)
        return Memory(states, source)

    def start(self, memory: Memory, beams: int, length: int) -> Cache:
        """An empty past of `beams` hypotheses with room for `length` tokens."""
        config = self.config
        shape = (ops.shape(memory.source)[0], beams, config.heads, length, config.width // config.heads)
        own = tuple((ops.zeros(shape, memory.states.dtype), ops.zeros(shape, memory.states.dtype)) for _ in self.decoder)
        source = tuple(block.cross_attention.keys_values(memory.states) for block in self.decoder)
        keys = self.pointer.keys(memory.states) if self.pointer else ()  # no None: a compiled loop carries the cache
        return Cache(own, (memory, source, keys))

    def step(self, tokens: Any, cache: Cache, index: Any) -> tuple[Any, Cache]:
        """Logits after one more token of each hypothesis: int32 [B, K] at position `index` -> float32 [B, K, V]."""
        memory, source, keys = cache.shared
        source_mask = padding_mask(memory.source, self.config.pad_id)
        states = inputs = self.embedding.at(tokens, index)
        own = []
        for block, own_past, source_past in zip(self.decoder, cache.beams, source, strict=True):
            states, filled = block.step(states, own_past, source_past, source_mask, index)
            own.append(filled)
        return self._output(states, inputs, memory, keys, source_mask), Cache(tuple(own), cache.shared)

    def _output(self, states: Any, inputs: Any, memory: Memory, keys: Any, source_mask: Any) -> Any:
        """Logits of states [B, T, D]: the output layer, then the pointer if there is one."""
        logits = ops.cast(self.output_layer(states), "float32") if self.output_layer else self.embedding.logits(states)
        if self.pointer is None:
            return logits
        return self.pointer(logits, states, inputs, memory.source, memory.states, keys, source_mask[:, 0])
