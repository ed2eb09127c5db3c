"""A recurrent encoder-decoder: GRUs, the attention of Luong et al. 2015 and input
feeding.

The cells read the embedding of the last token and the output of the previous step. The
new state of the last cell attends to the memory, and state and context together give
the output:

    h_t = cells([x_t ; a_{t-1}])
    weights = softmax(h_t W memory)
    a_t = tanh(W [weights memory ; h_t])

The recurrences always compute in float32.
"""

import functools
from typing import Any

import keras

from precis.model.backend import Tensor, ops
from precis.model.cache import Cache
from precis.model.network.config import RecurrentConfig
from precis.model.network.convolutional_gate import ConvolutionalGate
from precis.model.network.generator import AttentionMap, Generator
from precis.model.network.layers import (
    Dropout,
    Linear,
    Memory,
    build_parts,
    padding_mask,
    score_bias,
    source_tokens,
)
from precis.model.network.positions import TokenEmbedding

# The state of hypotheses between two steps: the states of all cells and the output of
# the last step, each float32 [B, K, D].
State = tuple[tuple[Tensor, ...], Tensor]


class Recurrent(Generator):
    """Bidirectional GRUs as the encoder, GRU cells as the decoder."""

    config: RecurrentConfig

    def __init__(self, config: RecurrentConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        width, dropout = config.width, config.dropout
        self.embedding = TokenEmbedding(config, name="embedding")
        self.input_dropout = Dropout(dropout, name="input_dropout", dtype="float32")
        gru = functools.partial(
            keras.layers.GRU,
            width // 2,
            return_sequences=True,
            return_state=True,
            dtype="float32",
        )
        both_ways = functools.partial(keras.layers.Bidirectional, dtype="float32")
        self.encoder = [
            both_ways(gru(name="gru"), name=f"encoder_{i}")
            for i in range(config.encoder_layers)
        ]
        self.convolutional_gate = None
        if config.convolutional_gate:
            self.convolutional_gate = ConvolutionalGate(config)
        self.bridges = [
            Linear(width, name=f"bridge_{i}", dtype="float32")
            for i in range(config.decoder_layers)
        ]
        self.cells = [
            keras.layers.GRUCell(width, name=f"decoder_{i}", dtype="float32")
            for i in range(config.decoder_layers)
        ]
        self.key = Linear(width, name="key", dtype="float32", use_bias=False)
        self.join = Linear(width, name="join", dtype="float32")
        self.output_dropout = Dropout(dropout, name="output_dropout", dtype="float32")
        self.add_output(self.embedding, memory_width=width)

    def build(self, _: Any = None) -> None:
        width = self.config.width
        build_parts([self.embedding, *self.encoder, self.convolutional_gate], width)
        with keras.name_scope("attention"):
            self.key.build((None, None, width))
        for bridge in self.bridges:
            bridge.build((None, width))
        for layer, cell in enumerate(self.cells):
            cell.build((None, width if layer else 2 * width))
        self.join.build((None, None, 2 * width))
        self.build_output()
        self.built = True

    def encoder_parts(self) -> list[keras.layers.Layer]:
        """As in `Generator`."""
        return list(self.encoder)

    def encode_with_attention(
        self, source: Tensor, training: bool = False
    ) -> tuple[Memory, list[AttentionMap]]:
        """As in `Generator`; recurrent layers have no attention maps. `decoder_inputs`
        of the memory are its keys [B, S, D] and the initial states of all cells, each
        [B, D].
        """
        mask = padding_mask(source)
        tokens = source_tokens(source, self.config.pad_id)
        states = self.input_dropout(self.embedding(tokens), training=training)
        for layer in self.encoder:
            states, *last = layer(states, mask=mask[:, 0, 0], training=training)
        # Keras attaches the mask to the states, and layers that do not support masks
        # warn about it. The reshape drops the mask.
        states = ops.reshape(states, ops.shape(states))
        end = ops.concatenate(last, axis=-1)  # of both directions
        first_cells = tuple(ops.tanh(bridge(end)) for bridge in self.bridges)
        if self.convolutional_gate:
            bias = score_bias(mask)
            states = self.convolutional_gate(states, bias, training=training)
        return Memory(states, tokens, mask, (self.key(states), first_cells)), []

    def decode(
        self, target: Tensor, memory: Memory, training: bool = False
    ) -> tuple[Tensor, Tensor, list[AttentionMap]]:
        """As in `Generator`."""
        inputs = self.input_dropout(self.embedding(target), training=training)
        source_bias = memory.source_bias
        keys, _ = memory.decoder_inputs

        def advance(
            carry: tuple[State, Tensor], tokens: Tensor
        ) -> tuple[Tensor, Tensor]:
            after = self._advance(
                tokens[:, None], carry[0], memory.states, keys, source_bias
            )
            return after, after

        start = (_first_state(memory, 1), ops.zeros_like(source_bias))
        _, ((_, outputs), weights) = ops.scan(
            advance, start, ops.swapaxes(inputs, 0, 1)
        )
        outputs = ops.swapaxes(outputs[:, :, 0], 0, 1)  # [B, T, D]
        outputs = self.output_dropout(outputs, training=training)
        attention = ops.swapaxes(weights, 0, 1)[:, None, :, 0]  # [B, 1, T, S]
        cross = AttentionMap("cross", 0, attention, "target", "source")
        return outputs, inputs, [cross]

    def start(self, memory: Memory, beams: int, length: int) -> Cache:
        """As in `Generator`; `length` is ignored."""
        keys, _ = memory.decoder_inputs
        return Cache(
            per_beam={"state": _first_state(memory, beams)},
            per_document={
                "source_states": memory.states,
                "source_keys": keys,
                "source_mask": memory.mask,
                "pointer": self.pointer.start(memory) if self.pointer else (),
            },
            shared={"output": self.prepare_output()},
        )

    def step(self, tokens: Tensor, cache: Cache, index: Tensor) -> tuple[Tensor, Cache]:
        """As in `Generator`."""
        source = cache.per_document
        inputs = self.embedding(tokens)
        state, _ = self._advance(
            inputs,
            cache.per_beam["state"],
            source["source_states"],
            source["source_keys"],
            score_bias(source["source_mask"])[:, 0],
        )
        logits = self.step_output(state[1], inputs, cache)
        return logits, cache._replace(per_beam={"state": state})

    def _advance(
        self, inputs: Tensor, state: State, memory: Tensor, keys: Tensor, bias: Tensor
    ) -> tuple[State, Tensor]:
        """Moves K hypotheses by one step.

        Args:
          inputs: [B, K, D].
          state: the state before the step.
          memory: [B, S, D].
          keys: the keys of the memory, [B, S, D].
          bias: float32 [B, 1, S], MASKED at padding.

        Returns:
          The state after the step, and the attention weights, float32 [B, K, S].
        """
        batch, beams, width = ops.shape(inputs)
        before, output = state
        inputs = ops.concatenate([inputs, output], axis=-1)
        rows = ops.reshape(inputs, (-1, inputs.shape[-1]))
        after: list[Tensor] = []
        for cell, states in zip(self.cells, before, strict=True):
            rows, new = cell(rows, [ops.reshape(states, (-1, width))])
            after += new
        hidden = ops.reshape(rows, (batch, beams, width))
        scores = ops.matmul(hidden, ops.swapaxes(keys, 1, 2))
        weights = ops.softmax(scores + bias)
        context = ops.matmul(weights, ops.cast(memory, "float32"))
        output = ops.tanh(self.join(ops.concatenate([context, hidden], axis=-1)))
        cells = tuple(ops.reshape(cell, (batch, beams, width)) for cell in after)
        return (cells, output), weights


def _first_state(memory: Memory, beams: int) -> State:
    _, first_cells = memory.decoder_inputs
    cells = tuple(ops.repeat(cell[:, None], beams, axis=1) for cell in first_cells)
    return cells, ops.zeros_like(cells[0])
