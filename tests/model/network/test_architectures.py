"""The named architectures and sizes, and the way of a configuration into a bundle and
back.
"""

import dataclasses
import json

import pytest
from support.small_network import ALL, VARIANTS, config_of

from precis.model.errors import UsageError
from precis.model.network.architectures import (
    architecture_of,
    named_network,
    read_config,
)
from precis.model.network.config import DecoderOnlyConfig, RecurrentConfig

TOKENIZER = {"vocabulary_size": 100, "pad_id": 3}


@pytest.mark.parametrize(
    ("size", "layers", "width", "feed_forward", "heads"),
    [
        ("small", 4, 256, 1024, 8),
        ("base", 6, 512, 2048, 8),
        ("six_layers", 6, 256, 1024, 8),
        ("four_layers", 4, 128, 512, 8),
        ("tiny", 2, 128, 512, 4),
    ],
)
def test_the_sizes_of_transformers_and_decoder_only_networks(
    size, layers, width, feed_forward, heads
):
    config = named_network(size, **TOKENIZER)
    assert (config.encoder_layers, config.decoder_layers) == (layers, layers)
    assert (config.vocabulary_size, config.pad_id, config.dropout) == (100, 3, 0.1)
    # As many blocks as encoder and decoder have together.
    other = named_network(size, architecture="decoder_only", **TOKENIZER)
    assert isinstance(other, DecoderOnlyConfig) and other.layers == 2 * layers
    for each in (config, other):
        assert (each.width, each.feed_forward) == (width, feed_forward)
        assert each.heads == heads


@pytest.mark.parametrize(
    ("size", "layers", "width"), [("tiny", 1, 128), ("small", 1, 256), ("base", 2, 512)]
)
def test_the_sizes_of_recurrent_networks(size, layers, width):
    config = named_network(size, architecture="recurrent", **TOKENIZER)
    assert isinstance(config, RecurrentConfig)
    assert (config.encoder_layers, config.decoder_layers) == (layers, layers)
    assert (config.vocabulary_size, config.pad_id, config.width) == (100, 3, width)


@pytest.mark.parametrize(
    ("size", "settings", "words"),
    [
        (
            "huge",
            {},
            "no network size 'huge' of transformer; "
            "the sizes are tiny, four_layers, small, six_layers, base",
        ),
        (
            "six_layers",
            {"architecture": "recurrent"},
            "no network size 'six_layers' of recurrent; "
            "the sizes are tiny, small, base",
        ),
        (
            "tiny",
            {"architecture": "recurrent", "positions": "learned"},
            "positions means nothing to a network of .* recurrent; leave",
        ),
        (
            "tiny",
            {"layers": 3},
            "layers means nothing to a network of the architecture transformer; "
            "leave it out",
        ),
    ],
)
def test_an_unknown_name_is_refused_with_the_known_ones(size, settings, words):
    with pytest.raises(UsageError, match=words):
        named_network(size, vocabulary_size=100, pad_id=0, **settings)


@pytest.mark.parametrize("variant", ALL)
def test_a_configuration_comes_back_from_the_json_of_a_bundle(variant):
    config = config_of(variant)
    architecture = architecture_of(config)
    assert variant in VARIANTS[architecture]
    fields = json.loads(json.dumps(dataclasses.asdict(config)))
    assert read_config(architecture, fields) == config


def test_a_recurrent_network_of_an_earlier_version_is_read_where_it_is_one_of_now():
    fields = dataclasses.asdict(config_of("gru"))
    earlier = {**fields, "cell": "gru", "attention": "luong", "input_feeding": True}
    assert read_config("recurrent", earlier) == config_of("gru")
    with pytest.raises(ValueError, match="another version of precis: .*'cell'"):
        read_config("recurrent", {**earlier, "cell": "lstm"})


def test_unknown_fields_and_architectures_are_refused():
    fields = dataclasses.asdict(config_of("vocabularies"))
    stack = {**fields["decoder_stack"], "rotary": True}
    words = "a configuration of another version of precis: .*'(heads_of|rotary)'"
    for changed in ({"heads_of": None}, {"decoder_stack": stack}):
        with pytest.raises(ValueError, match=words):
            read_config("transformer", {**fields, **changed})
    words = (
        "'mixer' is none of transformer, decoder_only, recurrent; only a newer precis"
    )
    with pytest.raises(ValueError, match=words):
        read_config("mixer", fields)
