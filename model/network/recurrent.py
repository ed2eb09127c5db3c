"""A recurrent encoder-decoder with attention: GRU or LSTM, the scores of Luong et al.
2015 or of Bahdanau et al. 2015, input feeding.

A step reads the embedding of the last token and, with input feeding, the output of the
step before. The cells step, their last state attends to the memory, and state and
context together become the output:

    h_t = cells([x_t ; a_{t-1}])
    weights = softmax(score(h_t, memory))
    a_t = tanh(W [weights memory ; h_t])

The recurrences compute in float32 whatever the precision of the network.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import keras
from keras import ops

from precis.model.cache import Cache
from precis.model.network.config import RecurrentConfig
from precis.model.network.convolutional_gate import ConvolutionalGate
from precis.model.network.generator import AttentionMap, Generator, Memory
from precis.model.network.layers import (
    Dropout,
    Linear,
    padding_mask,
    score_bias,
    source_tokens,
)
from precis.model.network.positions import TokenEmbedding

# The layer and the cell of each kind, and the number of tensors in a cell's state.
_CELLS: Mapping[str, tuple[Callable[..., Any], Callable[..., Any], int]] = {
    "gru": (keras.layers.GRU, keras.layers.GRUCell, 1),
    "lstm": (keras.layers.LSTM, keras.layers.LSTMCell, 2),
}


class DecoderStart(NamedTuple):
    """The decoder's inputs besides the states of the memory.

    Attributes:
      keys: [B, S, D], of the states.
      cells: the first states of all cells, each [B, D].
    """

    keys: Any
    cells: tuple[Any, ...]


class DecoderState(NamedTuple):
    """The state of hypotheses between two steps.

    Attributes:
      cells: the states of all cells, each float32 [B, K, D].
      output: of the last step, float32 [B, K, D].
    """

    cells: tuple[Any, ...]
    output: Any


class Scores(keras.layers.Layer):
    """Attention scores of decoder states h over memory states m.

    h W m (Luong et al. 2015, "general") or v tanh(W h + U m) (Bahdanau et al. 2015).
    """

    def __init__(self, *, width: int, is_additive: bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.width = width
        self.key = Linear(width, name="key", dtype="float32", use_bias=is_additive)
        self.query = None
        self.score = None
        if is_additive:
            self.query = Linear(width, name="query", dtype="float32", use_bias=False)
            self.score = Linear(1, name="score", dtype="float32", use_bias=False)

    def build(self, _: Any = None) -> None:
        for part in (self.key, self.query, self.score):
            if part is not None:
                part.build((None, None, self.width))
        self.built = True

    def call(self, states: Any, keys: Any) -> Any:
        """States [B, K, D] and keys [B, S, D] -> float32 [B, K, S]."""
        if self.query is None or self.score is None:
            return ops.matmul(states, ops.swapaxes(keys, 1, 2))
        hidden = ops.tanh(self.query(states)[:, :, None] + keys[:, None])
        return self.score(hidden)[..., 0]


class Recurrent(Generator):
    """One network for all cells, scores and feedings that `RecurrentConfig` names."""

    config: RecurrentConfig

    def __init__(self, config: RecurrentConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        _, cell, self.state_tensors = _CELLS[config.cell]
        width, dropout = config.width, config.dropout
        self.embedding = TokenEmbedding(
            vocabulary_size=config.vocabulary_size,
            width=width,
            is_scaled=True,
            name="embedding",
        )
        self.input_dropout = Dropout(dropout, name="input_dropout", dtype="float32")
        self.encoder = [
            _encoder_layer(config, name=f"encoder_{i}")
            for i in range(config.encoder_layers)
        ]
        self.convolutional_gate = None
        if config.convolutional_gate:
            self.convolutional_gate = ConvolutionalGate(
                width=width, dropout=dropout, name="convolutional_gate"
            )
        self.bridges = [
            Linear(width, name=f"bridge_{i}", dtype="float32")
            for i in range(config.decoder_layers * self.state_tensors)
        ]
        self.cells = [
            cell(width, name=f"decoder_{i}", dtype="float32")
            for i in range(config.decoder_layers)
        ]
        self.scores = Scores(
            width=width,
            is_additive=config.attention == "bahdanau",
            name="attention",
            dtype="float32",
        )
        self.join = Linear(width, name="join", dtype="float32")
        self.output_dropout = Dropout(dropout, name="output_dropout", dtype="float32")
        self.add_output(self.embedding, memory_width=width)

    def build(self, _: Any = None) -> None:
        width = self.config.width
        for part in (
            self.embedding,
            *self.encoder,
            self.convolutional_gate,
            self.scores,
        ):
            if part is not None:
                part.build((None, None, width))
        for bridge in self.bridges:
            bridge.build((None, width))
        for layer, cell in enumerate(self.cells):
            is_fed = self.config.input_feeding and layer == 0
            cell.build((None, 2 * width if is_fed else width))
        self.join.build((None, None, 2 * width))
        self.build_output()
        self.built = True

    def encoder_parts(self) -> list[keras.layers.Layer]:
        """As in `Generator`."""
        return list(self.encoder)

    def encode_with_attention(
        self, source: Any, training: bool = False
    ) -> tuple[Memory, list[AttentionMap]]:
        """As in `Generator`; recurrent layers have no attention maps."""
        mask = padding_mask(source)
        tokens = source_tokens(source, self.config.pad_id)
        states = self.input_dropout(self.embedding(tokens), training=training)
        for layer in self.encoder:
            states, *last = layer(states, mask=mask[:, 0, 0], training=training)
        # Keras attaches the mask to the states, and layers that do not support masks
        # warn about it. A reshaped tensor has none.
        states = ops.reshape(states, ops.shape(states))
        first_cells = self._first_cells(last)
        if self.convolutional_gate:
            bias = score_bias(mask)
            states = self.convolutional_gate(states, bias, training=training)
        start = DecoderStart(self.scores.key(states), first_cells)
        return Memory(states, tokens, mask, start), []

    def decode(
        self, target: Any, memory: Memory, training: bool = False
    ) -> tuple[Any, Any, list[AttentionMap]]:
        """As in `Generator`."""
        inputs = self.input_dropout(self.embedding(target), training=training)
        source_bias = score_bias(memory.mask)[:, 0]
        keys = memory.decoder_inputs.keys

        def advance(carry: tuple[DecoderState, Any], tokens: Any) -> tuple[Any, Any]:
            after = self._advance(
                tokens[:, None], carry[0], memory.states, keys, source_bias
            )
            return after, after

        start = (self._first_state(memory, 1), ops.zeros_like(source_bias))
        _, (states, weights) = ops.scan(advance, start, ops.swapaxes(inputs, 0, 1))
        outputs = ops.swapaxes(states.output[:, :, 0], 0, 1)  # [B, T, D]
        outputs = self.output_dropout(outputs, training=training)
        attention = ops.swapaxes(weights, 0, 1)[:, None, :, 0]  # [B, 1, T, S]
        return (
            outputs,
            inputs,
            [AttentionMap("cross", 0, attention, "target", "source")],
        )

    def start(
        self, memory: Memory, beams: int, length: int, *, counts_coverage: bool = False
    ) -> Cache:
        """As in `Generator`; a recurrent network needs no room."""
        coverage = self.start_coverage(memory, beams, counts_coverage=counts_coverage)
        return Cache(
            per_beam={
                "state": self._first_state(memory, beams),
                "coverage": coverage,
            },
            per_document={
                "source_states": memory.states,
                "source_keys": memory.decoder_inputs.keys,
                "source_mask": memory.mask,
                "pointer": self.start_pointer(memory),
            },
            shared={"output": self.prepare_output()},
        )

    def step(self, tokens: Any, cache: Cache, index: Any) -> tuple[Any, Cache]:
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
        logits, coverage = self.step_output(state.output, inputs, cache)
        return logits, cache._replace(per_beam={"state": state, "coverage": coverage})

    def _first_cells(self, last: list[Any]) -> tuple[Any, ...]:
        """The first states of the decoder's cells, each [B, D], from the last states of
        the last encoder layer: all tensors forwards, then all backwards, [B, D/2].
        """
        forwards, backwards = last[: self.state_tensors], last[self.state_tensors :]
        ends = [
            ops.concatenate(pair, axis=-1)
            for pair in zip(forwards, backwards, strict=True)
        ]
        return tuple(
            ops.tanh(bridge(ends[i % self.state_tensors]))
            for i, bridge in enumerate(self.bridges)
        )

    def _first_state(self, memory: Memory, beams: int) -> DecoderState:
        cells = tuple(
            ops.repeat(cell[:, None], beams, axis=1)
            for cell in memory.decoder_inputs.cells
        )
        return DecoderState(cells, ops.zeros_like(cells[0]))

    def _advance(
        self, inputs: Any, state: DecoderState, memory: Any, keys: Any, bias: Any
    ) -> tuple[DecoderState, Any]:
        """Moves K hypotheses by one step.

        Args:
          inputs: [B, K, D].
          state: before the step.
          memory: [B, S, D].
          keys: of the memory, [B, S, D].
          bias: float32 [B, 1, S], MASKED at padding.

        Returns:
          The state after the step, and the attention weights, float32 [B, K, S].
        """
        batch, beams, width = ops.shape(inputs)
        if self.config.input_feeding:
            inputs = ops.concatenate([inputs, state.output], axis=-1)
        rows = ops.reshape(inputs, (-1, inputs.shape[-1]))
        before = [ops.reshape(cell, (-1, width)) for cell in state.cells]
        after: list[Any] = []
        for layer, cell in enumerate(self.cells):
            first = layer * self.state_tensors
            rows, new = cell(rows, before[first : first + self.state_tensors])
            after += new
        hidden = ops.reshape(rows, (batch, beams, width))
        weights = ops.softmax(self.scores(hidden, keys) + bias)
        context = ops.matmul(weights, ops.cast(memory, "float32"))
        output = ops.tanh(self.join(ops.concatenate([context, hidden], axis=-1)))
        cells = tuple(ops.reshape(cell, (batch, beams, width)) for cell in after)
        return DecoderState(cells, output), weights


def _encoder_layer(config: RecurrentConfig, *, name: str) -> keras.layers.Layer:
    layer, _, _ = _CELLS[config.cell]
    half = layer(
        config.width // 2,
        return_sequences=True,
        return_state=True,
        name=config.cell,
        dtype="float32",
    )
    return keras.layers.Bidirectional(half, name=name, dtype="float32")
