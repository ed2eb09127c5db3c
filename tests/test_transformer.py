"""The encoder-decoder: its formulas, its weights and its precision. For any network see
`test_step` and `test_generator`.
"""

import dataclasses

import keras
import numpy as np
import pytest
from keras import ops
from support.small_network import (
    SOURCE,
    TARGET,
    TRANSFORMERS,
    by_hand,
    make_network,
    network_of,
    small_config,
)

from precis.model.errors import UsageError
from precis.model.network import blocks, layers
from precis.model.network.build import build_network
from precis.model.network.config import StackConfig, TransformerConfig


def distribution(logits):
    return np.asarray(ops.softmax(logits))


@pytest.mark.parametrize("variant", TRANSFORMERS)
def test_the_whole_network_by_hand(variant):
    network = network_of(variant)
    expected = np.array(
        [document.probabilities for document in by_hand(network, SOURCE, TARGET)]
    )
    np.testing.assert_allclose(
        distribution(network(SOURCE, TARGET)), expected, atol=1e-5
    )
    assert np.ptp(expected, axis=-1).min() > 0.03  # far from uniform


@pytest.mark.parametrize(
    "variant",
    [
        name
        for name, settings in TRANSFORMERS.items()
        if not settings.get("pointer", True)
    ],
)
def test_without_a_pointer_logits_are_the_output_layer_s(variant):
    """The logits themselves: a constant shift would not show in the distribution."""
    network = network_of(variant)
    expected = [document.logits for document in by_hand(network, SOURCE, TARGET)]
    np.testing.assert_allclose(np.asarray(network(SOURCE, TARGET)), expected, atol=2e-5)


@pytest.mark.parametrize("settings", [{}, {"positions": "learned"}])
def test_the_longest_source_and_target_have_positions(settings):
    network = make_network(
        max_source_tokens=6, max_target_tokens=7, **settings
    )  # the target has a start token besides
    assert np.isfinite(np.asarray(network(SOURCE, TARGET))).all()
    assert network.source_input.positions.shape == (
        6,
        8,
    ) and network.target_input.positions.shape == (8, 8)
    cache = network.start(network.encode(SOURCE), 1, 8)
    logits, _ = network.step(TARGET[:, :1], cache, ops.convert_to_tensor(7, "int32"))
    assert np.isfinite(np.asarray(logits)).all()


def test_training_reaches_every_dropout(monkeypatch):
    network = make_network(decoder_layers=1, convolutional_gate=True)
    calls, call = [], layers.Dropout.call
    monkeypatch.setattr(
        layers.Dropout,
        "call",
        lambda self, x, training=False: (
            calls.append((id(self), training)) or call(self, x, training)
        ),
    )
    network(SOURCE, TARGET, training=True)
    parts = [network.source_input, network.target_input, network.convolutional_gate]
    parts += [
        part
        for block in network.encoder
        for part in (block.attention_residual, block.feed_forward_residual)
    ]
    parts += [
        part
        for block in network.decoder
        for part in (
            block.self_residual,
            block.cross_residual,
            block.feed_forward_residual,
        )
    ]
    assert (
        sorted(calls) == sorted((id(part.dropout), True) for part in parts)
        and len(parts) == 3 + 4 + 3
    )


# The weights of a network that has the defaults: bundles hold these, and a change of
# them would make them unreadable.
def attention(width, inner, *, memory=None, biases=True):
    """The shapes of the weights of an attention."""
    shapes = {
        "query": (width, inner),
        "key": (memory or width, inner),
        "value": (memory or width, inner),
        "output": (inner, width),
    }
    held = {f"{name}/kernel": shape for name, shape in shapes.items()}
    return held | (
        {f"{name}/bias": shape[1:] for name, shape in shapes.items()} if biases else {}
    )


def feed_forward(width, inner, *parts, biases=True):
    shapes = {part: (width, inner) for part in parts} | {"outer": (inner, width)}
    return {f"{name}/kernel": shape for name, shape in shapes.items()} | (
        {f"{name}/bias": shape[1:] for name, shape in shapes.items()} if biases else {}
    )


NORM, RMS_NORM = {"gamma": (4,), "beta": (4,)}, {"scale": (4,)}
IN_NORM = {f"norm/{name}": shape for name, shape in NORM.items()}
ENCODER = {
    "encoder_0/attention": attention(4, 4),
    "encoder_0/attention_residual": IN_NORM,
    "encoder_0/feed_forward": feed_forward(4, 6, "inner"),
    "encoder_0/feed_forward_residual": IN_NORM,
}
DECODER = {
    "decoder_0/self_attention": attention(4, 4),
    "decoder_0/self_residual": IN_NORM,
    "decoder_0/cross_attention": attention(4, 4),
    "decoder_0/cross_residual": IN_NORM,
    "decoder_0/feed_forward": feed_forward(4, 6, "inner"),
    "decoder_0/feed_forward_residual": IN_NORM,
}
TABLE = {"embedding": {"table": (11, 4)}}
POINTER = {
    "query/kernel": (4, 4),
    "query/bias": (4,),
    "key/kernel": (4, 4),
    "key/bias": (4,),
    "gate/kernel": (12, 1),
    "gate/bias": (1,),
}
PLAIN = {**TABLE, **ENCODER, **DECODER}
T5 = {
    "positions": "relative",
    "norm_first": True,
    "rms_norm": True,
    "biases": False,
    "gated_feed_forward": True,
    "head_width": 3,
}
IN_RMS_NORM = {"norm/scale": (4,)}
OTHER = StackConfig(
    vocabulary_size=7,
    pad_id=0,
    width=6,
    feed_forward=5,
    heads=3,
    norm_first=True,
    positions="relative",
    relative_buckets=9,
)
IN_OTHER = {"norm/gamma": (6,), "norm/beta": (6,)}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {**PLAIN, "pointer": POINTER}),
        ({"coverage": True}, {**PLAIN, "pointer": {**POINTER, "coverage_weight": ()}}),
        ({"pointer": False}, PLAIN),
        (
            {"pointer": False, "tied_output": False},
            {**PLAIN, "output_layer": {"kernel": (4, 11), "bias": (11,)}},
        ),
        (
            {"pointer": False, "logits_bias": True},
            {**PLAIN, "embedding": {"table": (11, 4), "logits_bias": (11,)}},
        ),
        (
            {
                "pointer": False,
                "positions": "learned",
                "embedding_norm": True,
                "max_target_tokens": 30,
            },
            {
                **PLAIN,
                "source_input": {"positions": (512, 4), **IN_NORM},
                "target_input": {"positions": (31, 4), **IN_NORM},
            },
        ),
        (
            {"pointer": False, "norm_first": True},
            {**PLAIN, "encoder_norm": NORM, "decoder_norm": NORM},
        ),
        (
            {"pointer": False, "convolutional_gate": True},
            {
                **PLAIN,
                "convolutional_gate/attention": attention(4, 4),
                "convolutional_gate/join": {"kernel": (12, 4), "bias": (4,)},
                "convolutional_gate/convolution_1": {"kernel": (1, 4, 4), "bias": (4,)},
                **{
                    f"convolutional_gate/convolution_{name}": {
                        "kernel": (3, 4, 4),
                        "bias": (4,),
                    }
                    for name in ("3", "5_inner", "5_outer")
                },
            },
        ),
        (
            {"pointer": False, "tied_output": False, **T5},
            {
                **TABLE,
                "encoder_positions": {"table": (32, 2)},
                "decoder_positions": {"table": (32, 2)},
                **{f"{name}_norm": RMS_NORM for name in ("encoder", "decoder")},
                **{part: IN_RMS_NORM for part in PLAIN if part.endswith("residual")},
                **{
                    part: attention(4, 6, biases=False)
                    for part in PLAIN
                    if part.endswith("attention")
                },
                **{
                    part: feed_forward(4, 6, "inner", "gate", biases=False)
                    for part in PLAIN
                    if part.endswith("feed_forward")
                },
                "output_layer": {"kernel": (4, 11)},
            },
        ),
        (
            {
                "pointer": False,
                "shared_embedding": False,
                "logits_bias": True,
                "decoder_stack": OTHER,
            },
            {
                **TABLE,
                **ENCODER,
                "target_embedding": {"table": (7, 6), "logits_bias": (7,)},
                "decoder_positions": {"table": (9, 3)},
                "decoder_norm": {"gamma": (6,), "beta": (6,)},
                "decoder_0/self_attention": attention(6, 6),
                "decoder_0/cross_attention": attention(6, 6, memory=4),
                "decoder_0/feed_forward": feed_forward(6, 5, "inner"),
                **{
                    f"decoder_0/{name}_residual": IN_OTHER
                    for name in ("self", "cross", "feed_forward")
                },
            },
        ),
    ],
)
def test_weights_have_the_names_that_bundles_hold(settings, expected):
    network = build_network(
        TransformerConfig(
            vocabulary_size=11,
            pad_id=0,
            encoder_layers=1,
            decoder_layers=1,
            width=4,
            feed_forward=6,
            heads=2,
            **settings,
        )
    )
    kwargs = {
        f"transformer/{part}/{name}": shape
        for part, held in expected.items()
        for name, shape in held.items()
    }
    assert {weight.path: tuple(weight.shape) for weight in network.weights} == kwargs


def test_heads_must_divide_the_width():
    with pytest.raises(
        UsageError,
        match="the width must be a multiple of the number of heads, "
        "but 8 is not one of 3; take 6",
    ):
        build_network(dataclasses.replace(small_config(), heads=3))


@pytest.mark.parametrize(
    ("variant", "inputs", "ends"), [("pointer", 0, 0), ("bart", 2, 0), ("t5", 0, 2)]
)
def test_the_residual_stream_norms_and_softmax_are_float32(
    variant, inputs, ends, monkeypatch
):
    """Besides the norms of the residuals there are norms of the input of the first
    blocks and of the output of the last ones.
    """
    network = network_of(variant, "mixed_bfloat16")
    dtypes = {"stream": [], "norm": [], "softmax": [], "sublayer": []}

    def watch(owner, name, part, *, place):
        original = getattr(owner, name)

        def watched(*args, **kwargs):
            result = original(*args, **kwargs)
            first = result[0] if isinstance(result, tuple) else result
            dtypes[part] += [
                keras.backend.standardize_dtype(tensor.dtype)
                for tensor in (args[place], first)
            ]
            return result

        monkeypatch.setattr(owner, name, watched, raising=False)

    # As the block hands it over, before the layer casts it: what is bfloat16 here has
    # lost its digits.
    watch(layers.Residual, "__call__", "stream", place=1)
    watch(blocks.EncoderBlock, "call", "stream", place=1)
    watch(blocks.DecoderBlock, "call", "stream", place=1)
    watch(
        keras.layers.RMSNormalization if variant == "t5" else layers.LayerNorm,
        "call",
        "norm",
        place=1,
    )
    watch(layers.Linear, "call", "sublayer", place=1)
    watch(ops, "softmax", "softmax", place=0)
    network(SOURCE, TARGET)
    decoder = network.config.decoder_layers
    attentions, residuals = 2 + 2 * decoder, 4 + 3 * decoder
    assert dtypes["stream"] == ["float32"] * 2 * (residuals + 2 + decoder)
    assert dtypes["norm"] == ["float32"] * 2 * (residuals + inputs + ends)
    assert dtypes["softmax"] == ["float32"] * 2 * (
        attentions + (2 if network.pointer else 0)
    )
    assert (
        set(dtypes["sublayer"]) == {"bfloat16"}
        and len(dtypes["sublayer"]) > 8 * attentions
    )  # what they multiply is half as wide
    assert network.encode(SOURCE).states.dtype == "float32"
