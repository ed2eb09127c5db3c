"""A recurrent encoder-decoder with attention: GRU or LSTM, the scores of Luong et al.
2015 or of Bahdanau et al. 2015, input feeding.

A step reads the embedding of the last token and, with input feeding, what the step
before made; the cells step, their last state reads the memory, and state and context
together become what the output layer sees:

    h_t = cells([x_t ; a_{t-1}])     weights = softmax(score(h_t, memory))     a_t = tanh(W [weights memory ; h_t])

The recurrences compute in float32 whatever the precision of the network.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import keras
from keras import ops

from precis.model.network.config import RecurrentConfig
from precis.model.network.convolutional_gate import ConvolutionalGate
from precis.model.network.generator import (
    AttentionMap,
    Cache,
    Generator,
    Memory,
    Output,
)
from precis.model.network.layers import Dropout, Linear, padding_mask, score_bias
from precis.model.network.positions import TokenEmbedding
from precis.model.network.transformer import choose

# The layer and the cell of each kind, and how many tensors the state of a cell has.
_CELLS: Mapping[str, tuple[Callable[..., Any], Callable[..., Any], int]] = {
    "gru": (keras.layers.GRU, keras.layers.GRUCell, 1),
    "lstm": (keras.layers.LSTM, keras.layers.LSTMCell, 2),
}


class Read(NamedTuple):
    """What the decoder reads of a source besides the states: their keys [B, S, D], and
    its first states, each [B, D].
    """

    keys: Any
    first: tuple[Any, ...]


class State(NamedTuple):
    """Where hypotheses stand: the states of all cells and what the last step made, all
    float32 [B, K, D].
    """

    cells: tuple[Any, ...]
    made: Any


class Beams(NamedTuple):
    """What belongs to a hypothesis: its state, and its coverage float32 [B, K, S] or ()
    where nobody counts it.
    """

    state: State
    coverage: Any


class Shared(NamedTuple):
    """The shared part of the cache: the memory and its keys, both [B, S, D], its bias
    float32 [B, 1, S], the end of the network.
    """

    states: Any
    keys: Any
    source_bias: Any
    output: Output


class Scores(keras.layers.Layer):
    """How well states fit the memory: h W m (Luong et al. 2015, "general") or v tanh(W
    h + U m) (Bahdanau et al. 2015).
    """

    def __init__(self, *, width: int, is_additive: bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.width = width
        self.key = Linear(width, name="key", dtype="float32", use_bias=is_additive)
        self.query = (
            Linear(width, name="query", dtype="float32", use_bias=False)
            if is_additive
            else None
        )
        self.score = (
            Linear(1, name="score", dtype="float32", use_bias=False)
            if is_additive
            else None
        )

    def build(self, _: Any = None) -> None:
        for part in (self.key, self.query, self.score):
            if part is not None:
                part.build((None, None, self.width))
        self.built = True

    def call(self, states: Any, keys: Any) -> Any:
        """States [B, K, D] and keys [B, S, D] -> float32 [B, K, S]."""
        if self.query is None or self.score is None:
            return ops.matmul(states, ops.swapaxes(keys, 1, 2))
        return self.score(ops.tanh(self.query(states)[:, :, None] + keys[:, None]))[
            ..., 0
        ]


class Recurrent(Generator):
    """One network for all cells, scores and feedings that `RecurrentConfig` names."""

    config: RecurrentConfig

    def __init__(self, config: RecurrentConfig, **kwargs: Any) -> None:
        super().__init__(config, **kwargs)
        layer, cell, tensors = _CELLS[config.cell]
        width, self.state_tensors = config.width, tensors
        self.embedding = TokenEmbedding(
            vocabulary_size=config.vocabulary_size,
            width=width,
            is_scaled=True,
            name="embedding",
        )
        self.input_dropout = Dropout(
            config.dropout, name="input_dropout", dtype="float32"
        )
        self.encoder = [
            keras.layers.Bidirectional(
                layer(
                    width // 2,
                    return_sequences=True,
                    return_state=True,
                    name=config.cell,
                    dtype="float32",
                ),
                name=f"encoder_{i}",
                dtype="float32",
            )
            for i in range(config.encoder_layers)
        ]
        self.convolutional_gate = None
        if config.convolutional_gate:
            self.convolutional_gate = ConvolutionalGate(
                width=width, dropout=config.dropout, name="convolutional_gate"
            )
        count = config.decoder_layers * tensors
        self.bridges = [
            Linear(width, name=f"bridge_{i}", dtype="float32") for i in range(count)
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
        self.output_dropout = Dropout(
            config.dropout, name="output_dropout", dtype="float32"
        )
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
            cell.build(
                (None, 2 * width if self.config.input_feeding and not layer else width)
            )
        self.join.build((None, None, 2 * width))
        self.build_output()
        self.built = True

    def encoder_parts(self) -> list[keras.layers.Layer]:
        """As in `Generator`."""
        return list(self.encoder)

    def encode_seen(
        self, source: Any, training: bool = False
    ) -> tuple[Memory, list[AttentionMap]]:
        """As in `Generator`; recurrent layers read one token after the other and have
        no weights to show.
        """
        mask = padding_mask(source, self.config.pad_id)
        bias, is_text = score_bias(mask), mask[:, 0, 0]
        states = self.input_dropout(self.embedding(source), training=training)
        for layer in self.encoder:
            states, *last = layer(states, mask=is_text, training=training)
        states = ops.reshape(
            states, ops.shape(states)
        )  # Keras hangs the mask on it, and layers that know of none complain
        # Forward and backward each have `state_tensors` last states.
        ends = [
            ops.concatenate(pair, axis=-1)
            for pair in zip(
                last[: self.state_tensors], last[self.state_tensors :], strict=True
            )
        ]
        first = tuple(
            ops.tanh(bridge(ends[i % self.state_tensors]))
            for i, bridge in enumerate(self.bridges)
        )
        if self.convolutional_gate:
            states = self.convolutional_gate(states, bias, training=training)
        return Memory(states, source, bias, Read(self.scores.key(states), first)), []

    def decode(
        self, target: Any, memory: Memory, training: bool = False
    ) -> tuple[Any, Any, list[AttentionMap]]:
        """As in `Generator`."""
        inputs = self.input_dropout(self.embedding(target), training=training)
        bias = memory.bias[:, 0]

        def advance(carry: tuple[State, Any], tokens: Any) -> tuple[Any, Any]:
            after = self._advance(
                tokens[:, None], carry[0], memory.states, memory.blocks.keys, bias
            )
            return after, after

        first = self._first_state(memory, 1)
        start = (first, ops.zeros_like(bias))
        _, (states, weights) = ops.scan(advance, start, ops.swapaxes(inputs, 0, 1))
        made = self.output_dropout(
            ops.swapaxes(states.made[:, :, 0], 0, 1), training=training
        )  # [B, T, D]
        read = ops.swapaxes(weights, 0, 1)[:, None, :, 0]  # [B, 1, T, S]
        return made, inputs, [AttentionMap("cross", 0, read, "target", "source")]

    def start(
        self, memory: Memory, beams: int, length: int, *, counts_coverage: bool = False
    ) -> Cache:
        """The first states of `beams` hypotheses; they need no room."""
        coverage = self.start_coverage(memory, beams, counts_coverage=counts_coverage)
        shared = Shared(
            memory.states,
            memory.blocks.keys,
            memory.bias[:, 0],
            self.start_output(memory),
        )
        return Cache(Beams(self._first_state(memory, beams), coverage), shared)

    def grow(self, cache: Cache, *, written: Any, more: int) -> Cache:
        """The cache as it is."""
        return cache

    def narrow(self, cache: Cache, documents: Any) -> Cache:
        """The cache of some of the documents, int32 [N]."""
        shared = cache.shared
        parts = (
            cache.beams,
            shared.states,
            shared.keys,
            shared.source_bias,
            shared.output.pointer,
        )
        beams, states, keys, bias, pointer = choose(parts, documents)
        return Cache(
            beams, Shared(states, keys, bias, shared.output._replace(pointer=pointer))
        )

    def step(self, tokens: Any, cache: Cache, index: Any) -> tuple[Any, Cache]:
        """Logits after one more token of each hypothesis: int32 [B, K] at position
        `index` -> float32 [B, K, V].
        """
        shared, inputs = cache.shared, self.embedding(tokens)
        state, _ = self._advance(
            inputs, cache.beams.state, shared.states, shared.keys, shared.source_bias
        )
        logits, coverage = self.step_output(
            state.made, inputs, shared.output, cache.beams.coverage
        )
        return logits, Cache(Beams(state, coverage), shared)

    def _first_state(self, memory: Memory, beams: int) -> State:
        first = tuple(
            ops.repeat(state[:, None], beams, axis=1) for state in memory.blocks.first
        )
        return State(first, ops.zeros_like(first[0]))

    def _advance(
        self, inputs: Any, state: State, memory: Any, keys: Any, bias: Any
    ) -> tuple[State, Any]:
        """One step of hypotheses: inputs [B, K, D] -> the state after it, and what it
        read, float32 [B, K, S].
        """
        batch, beams, width = ops.shape(inputs)
        reads = (
            ops.concatenate([inputs, state.made], axis=-1)
            if self.config.input_feeding
            else inputs
        )
        rows = ops.reshape(reads, (-1, reads.shape[-1]))
        past = [ops.reshape(one, (-1, width)) for one in state.cells]
        after: list[Any] = []
        for layer, cell in enumerate(self.cells):
            rows, new = cell(
                rows,
                past[layer * self.state_tensors : (layer + 1) * self.state_tensors],
            )
            after += new
        hidden = ops.reshape(rows, (batch, beams, width))
        weights = ops.softmax(self.scores(hidden, keys) + bias)
        context = ops.matmul(weights, ops.cast(memory, "float32"))
        made = ops.tanh(self.join(ops.concatenate([context, hidden], axis=-1)))
        return State(
            tuple(ops.reshape(one, (batch, beams, width)) for one in after), made
        ), weights
