"""Configurations of networks: the named sizes, the defaults, every refusal with its
words.
"""

import dataclasses
import json

import pytest

from precis.model.errors import DataError, UsageError
from precis.model.network.config import (
    ACTIVATIONS,
    ARCHITECTURES,
    ATTENTIONS,
    CELLS,
    POSITIONS,
    SIZES,
    DecoderOnlyConfig,
    EncoderConfig,
    RecurrentConfig,
    StackConfig,
    TransformerConfig,
    architecture_of,
    named_network,
    read_config,
    target_vocabulary_size,
)
from tests.small_network import ALL, VARIANTS, config_of

BLOCKS = {
    "vocabulary_size": 50,
    "pad_id": 0,
    "width": 8,
    "feed_forward": 16,
    "heads": 2,
}


def network(**settings):
    return TransformerConfig(
        **{**BLOCKS, "encoder_layers": 1, "decoder_layers": 1, **settings}
    )


def decoder_only(**settings):
    return DecoderOnlyConfig(**{**BLOCKS, "layers": 1, **settings})


def recurrent(**settings):
    return RecurrentConfig(
        **{
            "vocabulary_size": 50,
            "pad_id": 0,
            "width": 8,
            "encoder_layers": 1,
            "decoder_layers": 1,
            **settings,
        }
    )


@pytest.mark.parametrize(
    ("size", "encoder_layers", "decoder_layers", "width", "feed_forward", "heads"),
    [
        ("small", 4, 4, 256, 1024, 8),
        ("base", 6, 6, 512, 2048, 8),
        ("six_layers", 6, 6, 256, 1024, 8),
        ("four_layers", 4, 4, 128, 512, 8),
        ("tiny", 2, 2, 128, 512, 4),
    ],
)
def test_a_name_stands_for_a_size(
    size, encoder_layers, decoder_layers, width, feed_forward, heads
):
    config = named_network(size, vocabulary_size=100, pad_id=3)
    assert (config.encoder_layers, config.decoder_layers) == (
        encoder_layers,
        decoder_layers,
    )
    assert (config.width, config.feed_forward, config.heads) == (
        width,
        feed_forward,
        heads,
    )
    assert (config.vocabulary_size, config.pad_id, config.dropout) == (100, 3, 0.1)
    # As many blocks as encoder and decoder have together.
    one = named_network(
        size, architecture="decoder_only", vocabulary_size=100, pad_id=3
    )
    assert isinstance(one, DecoderOnlyConfig) and (one.layers, one.width) == (
        2 * encoder_layers,
        width,
    )
    assert (one.feed_forward, one.heads) == (feed_forward, heads)


@pytest.mark.parametrize(
    ("size", "layers", "width"), [("tiny", 1, 128), ("small", 1, 256), ("base", 2, 512)]
)
def test_the_sizes_of_recurrent_networks(size, layers, width):
    config = named_network(
        size, architecture="recurrent", vocabulary_size=100, pad_id=3, cell="lstm"
    )
    assert isinstance(config, RecurrentConfig) and (
        config.encoder_layers,
        config.decoder_layers,
        config.width,
    ) == (layers, layers, width)
    assert (config.vocabulary_size, config.pad_id, config.cell) == (100, 3, "lstm")


def test_every_size_is_named_above():
    assert set(SIZES) == {"tiny", "four_layers", "small", "six_layers", "base"}
    assert {name: set(one.sizes) for name, one in ARCHITECTURES.items()} == {
        "transformer": set(SIZES),
        "decoder_only": set(SIZES),
        "recurrent": {"tiny", "small", "base"},
    }


def test_settings_replace_those_of_the_name():
    config = named_network(
        "small", vocabulary_size=100, pad_id=0, heads=4, dropout=0.0, pointer=False
    )
    assert (config.heads, config.dropout, config.pointer, config.width) == (
        4,
        0.0,
        False,
        256,
    )
    assert ARCHITECTURES["transformer"].sizes["small"]["heads"] == 8


@pytest.mark.parametrize(
    ("size", "settings", "words"),
    [
        (
            "huge",
            {},
            "no network size 'huge' of transformer; the sizes are tiny, four_layers, small, six_layers, base",
        ),
        (
            "six_layers",
            {"architecture": "recurrent"},
            "no network size 'six_layers' of recurrent; the sizes are tiny, small, base",
        ),
        (
            "tiny",
            {"architecture": "lstm"},
            "no architecture 'lstm'; there are transformer, decoder_only, recurrent",
        ),
        (
            "tiny",
            {"architecture": "recurrent", "positions": "learned"},
            "--positions means nothing to a network of .* recurrent; leave",
        ),
        (
            "tiny",
            {"cell": "gru"},
            "--cell means nothing to a network of the architecture transformer; leave it out",
        ),
    ],
)
def test_a_name_that_stands_for_nothing_is_refused_with_the_known_ones(
    size, settings, words
):
    with pytest.raises(UsageError, match=words):
        named_network(size, vocabulary_size=100, pad_id=0, **settings)


@pytest.mark.parametrize("variant", ALL)
def test_a_configuration_comes_back_from_its_fields(variant):
    """As a bundle holds them."""
    config = config_of(variant)
    architecture = architecture_of(config)
    assert variant in VARIANTS[architecture]
    assert (
        read_config(architecture, json.loads(json.dumps(dataclasses.asdict(config))))
        == config
    )
    assert target_vocabulary_size(config) == (17 if variant == "vocabularies" else 13)


def test_a_configuration_that_is_not_known_is_refused():
    fields = dataclasses.asdict(config_of("vocabularies"))
    with pytest.raises(
        DataError,
        match="the architecture 'mixer' is none of transformer, decoder_only, recurrent; only a newer precis",
    ):
        read_config("mixer", fields)
    for damaged in (
        {**fields, "decoder_heads": None},
        {**fields, "decoder_stack": {**fields["decoder_stack"], "rotary": True}},
    ):
        with pytest.raises(
            DataError,
            match="a configuration of another version of precis .*'(decoder_heads|rotary)'.*; train or import",
        ):
            read_config("transformer", damaged)


def test_the_parts_of_a_configuration():
    config = config_of("vocabularies")
    assert type(config.encoder) is EncoderConfig and type(config.decoder) is StackConfig
    assert (
        config.encoder.width,
        config.encoder.heads,
        config.encoder.encoder_layers,
    ) == (8, 2, 2)
    assert (config.decoder.width, config.decoder.heads, config.decoder.positions) == (
        12,
        3,
        "relative",
    )
    same = config_of("t5")
    assert (
        dataclasses.asdict(same.decoder).items() <= dataclasses.asdict(same).items()
    )  # that of both sides
    assert (
        dataclasses.asdict(config_of("decoder_only").decoder).items()
        <= dataclasses.asdict(config_of("decoder_only")).items()
    )


CHOICES = {
    "positions": POSITIONS,
    "activation": ACTIVATIONS,
    "cell": CELLS,
    "attention": ATTENTIONS,
}
LIMITS = {
    "vocabulary_size",
    "pad_id",
    "width",
    "dropout",
    "max_source_tokens",
    "max_target_tokens",
}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_networks_of_the_tests_take_every_value_of_every_setting(architecture):
    """So a setting that is added has to be given to one of them, whose formulas and
    steps are then compared.
    """
    configs = [config_of(variant) for variant in VARIANTS[architecture]]
    for field in dataclasses.fields(ARCHITECTURES[architecture].config):
        taken = {str(getattr(config, field.name)) for config in configs}
        if field.name in CHOICES:
            assert taken == set(CHOICES[field.name]), field.name
        elif field.type in (bool, "bool"):
            assert taken == {"True", "False"}, field.name
        elif field.name not in LIMITS:
            assert len(taken) > 1, field.name


@pytest.mark.parametrize(
    ("width", "heads", "way_out"), [(10, 4, 8), (258, 8, 256), (6, 8, 8)]
)
@pytest.mark.parametrize("make", [network, decoder_only])
def test_the_width_must_be_a_multiple_of_the_heads(make, width, heads, way_out):
    with pytest.raises(
        UsageError,
        match=f"{width} is not one of {heads}; take {way_out} or another number of heads",
    ):
        make(width=width, heads=heads)
    assert (
        make(width=width, heads=heads, head_width=5).head_width == 5
    )  # heads that have a width of their own


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
    with pytest.raises(
        UsageError,
        match="the width must be even, half of it for each direction of the encoder, not 9",
    ):
        recurrent(width=9)


@pytest.mark.parametrize(
    ("buckets", "distance"), [(3, 128), (1, 128), (32, 16), (8, 4), (9, 4)]
)
def test_relative_positions_need_buckets_and_a_distance(buckets, distance):
    words = f"at least 4 buckets, and a longest distance above half as many, not {buckets} buckets and {distance}"
    with pytest.raises(UsageError, match=words):
        network(
            positions="relative", relative_buckets=buckets, relative_distance=distance
        )
    assert (
        network(relative_buckets=buckets, relative_distance=distance).positions
        == "sinusoidal"
    )  # where nobody reads them
    assert (
        network(
            positions="relative", relative_buckets=8, relative_distance=5
        ).relative_distance
        == 5
    )


@pytest.mark.parametrize(
    ("make", "settings", "words"),
    [
        (
            network,
            {"positions": "rotary"},
            "^positions is one of sinusoidal, sinusoidal_halves, learned, relative, not 'rotary'",
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
def test_what_has_names_is_one_of_them(make, settings, words):
    with pytest.raises(UsageError, match=words):
        make(**settings)


def stack(**settings):
    return StackConfig(**{**BLOCKS, **settings})


def test_settings_that_contradict_each_other():
    for make in (network, decoder_only, recurrent):
        with pytest.raises(
            UsageError,
            match="coverage is what the pointer has read so far, so it needs one; leave --no-pointer or --cov",
        ):
            make(coverage=True, pointer=False)
    with pytest.raises(
        UsageError,
        match="share an embedding, so their widths must be equal, not 8 and 12",
    ):
        network(decoder_stack=stack(width=12))
    with pytest.raises(
        UsageError,
        match="share an embedding, so their vocabularies must be of one size, not 50 and 40",
    ):
        network(decoder_stack=stack(vocabulary_size=40))
    with pytest.raises(
        UsageError,
        match="the pointer copies pieces of the source, so .* need one vocabulary; train with --no-pointer",
    ):
        network(shared_embedding=False)
    with pytest.raises(
        UsageError, match="but 8 is not one of 3; take 6 or another number of heads"
    ):
        stack(heads=3)
    apart = network(
        decoder_stack=stack(width=12, vocabulary_size=40),
        shared_embedding=False,
        pointer=False,
    )
    assert apart.decoder.width == 12 and target_vocabulary_size(apart) == 40


def test_the_network_that_the_defaults_describe():
    """That of Vaswani et al. 2017 with a pointer."""
    config = network()
    assert (
        config.positions,
        config.activation,
        config.scaled_embedding,
        config.scaled_scores,
    ) == ("sinusoidal", "relu", True, True)
    assert (
        config.biases,
        config.shared_embedding,
        config.tied_output,
        config.pointer,
    ) == (True,) * 4
    assert not (
        config.embedding_norm
        or config.norm_first
        or config.rms_norm
        or config.gated_feed_forward
    )
    assert not (
        config.logits_bias
        or config.scaled_output
        or config.coverage
        or config.convolutional_gate
    )
    assert (config.norm_epsilon, config.head_width, config.decoder_stack) == (
        1e-6,
        None,
        None,
    )
    assert (recurrent().cell, recurrent().attention, recurrent().input_feeding) == (
        "gru",
        "luong",
        True,
    )


@pytest.mark.parametrize("make", [network, decoder_only, recurrent])
@pytest.mark.parametrize("dropout", [-0.1, 1.0, 1.5])
def test_dropout_is_a_share(make, dropout):
    with pytest.raises(
        UsageError, match=f"dropout is a share from 0 to below 1, not {dropout}"
    ):
        make(dropout=dropout)


STACK = (
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
        *((network, name) for name in (*STACK, *SIDES)),
        *((decoder_only, name) for name in (*STACK, "layers", "max_target_tokens")),
        *(
            (recurrent, name)
            for name in ("vocabulary_size", "width", "max_source_tokens", *SIDES)
        ),
    ],
)
@pytest.mark.parametrize("value", [0, -2])
def test_counts_are_positive(make, name, value):
    with pytest.raises(UsageError, match=f"^{name} must be at least 1, not {value}"):
        make(**{name: value})


def test_configurations_are_frozen():
    for config in (network(), decoder_only(), recurrent(), stack(), network().encoder):
        with pytest.raises(dataclasses.FrozenInstanceError):
            config.width = 4
