"""The Transformer encoder-decoder (Vaswani et al. 2017) with an optional
pointer-generator output (See et al. 2017).
"""

from typing import Any, NamedTuple

import keras
from keras import ops

from precis.model.network.blocks import DecoderBlock
from precis.model.network.config import TransformerConfig
from precis.model.network.convolutional_gate import ConvolutionalGate
from precis.model.network.decoder_step import (
    BlockWeights,
    Source,
    read_source,
    ready_weights,
    step_decoder_block,
)
from precis.model.network.encoder import add_encoder, read_tokens
from precis.model.network.generator import (
    AttentionMap,
    Cache,
    Generator,
    Memory,
    Output,
)
from precis.model.network.kv_cache import (
    Past,
    grow_past,
    narrow_past,
    open_slots,
    start_past,
)
from precis.model.network.layers import (
    look_ahead_mask,
    make_norm,
    score_bias,
)
from precis.model.network.positions import (
    PositionedInput,
    TokenEmbedding,
    make_relative,
)


class Beams(NamedTuple):
    """What belongs to a hypothesis.

    Attributes:
      readable: float32 [B, K, M], 0 where a hypothesis may read a slot and MASKED where
          not.
      coverage: float32 [B, K, S], or () where nobody counts it.
    """

    readable: Any
    coverage: Any


class Shared(NamedTuple):
    """The shared part of the cache.

    Attributes:
      past: keys and values that the hypotheses wrote.
      source: keys and values of the source, of each block.
      source_bias: float32 [B, 1, 1, S].
      weights: of each block, made ready.
      output: the end of the network.
    """

    past: Past
    source: tuple[Source, ...]
    source_bias: Any
    weights: tuple[BlockWeights, ...]
    output: Output


class Transformer(Generator):
    """One network for every kind of encoder-decoder that `TransformerConfig` can
    describe: BART, PEGASUS and T5 among them.
    """

    config: TransformerConfig

    def __init__(self, config: TransformerConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        add_encoder(
            self, config, has_logits_bias=config.logits_bias and config.shared_embedding
        )
        decoder = config.decoder
        self.convolutional_gate = None
        if config.convolutional_gate:
            self.convolutional_gate = ConvolutionalGate(
                width=config.width, dropout=config.dropout, name="convolutional_gate"
            )
        target_embedding = self.embedding
        if not config.shared_embedding:
            target_embedding = TokenEmbedding(
                vocabulary_size=decoder.vocabulary_size,
                width=decoder.width,
                is_scaled=decoder.scaled_embedding,
                has_logits_bias=config.logits_bias,
                name="target_embedding",
            )
        # The target is one longer than its pieces: it begins with the start token.
        self.target_input = PositionedInput(
            config=decoder, max_tokens=config.max_target_tokens + 1, name="target_input"
        )
        self.decoder_positions = make_relative(
            decoder, is_bidirectional=False, name="decoder_positions"
        )
        self.decoder = [
            DecoderBlock(config=decoder, memory_width=config.width, name=f"decoder_{i}")
            for i in range(config.decoder_layers)
        ]
        self.decoder_norm = (
            make_norm(decoder, name="decoder_norm") if decoder.norm_first else None
        )
        scale = decoder.width**-0.5 if config.scaled_output else 1.0
        self.add_output(
            target_embedding,
            memory_width=config.width,
            has_bias=decoder.biases,
            scale=scale,
        )

    def build(self, _: Any = None) -> None:
        for part in (*self.encoder_parts(), self.embedding, self.convolutional_gate):
            if part is not None and not part.built:
                part.build((None, None, self.config.width))
        for part in (
            self.target_input,
            self.decoder_positions,
            *self.decoder,
            self.decoder_norm,
        ):
            if part is not None:
                part.build((None, None, self.config.decoder.width))
        self.build_output()
        self.built = True

    def encoder_parts(self) -> list[keras.layers.Layer]:
        """As in `Generator`; an embedding that the decoder reads too is none of them."""
        own = [] if self.config.shared_embedding else [self.embedding]
        optional = [
            part
            for part in (self.encoder_positions, self.encoder_norm)
            if part is not None
        ]
        return [*own, self.source_input, *self.encoder, *optional]

    def encode_seen(
        self, source: Any, training: bool = False
    ) -> tuple[Memory, list[AttentionMap]]:
        """As in `Generator`."""
        states, bias, weights = read_tokens(self, source, training=training)
        if self.convolutional_gate:
            states = self.convolutional_gate(states, bias, training=training)
        maps = [
            AttentionMap("encoder", layer, one, "source", "source")
            for layer, one in enumerate(weights)
        ]
        return Memory(states, source, bias), maps

    def decode(
        self, target: Any, memory: Memory, training: bool = False
    ) -> tuple[Any, Any, list[AttentionMap]]:
        """As in `Generator`."""
        states = inputs = self.target_input(
            self.target_embedding(target), training=training
        )
        length = ops.shape(target)[1]
        own_bias = score_bias(look_ahead_mask(length))
        if self.decoder_positions:
            positions = ops.arange(length, dtype="int32")
            own_bias = own_bias + self.decoder_positions(positions, positions)
        maps = []
        for layer, block in enumerate(self.decoder):
            states, own, cross = block(
                states, memory.states, own_bias, memory.bias, training=training
            )
            maps += [
                AttentionMap("self", layer, own, "target", "target"),
                AttentionMap("cross", layer, cross, "target", "source"),
            ]
        return self._normed(states), inputs, maps

    def start(
        self, memory: Memory, beams: int, length: int, *, counts_coverage: bool = False
    ) -> Cache:
        """An empty past of `beams` hypotheses with room for `length` tokens."""
        readable, past = start_past(
            [block.self_attention for block in self.decoder],
            batch=ops.shape(memory.source)[0],
            beams=beams,
            length=length,
        )
        shared = Shared(
            past=past,
            source=tuple(
                read_source(block.cross_attention, memory.states)
                for block in self.decoder
            ),
            source_bias=memory.bias,
            weights=tuple(ready_weights(block) for block in self.decoder),
            output=self.start_output(memory),
        )
        return Cache(
            Beams(
                readable,
                self.start_coverage(memory, beams, counts_coverage=counts_coverage),
            ),
            shared,
        )

    def grow(self, cache: Cache, *, written: Any, more: int) -> Cache:
        """The cache after `written` tokens with room for `more`."""
        heads = self.decoder[0].self_attention.heads
        readable, past = grow_past(
            cache.beams.readable,
            cache.shared.past,
            heads=heads,
            written=written,
            more=more,
        )
        return Cache(
            cache.beams._replace(readable=readable), cache.shared._replace(past=past)
        )

    def narrow(self, cache: Cache, documents: Any) -> Cache:
        """The cache of some of the documents, int32 [N]."""
        shared = cache.shared
        past = narrow_past(
            shared.past, documents, batch=ops.shape(cache.beams.readable)[0]
        )
        beams, source, bias, pointer = choose(
            (cache.beams, shared.source, shared.source_bias, shared.output.pointer),
            documents,
        )
        output = shared.output._replace(pointer=pointer)
        return Cache(
            beams,
            shared._replace(past=past, source=source, source_bias=bias, output=output),
        )

    def step(self, tokens: Any, cache: Cache, index: Any) -> tuple[Any, Cache]:
        """Logits after one more token of each hypothesis: int32 [B, K] at position
        `index` -> float32 [B, K, V].
        """
        shared, width = cache.shared, self.config.decoder.width
        batch, beams = ops.shape(tokens)
        readable, place = open_slots(cache.beams.readable, shared.past, index)
        own_bias = readable[:, None]
        if self.decoder_positions:
            own_bias = own_bias + self.decoder_positions(
                ops.reshape(index, (1, 1)), shared.past.positions
            )
        inputs = self.target_input.at(self.target_embedding(tokens), index)  # [B, K, D]
        states = ops.reshape(inputs, (batch * beams, width))
        own = []
        for block, weights, past, source in zip(
            self.decoder, shared.weights, shared.past.own, shared.source, strict=True
        ):
            states, filled = step_decoder_block(
                block,
                weights,
                states,
                own=past,
                own_bias=own_bias,
                source=source,
                source_bias=shared.source_bias,
                place=place,
            )
            own.append(filled)
        states = ops.reshape(self._normed(states), (batch, beams, width))
        logits, coverage = self.step_output(
            states, inputs, shared.output, cache.beams.coverage
        )
        return logits, Cache(
            Beams(readable, coverage),
            shared._replace(past=shared.past._replace(own=tuple(own))),
        )

    def _normed(self, states: Any) -> Any:
        return self.decoder_norm(states) if self.decoder_norm else states


def choose(tensors: Any, documents: Any) -> Any:
    """Of nested tensors [B, ...] some of the documents, int32 [N]."""
    return keras.tree.map_structure(
        lambda tensor: ops.take(tensor, documents, axis=0), tensors
    )
