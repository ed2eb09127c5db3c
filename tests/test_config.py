"""Network and decoding configurations: the named sizes, the defaults, every refusal with its words."""

import dataclasses

import pytest

from model.config import SIZES, DecodingConfig, NetworkConfig, named_network
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


def test_the_width_must_be_even():
    with pytest.raises(UsageError, match="must be even for sinusoidal positions, not 9"):
        network(width=9, heads=3)


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
        ({"no_repeat_ngram": 1}, r"--no_repeat_ngram must be 0 \(off\) or at least 2, not 1"),
        ({"no_repeat_ngram": -3}, r"--no_repeat_ngram must be 0 \(off\) or at least 2, not -3"),
        ({"length_penalty": -0.5}, "--length_penalty must not be negative, but is -0.5"),
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
        {"no_repeat_ngram": 2},
        {"length_penalty": 0.0},
    ],
)
def test_decoding_takes_what_lies_on_a_bound(settings):
    config = DecodingConfig(**settings)
    assert {name: getattr(config, name) for name in settings} == settings


def test_configurations_are_frozen():
    for config, name in ((network(), "width"), (DecodingConfig(), "beam_width")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(config, name, 4)
