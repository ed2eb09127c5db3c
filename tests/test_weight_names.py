"""The names and shapes of weights. Bundles hold these, and a change of them would make
bundles unreadable.
"""

import pytest

from precis.model.network.build import build_network
from precis.model.network.config import (
    DecoderOnlyConfig,
    RecurrentConfig,
    StackConfig,
    TransformerConfig,
)


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
def test_the_weights_of_an_encoder_decoder(settings, expected):
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


def shapes_of(**settings):
    shape = {
        "vocabulary_size": 11,
        "pad_id": 0,
        "layers": 1,
        "width": 4,
        "feed_forward": 6,
        "heads": 2,
    }
    network = build_network(DecoderOnlyConfig(**shape, **settings))
    return {
        weight.path.removeprefix("decoder_only/"): tuple(weight.shape)
        for weight in network.weights
    }


def test_the_weights_of_a_decoder_only_network():
    linear = {
        f"block_0/attention/{name}": (4, 4)
        for name in ("query", "key", "value", "output")
    }
    linear |= {
        "block_0/feed_forward/inner": (4, 6),
        "block_0/feed_forward/outer": (6, 4),
    }
    kernels = {f"{name}/kernel": shape for name, shape in linear.items()}
    biases = {f"{name}/bias": shape[1:] for name, shape in linear.items()}
    norms = {
        f"block_0/{part}_residual/norm/{name}": (4,)
        for part in ("attention", "feed_forward")
        for name in ("gamma", "beta")
    }
    pointer = {
        f"pointer/{name}": shape
        for name, shape in (
            ("query/bias", (4,)),
            ("key/bias", (4,)),
            ("gate/bias", (1,)),
        )
    }
    pointer |= {
        f"pointer/{name}/kernel": shape
        for name, shape in (("query", (4, 4)), ("key", (4, 4)), ("gate", (12, 1)))
    }
    plain_ones = {"embedding/table": (11, 4), **kernels, **biases, **norms}
    assert shapes_of() == {**plain_ones, **pointer}
    assert shapes_of(coverage=True) == {
        **plain_ones,
        **pointer,
        "pointer/coverage_weight": (),
    }
    learned = {
        "input_layer/positions": (512 + 128 + 1, 4),
        "input_layer/norm/gamma": (4,),
        "input_layer/norm/beta": (4,),
    }
    assert shapes_of(pointer=False, positions="learned", embedding_norm=True) == {
        **plain_ones,
        **learned,
    }
    last = {
        "last_norm/gamma": (4,),
        "last_norm/beta": (4,),
        "relative_positions/table": (32, 2),
    }
    assert shapes_of(pointer=False, positions="relative", norm_first=True) == {
        **plain_ones,
        **last,
    }
    untied = {
        "embedding/table": (11, 4),
        **kernels,
        **norms,
        "output_layer/kernel": (4, 11),
    }
    assert shapes_of(pointer=False, tied_output=False, biases=False) == untied


@pytest.mark.parametrize(
    ("cell", "gates", "bias", "bridges"),
    [
        ("gru", 3, lambda width: (2, 3 * width), 2),
        ("lstm", 4, lambda width: (4 * width,), 4),
    ],
)
def test_the_weights_of_a_recurrent_network(cell, gates, bias, bridges):
    settings = {
        "encoder_layers": 1,
        "decoder_layers": 2,
        "cell": cell,
        "attention": "bahdanau",
        "pointer": False,
        "tied_output": False,
    }
    network = build_network(
        RecurrentConfig(vocabulary_size=11, pad_id=0, width=4, **settings)
    )
    expected = {
        "embedding/table": (11, 4),
        "output_layer/kernel": (4, 11),
        "output_layer/bias": (11,),
    }
    for way in ("forward", "backward"):
        name = f"encoder_0/{way}_{cell}/{cell}_cell"
        expected |= {
            f"{name}/kernel": (4, 2 * gates),
            f"{name}/recurrent_kernel": (2, 2 * gates),
            f"{name}/bias": bias(2),
        }
    for layer, width in enumerate((8, 4)):
        name = f"decoder_{layer}"
        expected |= {
            f"{name}/kernel": (width, 4 * gates),
            f"{name}/recurrent_kernel": (4, 4 * gates),
            f"{name}/bias": bias(4),
        }
    for layer in range(bridges):
        expected |= {f"bridge_{layer}/kernel": (4, 4), f"bridge_{layer}/bias": (4,)}
    expected |= {
        "join/kernel": (8, 4),
        "join/bias": (4,),
        "attention/key/kernel": (4, 4),
        "attention/key/bias": (4,),
    }
    expected |= {"attention/query/kernel": (4, 4), "attention/score/kernel": (4, 1)}
    assert {weight.path: tuple(weight.shape) for weight in network.weights} == {
        f"recurrent/{name}": shape for name, shape in expected.items()
    }
