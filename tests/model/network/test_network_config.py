"""The configurations of networks: their parts, their defaults, and every refusal with
its words. `test_architectures` has the named sizes.
"""

import dataclasses

import pytest
from support import read_table
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
    SelectorConfig,
    StackConfig,
    TransformerConfig,
)

STACK = {"vocabulary_size": 50, "pad_id": 0, "width": 8, "feed_forward": 16, "heads": 2}
BOTH_SIDES = {"encoder_layers": 1, "decoder_layers": 1}


# The class of a configuration and the least that it needs.
SMALLEST = {
    "stack": (StackConfig, STACK),
    "network": (TransformerConfig, {**STACK, **BOTH_SIDES}),
    "encoder": (EncoderConfig, {**STACK, "encoder_layers": 1}),
    "decoder_only": (DecoderOnlyConfig, {**STACK, "layers": 1}),
    "recurrent": (
        RecurrentConfig,
        {"vocabulary_size": 50, "pad_id": 0, "width": 8, **BOTH_SIDES},
    ),
    "selector_config": (SelectorConfig, dataclasses.asdict(selector_config())),
}


def make(kind, **settings):
    config, smallest = SMALLEST[kind]
    return config(**{**smallest, **settings})


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


IMPOSSIBLE_SHAPES = read_table("refusals")["network_shapes"]


@pytest.mark.parametrize(("kind", "settings", "words"), IMPOSSIBLE_SHAPES)
def test_an_impossible_shape_is_refused(kind, settings, words):
    with pytest.raises(UsageError, match=words):
        make(kind, **settings)


def test_sides_of_different_width_or_vocabulary_are_refused():
    for settings, words in (
        ({"width": 12}, "their width must be equal, not 8"),
        ({"vocabulary_size": 40}, "their vocabulary_size must be equal, not 50 and 40"),
    ):
        with pytest.raises(UsageError, match=words):
            make("network", decoder_stack=make("stack", **settings))


COUNTS = {
    "stack": "vocabulary_size heads head_width relative_buckets",
    "network": "encoder_layers decoder_layers max_target_tokens",
    "encoder": "encoder_layers",
    "decoder_only": "layers",
    "recurrent": "width encoder_layers max_source_tokens",
    "selector_config": "layers max_sentences heads",
}


@pytest.mark.parametrize("kind", COUNTS)
def test_counts_are_positive(kind):
    for name in COUNTS[kind].split():
        with pytest.raises(UsageError, match=f"^{name} must be at least 1, not 0"):
            make(kind, **{name: 0})


def test_shapes_on_a_bound_are_accepted():
    assert make("network", width=10, heads=4, head_width=5).head_width == 5
    assert make("network", width=9, heads=3, positions="learned").width == 9
    assert make("network", relative_buckets=3).positions == "sinusoidal"
    relative = {"relative_buckets": 8, "relative_distance": 5}
    assert make("network", positions="relative", **relative)
    sides = make("stack", width=12, vocabulary_size=40)
    apart = {"shared_embedding": False, "pointer": False}
    assert make("network", decoder_stack=sides, **apart).decoder == sides
