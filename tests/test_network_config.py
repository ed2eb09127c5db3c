"""The configurations of networks: their parts, their defaults, and every refusal with
its words. `test_architectures` has the named sizes.
"""

import dataclasses

import pytest
from support.small_network import VARIANTS, config_of

from precis.model.errors import UsageError
from precis.model.network.architectures import ARCHITECTURES
from precis.model.network.config import (
    ACTIVATIONS,
    ATTENTIONS,
    CELLS,
    POSITIONS,
    DecoderOnlyConfig,
    EncoderConfig,
    RecurrentConfig,
    StackConfig,
    TransformerConfig,
    target_vocabulary_size,
)

STACK = {
    "vocabulary_size": 50,
    "pad_id": 0,
    "width": 8,
    "feed_forward": 16,
    "heads": 2,
}


def stack(**settings):
    return StackConfig(**{**STACK, **settings})


def network(**settings):
    return TransformerConfig(
        **{**STACK, "encoder_layers": 1, "decoder_layers": 1, **settings}
    )


def decoder_only(**settings):
    return DecoderOnlyConfig(**{**STACK, "layers": 1, **settings})


def recurrent(**settings):
    smallest = {
        "vocabulary_size": 50,
        "pad_id": 0,
        "width": 8,
        "encoder_layers": 1,
        "decoder_layers": 1,
    }
    return RecurrentConfig(**{**smallest, **settings})


def test_the_parts_of_a_configuration():
    config = config_of("vocabularies")
    encoder = config.encoder
    assert type(encoder) is EncoderConfig
    assert (encoder.width, encoder.heads, encoder.encoder_layers) == (8, 2, 2)
    decoder = config.decoder
    assert type(decoder) is StackConfig
    assert (decoder.width, decoder.heads, decoder.positions) == (12, 3, "relative")


@pytest.mark.parametrize("variant", ["t5", "decoder_only"])
def test_a_decoder_without_a_stack_of_its_own_has_the_fields_of_the_network(variant):
    config = config_of(variant)
    fields = dataclasses.asdict(config)
    assert dataclasses.asdict(config.decoder).items() <= fields.items()


CHOICES = {
    "positions": POSITIONS,
    "activation": ACTIVATIONS,
    "cell": CELLS,
    "attention": ATTENTIONS,
}
SAME_IN_ALL = {
    "vocabulary_size",
    "pad_id",
    "width",
    "dropout",
    "max_source_tokens",
    "max_target_tokens",
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


@pytest.mark.parametrize(
    ("width", "heads", "way_out"), [(10, 4, 8), (258, 8, 256), (6, 8, 8)]
)
@pytest.mark.parametrize("make", [network, decoder_only])
def test_the_width_must_be_a_multiple_of_the_heads(make, width, heads, way_out):
    words = f"{width} is not one of {heads}; take {way_out} or another number of heads"
    with pytest.raises(UsageError, match=words):
        make(width=width, heads=heads)
    # The rule does not hold for heads with a width of their own.
    assert make(width=width, heads=heads, head_width=5).head_width == 5


@pytest.mark.parametrize("positions", ["sinusoidal", "sinusoidal_halves"])
@pytest.mark.parametrize("make", [network, decoder_only])
def test_the_width_must_be_even_for_sines(make, positions):
    with pytest.raises(
        UsageError, match="must be even for sinusoidal positions, not 9"
    ):
        make(width=9, heads=3, positions=positions)
    for other in ("learned", "relative"):
        assert make(width=9, heads=3, positions=other).width == 9


def test_the_width_must_be_even_for_two_directions():
    words = "must be even, half of it for each direction of the encoder, not 9"
    with pytest.raises(UsageError, match=f"^the width {words}"):
        recurrent(width=9)


@pytest.mark.parametrize(("buckets", "distance"), [(3, 128), (32, 16), (9, 4)])
def test_relative_positions_need_buckets_and_a_distance(buckets, distance):
    words = (
        "at least 4 buckets, and a longest distance above half as many, "
        f"not {buckets} buckets and {distance}"
    )
    settings = {"relative_buckets": buckets, "relative_distance": distance}
    with pytest.raises(UsageError, match=words):
        network(positions="relative", **settings)
    # Absolute positions ignore both numbers.
    assert network(**settings).positions == "sinusoidal"


def test_the_shortest_distance_of_eight_buckets():
    config = network(positions="relative", relative_buckets=8, relative_distance=5)
    assert config.relative_distance == 5


@pytest.mark.parametrize(
    ("make", "settings", "words"),
    [
        (
            network,
            {"positions": "rotary"},
            "^positions is one of sinusoidal, sinusoidal_halves, learned, relative, "
            "not 'rotary'",
        ),
        (
            decoder_only,
            {"activation": "tanh"},
            "^activation is one of relu, gelu, gelu_tanh, silu, not 'tanh'",
        ),
        (recurrent, {"cell": "rnn"}, "^cell is one of gru, lstm, not 'rnn'"),
        (
            recurrent,
            {"attention": "dot"},
            "^attention is one of luong, bahdanau, not 'dot'",
        ),
    ],
)
def test_a_choice_is_one_of_the_known_names(make, settings, words):
    with pytest.raises(UsageError, match=words):
        make(**settings)


@pytest.mark.parametrize("make", [network, decoder_only, recurrent])
def test_coverage_needs_a_pointer(make):
    words = (
        "coverage is what the pointer has read so far, so it needs one; "
        "leave --no-pointer or --cov"
    )
    with pytest.raises(UsageError, match=words):
        make(coverage=True, pointer=False)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"decoder_stack": stack(width=12)},
            "share an embedding, so their widths must be equal, not 8 and 12",
        ),
        (
            {"decoder_stack": stack(vocabulary_size=40)},
            "share an embedding, so their vocabularies must be of one size, "
            "not 50 and 40",
        ),
        (
            {"shared_embedding": False},
            "the pointer copies pieces of the source, so .* need one vocabulary; "
            "train with --no-pointer",
        ),
    ],
)
def test_settings_that_contradict_each_other(settings, words):
    with pytest.raises(UsageError, match=words):
        network(**settings)


def test_the_width_of_a_stack_must_be_a_multiple_of_its_heads():
    words = "but 8 is not one of 3; take 6 or another number of heads"
    with pytest.raises(UsageError, match=words):
        stack(heads=3)


def test_without_a_shared_embedding_the_sides_may_differ():
    config = network(
        decoder_stack=stack(width=12, vocabulary_size=40),
        shared_embedding=False,
        pointer=False,
    )
    assert config.decoder.width == 12 and target_vocabulary_size(config) == 40


def test_the_defaults_describe_the_transformer_of_the_paper_with_a_pointer():
    """Vaswani et al. 2017."""
    config = network()
    assert (config.positions, config.activation) == ("sinusoidal", "relu")
    for field in (
        "scaled_embedding",
        "scaled_scores",
        "biases",
        "shared_embedding",
        "tied_output",
        "pointer",
    ):
        assert getattr(config, field) is True, field
    for field in (
        "embedding_norm",
        "norm_first",
        "rms_norm",
        "gated_feed_forward",
        "logits_bias",
        "scaled_output",
        "coverage",
        "convolutional_gate",
    ):
        assert getattr(config, field) is False, field
    assert config.norm_epsilon == 1e-6
    assert config.head_width is None and config.decoder_stack is None


def test_the_defaults_of_a_recurrent_network():
    config = recurrent()
    assert (config.cell, config.attention) == ("gru", "luong")
    assert config.input_feeding is True


@pytest.mark.parametrize(
    ("make", "dropout"), [(network, -0.1), (decoder_only, 1.0), (recurrent, 1.0)]
)
def test_dropout_is_a_share(make, dropout):
    with pytest.raises(
        UsageError, match=f"dropout is a share from 0 to below 1, not {dropout}"
    ):
        make(dropout=dropout)


STACK_COUNTS = (
    "vocabulary_size",
    "width",
    "feed_forward",
    "heads",
    "head_width",
    "max_source_tokens",
    "relative_buckets",
    "relative_distance",
)
SIDES = ("encoder_layers", "decoder_layers", "max_target_tokens")


@pytest.mark.parametrize(
    ("make", "name"),
    [
        *((network, name) for name in (*STACK_COUNTS, *SIDES)),
        *(
            (decoder_only, name)
            for name in (*STACK_COUNTS, "layers", "max_target_tokens")
        ),
        *(
            (recurrent, name)
            for name in ("vocabulary_size", "width", "max_source_tokens", *SIDES)
        ),
    ],
)
def test_counts_are_positive(make, name):
    with pytest.raises(UsageError, match=f"^{name} must be at least 1, not 0"):
        make(**{name: 0})


def test_configurations_are_frozen():
    for config in (network(), decoder_only(), recurrent(), stack(), network().encoder):
        with pytest.raises(dataclasses.FrozenInstanceError):
            config.width = 4
