"""Network and decoding configurations: the named sizes, the defaults, every refusal with its words."""

import dataclasses

import pytest

from model.config import SIZES, DecodingConfig, DecodingTokens, NetworkConfig, named_network
from model.errors import UsageError


def network(**settings):
    return NetworkConfig(
        **{
            "vocabulary_size": 50,
            "pad_id": 0,
            "encoder_layers": 1,
            "decoder_layers": 1,
            "width": 8,
            "feed_forward": 16,
            "heads": 2,
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
def test_a_name_stands_for_a_size(size, encoder_layers, decoder_layers, width, feed_forward, heads):
    config = named_network(size, vocabulary_size=100, pad_id=3)
    assert (config.encoder_layers, config.decoder_layers) == (encoder_layers, decoder_layers)
    assert (config.width, config.feed_forward, config.heads) == (width, feed_forward, heads)
    assert (config.vocabulary_size, config.pad_id, config.dropout) == (100, 3, 0.1)


def test_every_size_is_named_above():
    assert set(SIZES) == {"tiny", "four_layers", "small", "six_layers", "base"}


def test_settings_replace_those_of_the_name():
    config = named_network("small", vocabulary_size=100, pad_id=0, heads=4, dropout=0.0, pointer=False)
    assert (config.heads, config.dropout, config.pointer, config.width) == (4, 0.0, False, 256)
    assert SIZES["small"]["heads"] == 8


def test_an_unknown_size_is_refused_with_the_known_ones():
    with pytest.raises(UsageError, match="no network size 'huge'; the sizes are tiny, four_layers, small, six_layers, base"):
        named_network("huge", vocabulary_size=100, pad_id=0)


@pytest.mark.parametrize(("width", "heads", "way_out"), [(10, 4, 8), (258, 8, 256), (6, 8, 8)])
def test_the_width_must_be_a_multiple_of_the_heads(width, heads, way_out):
    with pytest.raises(UsageError, match=f"{width} is not one of {heads}; take {way_out} or another number of heads"):
        network(width=width, heads=heads)


def test_the_width_must_be_a_multiple_of_the_decoder_s_heads():
    with pytest.raises(UsageError, match="but 8 is not one of 3; take 6 or another number of heads"):
        network(decoder_heads=3)
    assert network(decoder_heads=8).decoder_heads == 8


def test_the_width_must_be_even_for_sines():
    with pytest.raises(UsageError, match="must be even for sinusoidal positions, not 9"):
        network(width=9, heads=3)
    assert network(width=9, heads=3, positions="learned").width == 9


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"positions": "rotary"}, "^positions is one of sinusoidal, learned, not 'rotary'"),
        ({"activation": "tanh"}, "^activation is one of relu, gelu, gelu_tanh, silu, not 'tanh'"),
    ],
)
def test_what_has_names_is_one_of_them(settings, words):
    with pytest.raises(UsageError, match=words):
        network(**settings)


def test_the_network_that_configurations_without_the_newer_fields_mean():
    """config.json of an older bundle lacks these fields: what they default to is what its network computes."""
    config = network()
    assert (config.positions, config.activation, config.scaled_embedding) == ("sinusoidal", "relu", True)
    assert (config.embedding_norm, config.logits_bias, config.norm_epsilon) == (False, False, 1e-6)
    assert (config.decoder_feed_forward, config.decoder_heads) == (None, None)


@pytest.mark.parametrize("dropout", [-0.1, 1.0, 1.5])
def test_dropout_is_a_share(dropout):
    with pytest.raises(UsageError, match=f"dropout is a share from 0 to below 1, not {dropout}"):
        network(dropout=dropout)


@pytest.mark.parametrize(
    "name",
    ["vocabulary_size", "encoder_layers", "decoder_layers", "width", "feed_forward", "heads", "max_source_tokens", "max_target_tokens"],
)
@pytest.mark.parametrize("value", [0, -2])
def test_counts_are_positive(name, value):
    with pytest.raises(UsageError, match=f"^{name} must be at least 1, not {value}"):
        network(**{name: value})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"beam_width": 0}, "--beam_width must be at least 1, not 0"),
        ({"n_best": 5}, r"--n_best must lie between 1 and --beam_width \(4\), not be 5; widen the beam or ask for fewer"),
        ({"n_best": 0}, r"--n_best must lie between 1 and --beam_width \(4\), not be 0"),
        ({"min_summary_tokens": -1}, r"--min_summary_tokens \(-1\) must be at least 0 and below --max_summary_tokens \(128\)"),
        ({"min_summary_tokens": 9, "max_summary_tokens": 9}, r"\(9\) must be at least 0 and below --max_summary_tokens \(9\)"),
        ({"max_summary_tokens": 0}, r"below --max_summary_tokens \(0\)"),
        ({"no_repeat_ngram": -3}, "--no_repeat_ngram must not be negative, but is -3; 0 turns it off"),
        ({"coverage_penalty": -0.5}, "--coverage_penalty must not be negative, but is -0.5; 0 turns it off"),
        ({"diversity_penalty": -0.5}, "--diversity_penalty must not be negative, but is -0.5; 0 turns it off"),
        ({"repetition_penalty": 0.0}, "--repetition_penalty must be above 0, not 0.0; 1 turns it off"),
        ({"length_penalty_form": "gnmt"}, "--length_penalty_form is one of none, average, wu, not 'gnmt'"),
        ({"early_stopping": "yes"}, "--early_stopping is one of never, first_k, bound, not 'yes'"),
        ({"unfinished": "first"}, "--unfinished is one of last, compete, not 'first'"),
        ({"beam_groups": 3}, r"--beam_groups \(3\) must divide --beam_width \(4\)"),
        ({"beam_groups": 0}, r"--beam_groups \(0\) must divide --beam_width \(4\)"),
    ],
)
def test_decoding_refuses_what_contradicts_itself(settings, words):
    with pytest.raises(UsageError, match=words):
        DecodingConfig(**settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"beam_width": 1},
        {"beam_width": 3, "n_best": 3},
        {"min_summary_tokens": 8, "max_summary_tokens": 9},
        {"no_repeat_ngram": 0},
        {"no_repeat_ngram": 1},
        {"length_penalty": 0.0},
        {"length_penalty": -1.0},
        {"coverage_penalty": 0.0, "diversity_penalty": 0.0},
        {"repetition_penalty": 0.5},
        {"length_penalty_form": "none", "early_stopping": "bound", "unfinished": "compete"},
        {"beam_groups": 4},
        {"beam_width": 6, "beam_groups": 2},
    ],
)
def test_decoding_takes_what_lies_on_a_bound(settings):
    config = DecodingConfig(**settings)
    assert {name: getattr(config, name) for name in settings} == settings


def test_configurations_are_frozen():
    special = DecodingTokens(start_id=1, end_id=2, pad_id=0)
    for config, name in ((network(), "width"), (DecodingConfig(), "beam_width"), (special, "end_id")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(config, name, 4)
