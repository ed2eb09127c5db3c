"""The named architectures and sizes, and the way of a configuration into a bundle and
back.
"""

import dataclasses
import json

import pytest
from support import read_table
from support.small_network import ALL, VARIANTS, config_of

from precis.model.errors import UsageError
from precis.model.network.architectures import (
    SIZES,
    architecture_of,
    named_network,
    read_config,
)

TOKENIZER = {"vocabulary_size": 100, "pad_id": 3}


@pytest.mark.parametrize("size", SIZES)
def test_a_decoder_only_network_has_as_many_blocks_as_both_sides(size):
    config = named_network(size, **TOKENIZER)
    other = named_network(size, architecture="decoder_only", **TOKENIZER)
    assert other.layers == config.encoder_layers + config.decoder_layers
    assert (other.width, other.heads) == (config.width, config.heads)
    assert other.feed_forward == config.feed_forward == 4 * config.width
    assert (config.vocabulary_size, config.pad_id) == (100, 3)


UNKNOWN_NAMES = read_table("refusals")["network_names"]


@pytest.mark.parametrize(("size", "settings", "words"), UNKNOWN_NAMES)
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


def test_unknown_fields_and_architectures_are_refused():
    fields = dataclasses.asdict(config_of("vocabularies"))
    stack = {**fields["decoder_stack"], "rotary": True}
    words = "the configuration is from another version of precis: .*'(heads_of|rotary)'"
    for changed in ({"heads_of": None}, {"decoder_stack": stack}):
        with pytest.raises(ValueError, match=words):
            read_config("transformer", {**fields, **changed})
    words = "'mixer', known are transformer, decoder_only, recurrent; it needs a newer"
    with pytest.raises(ValueError, match=words):
        read_config("mixer", fields)
