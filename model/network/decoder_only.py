"""A decoder-only language model: source, start token and summary are one sequence, and
each token reads what stands before it.

    source      7 8 9 .        start token and summary   S a b      . padding, which nobody reads
    positions   0 1 2                                    3 4 5

The source is read once, its keys and values stand once per document, and all hypotheses
read them.
"""

from typing import Any, NamedTuple

import keras
from keras import ops

from precis.model.network.blocks import EncoderBlock
from precis.model.network.config import DecoderOnlyConfig
from precis.model.network.decoder_step import (
    BlockWeights,
    Source,
    as_source,
    ready_own_weights,
    step_block,
)
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
    padding_mask,
    score_bias,
)
from precis.model.network.positions import (
    PositionedInput,
    TokenEmbedding,
    make_relative,
)
from precis.model.network.transformer import Beams, choose


class Read(NamedTuple):
    """What a block made of the source: keys and values, each [B, H, S, D/H]."""

    keys: Any
    values: Any


class Shared(NamedTuple):
    """The shared part of the cache.

    Attributes:
      past: keys and values that the hypotheses wrote.
      source: keys and values of the source, of each block.
      source_bias: float32 [B, 1, 1, S].
      lengths: int32 [B], tokens of the sources.
      weights: of each block, made ready.
      output: the end of the network.
    """

    past: Past
    source: tuple[Source, ...]
    source_bias: Any
    lengths: Any
    weights: tuple[BlockWeights, ...]
    output: Output


class DecoderOnly(Generator):
    """One stack of blocks for source and summary (Radford et al. 2018)."""

    config: DecoderOnlyConfig

    def __init__(self, config: DecoderOnlyConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        stack = config.decoder
        self.embedding = TokenEmbedding(
            vocabulary_size=stack.vocabulary_size,
            width=stack.width,
            is_scaled=stack.scaled_embedding,
            name="embedding",
        )
        most = config.max_source_tokens + config.max_target_tokens + 1
        self.input_layer = PositionedInput(
            config=stack, max_tokens=most, name="input_layer"
        )
        self.relative_positions = make_relative(
            stack, is_bidirectional=False, name="relative_positions"
        )
        self.blocks = [
            EncoderBlock(config=stack, name=f"block_{i}") for i in range(config.layers)
        ]
        self.last_norm = (
            make_norm(stack, name="last_norm") if stack.norm_first else None
        )
        self.add_output(self.embedding, memory_width=stack.width, has_bias=stack.biases)

    def build(self, _: Any = None) -> None:
        for part in (
            self.embedding,
            self.input_layer,
            self.relative_positions,
            *self.blocks,
            self.last_norm,
        ):
            if part is not None:
                part.build((None, None, self.config.width))
        self.build_output()
        self.built = True

    def encoder_parts(self) -> list[keras.layers.Layer]:
        """None: every layer also writes."""
        return []

    def encode_seen(
        self, source: Any, training: bool = False
    ) -> tuple[Memory, list[AttentionMap]]:
        """As in `Generator`; the blocks of the memory are what each block made of the
        source.
        """
        length = ops.shape(source)[1]
        hidden = score_bias(padding_mask(source, self.config.pad_id))
        positions = ops.arange(length, dtype="int32")
        bias = ops.minimum(
            score_bias(look_ahead_mask(length)), hidden
        ) + self._relative(positions, positions)
        states = self.input_layer(self.embedding(source), training=training)
        blocks, maps = [], []
        for layer, block in enumerate(self.blocks):
            blocks.append(
                Read(
                    *block.attention.keys_values(block.attention_residual.reads(states))
                )
            )
            states, weights = block(states, bias, training=training)
            maps.append(AttentionMap("encoder", layer, weights, "source", "source"))
        return Memory(self._normed(states), source, hidden, tuple(blocks)), maps

    def decode(
        self, target: Any, memory: Memory, training: bool = False
    ) -> tuple[Any, Any, list[AttentionMap]]:
        """As in `Generator`."""
        batch, length = ops.shape(target)
        lengths = source_lengths(memory.source, self.config.pad_id)[:, None]  # [B, 1]
        own_positions = lengths + ops.arange(length, dtype="int32")[None]  # [B, T]
        source_positions = ops.arange(ops.shape(memory.source)[1], dtype="int32")[None]
        own_bias = score_bias(look_ahead_mask(length)) + self._relative(
            own_positions, own_positions
        )
        own_bias, source_bias = (
            ops.broadcast_to(
                bias, (batch, ops.shape(bias)[1], length, ops.shape(bias)[3])
            )
            for bias in (
                own_bias,
                memory.bias + self._relative(own_positions, source_positions),
            )
        )
        heads = max(own_bias.shape[1], source_bias.shape[1])
        bias = ops.concatenate(
            [_over_heads(source_bias, heads), _over_heads(own_bias, heads)], axis=3
        )  # [B, 1 or H, T, S + T]
        states = inputs = self.input_layer(
            self.embedding(target), own_positions, training=training
        )
        maps = []
        for layer, (block, past) in enumerate(
            zip(self.blocks, memory.blocks, strict=True)
        ):
            states, weights = block(states, bias, past=past, training=training)
            maps.append(AttentionMap("self", layer, weights, "target", "both"))
        return self._normed(states), inputs, maps

    def start(
        self, memory: Memory, beams: int, length: int, *, counts_coverage: bool = False
    ) -> Cache:
        """An empty past of `beams` hypotheses with room for `length` tokens."""
        batch = ops.shape(memory.source)[0]
        readable, past = start_past(
            [block.attention for block in self.blocks],
            batch=batch,
            beams=beams,
            length=length,
        )
        shared = Shared(
            past=past,
            source=tuple(as_source(*read) for read in memory.blocks),
            source_bias=memory.bias,
            lengths=source_lengths(memory.source, self.config.pad_id),
            weights=tuple(ready_own_weights(block) for block in self.blocks),
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
        heads = self.blocks[0].attention.heads
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
        chosen = choose(
            (
                cache.beams,
                shared.source,
                shared.source_bias,
                shared.lengths,
                shared.output.pointer,
            ),
            documents,
        )
        beams, source, bias, lengths, pointer = chosen
        output = shared.output._replace(pointer=pointer)
        return Cache(
            beams,
            shared._replace(
                past=past,
                source=source,
                source_bias=bias,
                lengths=lengths,
                output=output,
            ),
        )

    def step(self, tokens: Any, cache: Cache, index: Any) -> tuple[Any, Cache]:
        """Logits after one more token of each hypothesis: int32 [B, K] at position
        `index` -> float32 [B, K, V].
        """
        shared, width = cache.shared, self.config.width
        batch, beams = ops.shape(tokens)
        readable, place = open_slots(cache.beams.readable, shared.past, index)
        positions = shared.lengths[:, None] + index  # [B, 1]
        own_bias = readable[:, None] + self._relative(
            positions, shared.lengths[:, None] + shared.past.positions
        )
        every = ops.arange(ops.shape(shared.source_bias)[3], dtype="int32")[None]
        source_bias = shared.source_bias + self._relative(positions, every)
        inputs = self.input_layer.at(self.embedding(tokens), positions)  # [B, K, D]
        states = ops.reshape(inputs, (batch * beams, width))
        own = []
        for block, weights, past, source in zip(
            self.blocks, shared.weights, shared.past.own, shared.source, strict=True
        ):
            states, filled = step_block(
                block,
                weights,
                states,
                own=past,
                own_bias=own_bias,
                source=source,
                source_bias=source_bias,
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

    def _relative(self, queries: Any, keys: Any) -> Any:
        """What scores of tokens at some positions get for others, [..., H, T, S]; 0
        where positions are not relative.
        """
        return (
            self.relative_positions(queries, keys) if self.relative_positions else 0.0
        )

    def _normed(self, states: Any) -> Any:
        return self.last_norm(states) if self.last_norm else states


def source_lengths(source: Any, pad_id: int) -> Any:
    """Tokens of each source int32 [B, S], int32 [B]."""
    return ops.sum(ops.cast(ops.not_equal(source, pad_id), "int32"), axis=1)


def _over_heads(bias: Any, heads: int) -> Any:
    """[B, 1 or H, T, S] -> [B, H, T, S] for the given number of heads."""
    return bias if bias.shape[1] == heads else ops.repeat(bias, heads, axis=1)
