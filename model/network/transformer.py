"""The Transformer encoder-decoder (Vaswani et al. 2017) with an optional pointer-generator output (See et al. 2017)."""

from typing import Any, NamedTuple

import keras
from keras import ops

from model.config import NetworkConfig
from model.network.backend import forget_size
from model.network.layers import (
    MASKED,
    DecoderBlock,
    EncoderBlock,
    PositionedInput,
    TokenEmbedding,
    look_ahead_mask,
    padding_mask,
    score_bias,
)
from model.network.pointer import PointerGenerator
from model.network.step import (
    BlockWeights,
    Own,
    Product,
    Source,
    grow_own,
    make_own,
    multiply,
    read_source,
    ready_weights,
    slots_in_use,
    step_block,
)


class Memory(NamedTuple):
    """What the encoder made of a source: states [B, S, D] and the source int32 [B, S] itself."""

    states: Any
    source: Any


class Cache(NamedTuple):
    """What a step needs of the steps before it. A step consumes the cache it is given: only the one it gives back may be used on.

    Attributes:
      beams: nested tensors [B, K, ...] that belong to a hypothesis; a search that reorders hypotheses reorders these.
      shared: nested tensors that belong to the document or to the network; a search hands them on as they are.
    """

    beams: Any
    shared: Any


class Shared(NamedTuple):
    """The shared part of the cache. Its `beams` are the readable slots, float32 [B, K, M], as `step` describes them.

    Attributes:
      own: keys and values that the hypotheses wrote, of each block.
      first: int32 scalar; the slots of the step at position `index` begin at K * (first + index).
      source: keys and values of the source, of each block.
      source_bias: float32 [B, 1, 1, S].
      pointer: what the pointer reads of the source, a PointerMemory, or ().
      weights: of each block, made ready.
      output: D -> V, made ready.
    """

    own: tuple[Own, ...]
    first: Any
    source: tuple[Source, ...]
    source_bias: Any
    pointer: Any
    weights: tuple[BlockWeights, ...]
    output: Product


class Transformer(keras.Model):
    """Source ids in, logits of the summary's next token out."""

    def __init__(self, config: NetworkConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config
        self.embedding = TokenEmbedding(
            vocabulary_size=config.vocabulary_size,
            width=config.width,
            is_scaled=config.scaled_embedding,
            has_logits_bias=config.logits_bias,
            name="embedding",
        )
        self.source_input = PositionedInput(config=config, max_tokens=config.max_source_tokens, name="source_input")
        # The target is one longer than its pieces: it begins with the start token.
        self.target_input = PositionedInput(config=config, max_tokens=config.max_target_tokens + 1, name="target_input")
        self.encoder = [EncoderBlock(config=config, name=f"encoder_{i}") for i in range(config.encoder_layers)]
        self.decoder = [DecoderBlock(config=config, name=f"decoder_{i}") for i in range(config.decoder_layers)]
        self.output_layer = None if config.tied_output else keras.layers.Dense(config.vocabulary_size, name="output_layer")
        self.pointer = PointerGenerator(width=config.width, name="pointer") if config.pointer else None

    def build(self, _: Any = None) -> None:
        states = (None, None, self.config.width)
        parts = (
            self.embedding,
            self.source_input,
            self.target_input,
            *self.encoder,
            *self.decoder,
            self.output_layer,
            self.pointer,
        )
        for part in parts:
            if part is not None:
                part.build(states)
        self.built = True

    def call(self, source: Any, target: Any, training: bool = False) -> Any:
        """Teacher forcing: int32 [B, S] and [B, T] (start token first) -> float32 logits [B, T, V] of each next token."""
        memory = self.encode(source, training=training)
        states = inputs = self.target_input(self.embedding(target), training=training)
        own_mask, source_mask = look_ahead_mask(ops.shape(target)[1]), padding_mask(source, self.config.pad_id)
        for block in self.decoder:
            states = block(states, memory.states, own_mask, source_mask, training=training)
        keys = self.pointer.keys(memory.states) if self.pointer else None
        return self._output(states, inputs, memory, keys, source_mask)

    def encode(self, source: Any, training: bool = False) -> Memory:
        """Reads the source once: int32 [B, S] -> Memory."""
        mask = padding_mask(source, self.config.pad_id)
        states = self.source_input(self.embedding(source), training=training)
        for block in self.encoder:
            states = block(states, mask, training=training)
        return Memory(states, source)

    def start(self, memory: Memory, beams: int, length: int) -> Cache:
        """An empty past of `beams` hypotheses with room for `length` tokens."""
        batch = ops.shape(memory.source)[0]
        mask = padding_mask(memory.source, self.config.pad_id)
        shared = Shared(
            own=tuple(make_own(block.self_attention, batch, beams, length) for block in self.decoder),
            first=ops.convert_to_tensor(0, "int32"),
            source=tuple(read_source(block.cross_attention, memory.states) for block in self.decoder),
            source_bias=score_bias(mask),
            pointer=self.pointer.start(memory.source, memory.states, mask[:, 0]) if self.pointer else (),  # no None: a loop carries it
            weights=tuple(ready_weights(block) for block in self.decoder),
            output=self._ready_output(),
        )
        return Cache(forget_size(ops.full((batch, beams, length * beams), MASKED, dtype="float32"), axis=2), shared)

    def grow(self, cache: Cache, *, written: Any, more: int) -> Cache:
        """The cache after `written` tokens with room for `more`."""
        readable, shared = cache
        batch, beams, _ = ops.shape(readable)
        kept = slots_in_use(readable)
        heads = self.decoder[0].self_attention.heads
        own = tuple(grow_own(one, kept, heads=heads, beams=beams, more=more) for one in shared.own)
        past = ops.take_along_axis(readable, ops.broadcast_to(kept[:, None], (batch, beams, ops.shape(kept)[1])), axis=2)
        room = ops.full((batch, beams, more * beams), MASKED, dtype="float32")
        first = ops.cast(ops.shape(kept)[1] // beams - written, "int32")
        return Cache(ops.concatenate([past, room], axis=2), shared._replace(own=own, first=first))

    def narrow(self, cache: Cache, documents: Any) -> Cache:
        """The cache of some of the documents, int32 [N]."""
        shared = cache.shared

        def of_heads(buffer: Any) -> Any:
            size = buffer.shape[-1]
            return ops.reshape(ops.take(ops.reshape(buffer, (ops.shape(cache.beams)[0], -1, size)), documents, axis=0), (-1, size))

        def choose(tensors: Any) -> Any:
            return keras.tree.map_structure(lambda tensor: ops.take(tensor, documents, axis=0), tensors)

        return Cache(
            choose(cache.beams),
            shared._replace(
                own=keras.tree.map_structure(of_heads, shared.own),
                source=choose(shared.source),
                source_bias=choose(shared.source_bias),
                pointer=choose(shared.pointer),
            ),
        )

    def step(self, tokens: Any, cache: Cache, index: Any) -> tuple[Any, Cache]:
        """Logits after one more token of each hypothesis: int32 [B, K] at position `index` -> float32 [B, K, V]."""
        shared = cache.shared
        batch, beams = ops.shape(tokens)
        place = shared.first + index
        slots = place * beams + ops.arange(beams, dtype="int32")[:, None]  # [K, 1], one for each hypothesis
        readable = ops.where(ops.arange(ops.shape(cache.beams)[2], dtype="int32") == slots, 0.0, cache.beams)
        inputs = self.target_input.at(self.embedding(tokens), index)  # [B, K, D]
        states = ops.reshape(inputs, (batch * beams, self.config.width))
        own = []
        for block, weights, past, source in zip(self.decoder, shared.weights, shared.own, shared.source, strict=True):
            states, filled = step_block(
                block, weights, states, own=past, readable=readable, source=source, source_bias=shared.source_bias, place=place
            )
            own.append(filled)
        logits = ops.reshape(multiply(states, shared.output), (batch, beams, self.config.vocabulary_size))
        if self.pointer:
            by_beam = ops.reshape(states, (batch, beams, self.config.width))
            logits = self.pointer.step(logits, by_beam, inputs, shared.pointer)
        return logits, Cache(readable, shared._replace(own=tuple(own)))

    def _ready_output(self) -> Product:
        """The output layer as a product, once per search."""
        if self.output_layer:
            return Product(ops.convert_to_tensor(self.output_layer.kernel), ops.convert_to_tensor(self.output_layer.bias))
        bias = self.embedding.logits_bias
        return Product(ops.transpose(self.embedding.table), () if bias is None else ops.convert_to_tensor(bias))

    def _output(self, states: Any, inputs: Any, memory: Memory, keys: Any, source_mask: Any) -> Any:
        """Logits of states [B, T, D]: the output layer, then the pointer if there is one."""
        if self.output_layer:
            logits = ops.cast(self.output_layer(states), "float32")
        else:
            logits = self.embedding.logits(states, self.compute_dtype)
        if self.pointer is None:
            return logits
        return self.pointer(logits, states, inputs, memory.source, memory.states, keys, source_mask[:, 0])
