"""The whole Transformer: its formulas, what may influence what, its weights and its precision. `test_step` has the cached step."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from model.config import NetworkConfig
from model.errors import UsageError
from model.network import layers
from model.network.build import build_network
from tests import plain_network as plain
from tests.small_network import PAD, SOURCE, TARGET, VARIANTS, make_network, network_of, small_config

CONFIG = small_config()
# What differs most.
KINDS = ["pointer", "untied", "bart"]


def distribution(logits):
    return np.asarray(ops.softmax(logits))


def logits_of(network, source, target, **settings):
    return np.asarray(network(np.asarray(source, "int32"), np.asarray(target, "int32"), **settings))


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_whole_network_by_hand(variant):
    network = network_of(variant)
    logits = network(SOURCE, TARGET)
    assert logits.dtype == "float32" and tuple(logits.shape) == (2, 8, 13)
    expected = plain.transformer(network.config, plain.weights_of(network), SOURCE, TARGET)
    np.testing.assert_allclose(distribution(logits), expected, atol=1e-5)
    assert np.ptp(expected, axis=-1).min() > 0.03  # far from uniform


@pytest.mark.parametrize("variant", [name for name, settings in VARIANTS.items() if settings.get("pointer", True)])
def test_a_pointer_network_gives_log_probabilities(variant):
    np.testing.assert_allclose(np.exp(logits_of(network_of(variant), SOURCE, TARGET)).sum(-1), 1, atol=1e-5)


@pytest.mark.parametrize("variant", [name for name, settings in VARIANTS.items() if not settings.get("pointer", True)])
def test_without_a_pointer_logits_are_the_output_layer_s(variant):
    """Logits, not only their distribution: a constant shift is no error of the distribution but one of the formula."""
    network = network_of(variant)
    weights = plain.weights_of(network)
    logits = logits_of(network, SOURCE, TARGET)
    for row in range(2):
        expected, *_ = plain.document(network.config, weights, SOURCE[row], TARGET[row])
        np.testing.assert_allclose(logits[row], expected, atol=1e-5)
    assert ("output_layer/kernel" in weights) == (variant == "untied")


@pytest.mark.parametrize("variant", KINDS)
def test_padding_has_no_influence(variant):
    network = network_of(variant)
    alone = logits_of(network, SOURCE[:1, :4], TARGET[:1])
    padding = np.full((1, 3), PAD)
    more_columns = logits_of(network, np.concatenate([SOURCE[:1, :4], padding], axis=1), TARGET[:1])
    more_rows = logits_of(network, np.concatenate([SOURCE[1:], SOURCE[:1], SOURCE[1:]]), TARGET[[1, 0, 1]])
    np.testing.assert_allclose(more_columns, alone, atol=1e-5)
    np.testing.assert_allclose(more_rows[1:2], alone, atol=1e-5)
    # The same positions filled with a real token do have influence: the comparison above can fail.
    assert np.abs(logits_of(network, np.concatenate([SOURCE[:1, :4], padding * 0 + 9], axis=1), TARGET[:1]) - alone).max() > 1e-2


@pytest.mark.parametrize("variant", KINDS)
def test_later_target_tokens_have_no_influence(variant):
    network = network_of(variant)
    base = logits_of(network, SOURCE, TARGET)
    for t in range(TARGET.shape[1] - 1):
        changed = TARGET.copy()
        changed[:, t + 1 :] = (changed[:, t + 1 :] + 5) % 13
        moved = np.abs(logits_of(network, SOURCE, changed) - base)
        assert moved[:, : t + 1].max() < 1e-6
        assert moved[:, t + 1 :].max() > 1e-2


def test_no_gradient_flows_from_later_targets_or_padding():
    """Token 10 and 2 stand in the second target only, from position 5 on; padding only in the first source and after the end."""
    network = network_of("untied_pointer")
    with tf.GradientTape(persistent=True) as tape:
        logits = network(SOURCE, TARGET)
        early, late = tf.reduce_sum(logits[1, :5] ** 2), tf.reduce_sum(logits[1, 5] ** 2)
        first = tf.reduce_sum(logits[0] ** 2)
    table = network.embedding.table.value
    early, late, first = (np.asarray(tf.convert_to_tensor(tape.gradient(loss, table))) for loss in (early, late, first))
    assert (early[10] == 0).all() and (early[2] == 0).all() and (early[12] != 0).any()
    assert (late[10] != 0).any() and (late[2] == 0).all()
    assert (first[PAD] == 0).all() and (first[7] != 0).any()


@pytest.mark.parametrize("settings", [{}, {"positions": "learned"}])
def test_the_longest_source_and_target_have_positions(settings):
    network = make_network(max_source_tokens=6, max_target_tokens=7, **settings)  # the target has a start token besides
    assert np.isfinite(logits_of(network, SOURCE, TARGET)).all()
    assert network.source_input.positions.shape == (6, 8) and network.target_input.positions.shape == (8, 8)
    cache = network.start(network.encode(SOURCE), 1, 8)
    logits, _ = network.step(TARGET[:, :1], cache, ops.convert_to_tensor(7, "int32"))
    assert np.isfinite(np.asarray(logits)).all()


def test_a_source_of_padding_only_is_no_nan():
    source = np.stack([np.full(6, PAD, "int32"), SOURCE[1]])
    logits = logits_of(network_of("pointer"), source, TARGET)
    assert np.isfinite(logits).all()
    np.testing.assert_allclose(logits[1], logits_of(network_of("pointer"), SOURCE, TARGET)[1], atol=1e-5)


def test_a_seed_makes_weights_and_dropout():
    first, same, other = (build_network(CONFIG, seed=seed) for seed in (3, 3, 4))
    for weight, again in zip(first.weights, same.weights, strict=True):
        np.testing.assert_array_equal(weight.numpy(), again.numpy())
    assert np.abs(first.embedding.table.numpy() - other.embedding.table.numpy()).max() > 0.01
    noisy = []
    for _ in range(2):
        network = build_network(CONFIG, seed=3)
        noisy.append([logits_of(network, SOURCE, TARGET, training=True) for _ in range(2)])
    np.testing.assert_array_equal(noisy[0], noisy[1])
    assert np.abs(noisy[0][0] - noisy[0][1]).max() > 1e-3  # each call drops others


def test_dropout_is_off_unless_training():
    network, without = make_network(dropout=0.5), make_network(dropout=0.0)
    np.testing.assert_array_equal(logits_of(network, SOURCE, TARGET), logits_of(without, SOURCE, TARGET))
    assert np.abs(logits_of(network, SOURCE, TARGET, training=True) - logits_of(without, SOURCE, TARGET)).max() > 1e-2
    encoded, noisy = (np.asarray(network.encode(SOURCE, training=training).states) for training in (False, True))
    assert np.abs(encoded - noisy).max() > 1e-2


def test_training_reaches_every_dropout(monkeypatch):
    network = make_network(decoder_layers=1)
    seen, call = [], keras.layers.Dropout.call
    monkeypatch.setattr(
        keras.layers.Dropout, "call", lambda self, x, training=False: seen.append((id(self), training)) or call(self, x, training)
    )
    network(SOURCE, TARGET, training=True)
    parts = [network.source_input, network.target_input]
    parts += [part for block in network.encoder for part in (block.attention_residual, block.feed_forward_residual)]
    parts += [part for block in network.decoder for part in (block.self_residual, block.cross_residual, block.feed_forward_residual)]
    assert sorted(seen) == sorted((id(part.dropout), True) for part in parts) and len(parts) == 2 + 4 + 3


@pytest.mark.parametrize("variant", VARIANTS)
def test_weight_paths_are_unique(variant):
    network, settings = network_of(variant), VARIANTS[variant]
    paths = [weight.path for weight in network.weights]
    assert len(set(paths)) == len(paths)
    # Per attention 8, per residual 2, per feed-forward network 4; table; and what the settings add.
    expected = network.config.encoder_layers * (8 + 4 + 4) + network.config.decoder_layers * (16 + 4 + 6) + 1
    expected += (2 if not settings.get("tied_output", True) else 0) + (6 if settings.get("pointer", True) else 0)
    expected += 2 * (settings.get("positions") == "learned") + 4 * ("embedding_norm" in settings) + ("logits_bias" in settings)
    assert len(paths) == expected
    assert not any(weight.path.startswith("transformer/transformer") for weight in network.weights)


# The weights of a network that has the defaults: bundles of version 1 hold these, and a change of them would make them unreadable.
ATTENTION = {
    f"{part}/{name}": shape for part in ("query", "key", "value", "output") for name, shape in (("kernel", (4, 4)), ("bias", (4,)))
}
NORM = {"norm/gamma": (4,), "norm/beta": (4,)}
FEED_FORWARD = {"inner/kernel": (4, 6), "inner/bias": (6,), "outer/kernel": (6, 4), "outer/bias": (4,)}
PARTS = {
    "embedding": {"table": (11, 4)},
    "encoder_0/attention": ATTENTION,
    "encoder_0/attention_residual": NORM,
    "encoder_0/feed_forward": FEED_FORWARD,
    "encoder_0/feed_forward_residual": NORM,
    "decoder_0/self_attention": ATTENTION,
    "decoder_0/self_residual": NORM,
    "decoder_0/cross_attention": ATTENTION,
    "decoder_0/cross_residual": NORM,
    "decoder_0/feed_forward": FEED_FORWARD,
    "decoder_0/feed_forward_residual": NORM,
}
POINTER = {"query/kernel": (4, 4), "query/bias": (4,), "key/kernel": (4, 4), "key/bias": (4,), "gate/kernel": (12, 1), "gate/bias": (1,)}


@pytest.mark.parametrize(
    ("settings", "more"),
    [
        ({}, {"pointer": POINTER}),
        ({"pointer": False}, {}),
        ({"pointer": False, "tied_output": False}, {"output_layer": {"kernel": (4, 11), "bias": (11,)}}),
        ({"pointer": False, "logits_bias": True}, {"embedding": {"table": (11, 4), "logits_bias": (11,)}}),
        (
            {"pointer": False, "positions": "learned", "embedding_norm": True, "max_target_tokens": 30},
            {"source_input": {"positions": (512, 4), **NORM}, "target_input": {"positions": (31, 4), **NORM}},
        ),
    ],
)
def test_weights_have_the_names_that_bundles_hold(settings, more):
    network = build_network(
        NetworkConfig(vocabulary_size=11, pad_id=0, encoder_layers=1, decoder_layers=1, width=4, feed_forward=6, heads=2, **settings)
    )
    expected = {f"transformer/{part}/{name}": shape for part, held in {**PARTS, **more}.items() for name, shape in held.items()}
    assert {weight.path: tuple(weight.shape) for weight in network.weights} == expected


def test_heads_must_divide_the_width():
    with pytest.raises(UsageError, match="the width must be a multiple of the number of heads, but 8 is not one of 3; take 6"):
        build_network(dataclasses.replace(CONFIG, heads=3))


@pytest.mark.parametrize("variant", KINDS)
def test_mixed_precision_stays_near_float32(variant):
    network = network_of(variant, "mixed_bfloat16")
    assert keras.config.dtype_policy().name == "float32"  # as it was before
    assert network.compute_dtype == "bfloat16" and {weight.dtype for weight in network.weights} == {"float32"}
    logits, expected = network(SOURCE, TARGET), network_of(variant)(SOURCE, TARGET)
    assert logits.dtype == "float32"
    # Measured: up to 0.006 of a probability, and 0.042 of a logit where logits reach 8; bfloat16 holds 3 digits.
    assert 0 < np.abs(distribution(logits) - distribution(expected)).max() < 0.02
    assert np.abs(np.asarray(logits) - np.asarray(expected)).max() < 0.1
    if network.pointer:  # the mixture itself is float32
        np.testing.assert_allclose(np.exp(np.asarray(logits)).sum(-1), 1, atol=1e-5)


@pytest.mark.parametrize("variant", ["pointer", "bart"])
def test_the_residual_stream_norms_and_softmax_are_float32(variant, monkeypatch):
    network = network_of(variant, "mixed_bfloat16")
    seen = {"stream": [], "norm": [], "softmax": [], "sublayer": []}

    def watch(owner, name, part, *, place):
        original = getattr(owner, name)

        def watched(*given, **named):
            made = original(*given, **named)
            seen[part] += [keras.backend.standardize_dtype(tensor.dtype) for tensor in (given[place], made)]
            return made

        monkeypatch.setattr(owner, name, watched, raising=False)

    # As the block hands it over, before the layer casts it: what is bfloat16 here has lost its digits.
    watch(layers.Residual, "__call__", "stream", place=1)
    watch(layers.EncoderBlock, "call", "stream", place=1)
    watch(layers.DecoderBlock, "call", "stream", place=1)
    watch(keras.layers.LayerNormalization, "call", "norm", place=1)
    watch(layers.MultiHeadAttention, "call", "sublayer", place=1)
    watch(layers.FeedForward, "call", "sublayer", place=1)
    watch(ops, "softmax", "softmax", place=0)
    network(SOURCE, TARGET)
    decoder = network.config.decoder_layers
    attentions, residuals = 2 + 2 * decoder, 4 + 3 * decoder
    assert seen["stream"] == ["float32"] * 2 * (residuals + 2 + decoder)
    assert seen["norm"] == ["float32"] * 2 * (residuals + (2 if network.config.embedding_norm else 0))
    assert seen["softmax"] == ["float32"] * 2 * (attentions + (2 if network.pointer else 0))
    assert seen["sublayer"] == ["bfloat16"] * 2 * (attentions + 2 + decoder)  # what they multiply is half as wide
    memory = network.encode(SOURCE)
    assert memory.states.dtype == "float32"
