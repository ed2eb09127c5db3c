"""The configurations of networks: their parts, their defaults, and every refusal with
its words. `test_architectures` has the named sizes.
"""

import dataclasses

import pytest
from support.small_network import VARIANTS, config_of
from support.small_selector import selector_config

from precis.model.errors import UsageError
from precis.model.network.architectures import ARCHITECTURES
from precis.model.network.config import (
    ACTIVATIONS,
    POSITIONS,
    DecoderOnlyConfig,
    EncoderConfig,
    RecurrentConfig,
    StackConfig,
    TransformerConfig,
)

STACK = {"vocabulary_size": 50, "pad_id": 0, "width": 8, "feed_forward": 16, "heads": 2}
BOTH_SIDES = {"encoder_layers": 1, "decoder_layers": 1}


def stack(**settings):
    return StackConfig(**{**STACK, **settings})


def network(**settings):
    return TransformerConfig(**{**STACK, **BOTH_SIDES, **settings})


def encoder(**settings):
    return EncoderConfig(**{**STACK, "encoder_layers": 1, **settings})


def decoder_only(**settings):
    return DecoderOnlyConfig(**{**STACK, "layers": 1, **settings})


def recurrent(**settings):
    smallest = {"vocabulary_size": 50, "pad_id": 0, "width": 8, **BOTH_SIDES}
    return RecurrentConfig(**{**smallest, **settings})


def test_the_parts_of_a_configuration():
    config = config_of("vocabularies")
    assert config.encoder == EncoderConfig(
        **{**STACK, "vocabulary_size": 13, "pad_id": 4, "feed_forward": 12},
        encoder_layers=2,
        dropout=0.2,
        max_source_tokens=7,
        norm_first=True,
    )
    decoder = config.decoder
    assert type(decoder) is StackConfig
    assert (decoder.width, decoder.heads, decoder.positions) == (12, 3, "relative")
    # A decoder without a stack of its own has the fields of the network.
    for variant in ("t5", "decoder_only"):
        config = config_of(variant)
        fields = dataclasses.asdict(config)
        assert dataclasses.asdict(config.decoder).items() <= fields.items()


CHOICES = {"positions": POSITIONS, "activation": ACTIVATIONS}
SAME_IN_ALL = {
    *("vocabulary_size", "pad_id", "width", "dropout"),
    *("max_source_tokens", "max_target_tokens"),
}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_networks_of_the_tests_take_every_value_of_every_setting(architecture):
    """A new setting must appear in one of the test networks, whose formulas and steps
    are compared.
    """
    configs = [config_of(variant) for variant in VARIANTS[architecture]]
    for field in dataclasses.fields(ARCHITECTURES[architecture].config):
        values = {str(getattr(config, field.name)) for config in configs}
        if field.name in CHOICES:
            assert values == set(CHOICES[field.name]), field.name
        elif field.type in (bool, "bool"):
            assert values == {"True", "False"}, field.name
        elif field.name not in SAME_IN_ALL:
            assert len(values) > 1, field.name


def divisible(width, heads, way_out):
    return (
        f"the width {width} must be a multiple of the {heads} heads; use {way_out}, or"
    )


SHARE = "dropout is a share from 0 to below 1, not"
BUCKETS = "at least 4 buckets, and a maximum distance above half .*, not"
RELATIVE = {"positions": "relative"}


IMPOSSIBLE_SHAPES = [
    (network, {"width": 10, "heads": 4}, divisible(10, 4, 8)),
    (decoder_only, {"width": 258, "heads": 8}, divisible(258, 8, 256)),
    (stack, {"width": 6, "heads": 8}, divisible(6, 8, 8)),
    (selector_config, {"heads": 3}, divisible(8, 3, 6)),
    (encoder, {"width": 9, "heads": 3}, "even for sinusoidal positions, not 9"),
    (decoder_only, {"width": 9, "heads": 3}, "even for sinusoidal positions, not"),
    (recurrent, {"width": 9}, "^the width must be even, as each direction"),
    (network, {**RELATIVE, "relative_buckets": 3}, f"{BUCKETS} 3 buckets and 128"),
    (encoder, {**RELATIVE, "relative_distance": 16}, f"{BUCKETS} 32 .* and 16"),
    (
        network,
        {"positions": "alibi"},
        "^positions must be one of sinusoidal, .* 'alibi",
    ),
    (
        decoder_only,
        {"positions": "rotary", "head_width": 3},
        "^the width of a head must be even for rotary positions, not 3",
    ),
    (decoder_only, {"kv_heads": 3}, "^heads .* must be a multiple of kv_heads .3."),
    (
        decoder_only,
        {"activation": "tanh"},
        "^activation must be one of relu, .* 'tanh'",
    ),
    (network, {"decoder_stack": stack(width=12)}, "their width must be equal, not 8"),
    (
        network,
        {"decoder_stack": stack(vocabulary_size=40)},
        "their vocabulary_size must be equal, not 50 and 40",
    ),
    (
        network,
        {"shared_embedding": False},
        "pointer copies .* share one vocabulary; train with `pointer=False`",
    ),
    (network, {"dropout": -0.1}, f"{SHARE} -0.1"),
    (encoder, {"dropout": 1.0}, f"{SHARE} 1.0"),
    (recurrent, {"dropout": 1.0}, f"{SHARE} 1.0"),
    (selector_config, {"dropout": 1.0}, f"{SHARE} 1.0"),
]


@pytest.mark.parametrize(("make", "settings", "words"), IMPOSSIBLE_SHAPES)
def test_an_impossible_shape_is_refused(make, settings, words):
    with pytest.raises(UsageError, match=words):
        make(**settings)


COUNTS = [
    (stack, "vocabulary_size heads head_width relative_buckets"),
    (network, "encoder_layers decoder_layers max_target_tokens"),
    (encoder, "encoder_layers"),
    (decoder_only, "layers"),
    (recurrent, "width encoder_layers max_source_tokens"),
    (selector_config, "layers max_sentences heads"),
]


@pytest.mark.parametrize(("make", "names"), COUNTS)
def test_counts_are_positive(make, names):
    for name in names.split():
        with pytest.raises(UsageError, match=f"^{name} must be at least 1, not 0"):
            make(**{name: 0})


def test_shapes_on_a_bound_are_accepted():
    assert network(width=10, heads=4, head_width=5).head_width == 5
    assert network(width=9, heads=3, positions="learned").width == 9
    assert network(relative_buckets=3).positions == "sinusoidal"
    assert network(**RELATIVE, relative_buckets=8, relative_distance=5)
    sides = stack(width=12, vocabulary_size=40)
    config = network(decoder_stack=sides, shared_embedding=False, pointer=False)
    assert config.decoder == sides
