"""The whole Transformer: its formulas, what may influence what, and the cached step against teacher forcing."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from model.config import NetworkConfig
from model.errors import UsageError
from model.network.build import build_network
from tests import plain_network as plain

CONFIG = NetworkConfig(
    vocabulary_size=13,
    pad_id=4,
    encoder_layers=2,
    decoder_layers=2,
    width=8,
    feed_forward=12,
    heads=2,
    dropout=0.2,
    max_source_tokens=7,
    max_target_tokens=9,
)
PAD = CONFIG.pad_id
# Two documents of different length, and targets longer than the longest source.
SOURCE = np.array([[7, 8, 7, 0, PAD, PAD], [3, 12, 5, 8, 8, 9]], "int32")
TARGET = np.array([[1, 7, 8, 0, 0, 6, 12, 2], [1, 3, 3, 12, 5, 10, 2, PAD]], "int32")
VARIANTS = [(pointer, tied) for pointer in (False, True) for tied in (False, True)]


def network_of(*, pointer=True, tied=True, precision="float32", **settings):
    """A network none of whose weights is zero or one."""
    network = build_network(dataclasses.replace(CONFIG, pointer=pointer, tied_output=tied, **settings), precision=precision)
    plain.scramble(network, seed=11, scale=0.4)
    return network


@pytest.fixture(scope="module")
def networks():
    return {(pointer, tied): network_of(pointer=pointer, tied=tied) for pointer, tied in VARIANTS}


def distribution(logits):
    return np.asarray(ops.softmax(logits))


def logits_of(network, source, target, **settings):
    return np.asarray(network(np.asarray(source, "int32"), np.asarray(target, "int32"), **settings))


@pytest.mark.parametrize(("pointer", "tied"), VARIANTS)
def test_the_whole_network_by_hand(networks, pointer, tied):
    network = networks[pointer, tied]
    logits = network(SOURCE, TARGET)
    assert logits.dtype == "float32" and tuple(logits.shape) == (2, 8, 13)
    expected = plain.transformer(network.config, plain.weights_of(network), SOURCE, TARGET)
    np.testing.assert_allclose(distribution(logits), expected, atol=1e-5)
    assert np.ptp(expected, axis=-1).min() > 0.05  # far from uniform


def test_a_pointer_network_gives_log_probabilities(networks):
    np.testing.assert_allclose(np.exp(logits_of(networks[True, True], SOURCE, TARGET)).sum(-1), 1, atol=1e-5)


@pytest.mark.parametrize("tied", [False, True])
def test_without_a_pointer_logits_are_the_output_layer_s(networks, tied):
    """Logits, not only their distribution: a constant shift is no error of the distribution but one of the formula."""
    network = networks[False, tied]
    weights, readable = plain.weights_of(network), SOURCE[1] != PAD
    memory, states = plain.embed(SOURCE[1], weights), plain.embed(TARGET[1], weights)
    for i in range(2):
        memory = plain.encoder_block(memory, readable, plain.below(weights, f"encoder_{i}"), 2)
    for i in range(2):
        states = plain.decoder_block(states, memory, readable, plain.below(weights, f"decoder_{i}"), 2)
    expected = states @ weights["embedding/table"].T if tied else plain.dense(states, weights, "output_layer")
    np.testing.assert_allclose(logits_of(network, SOURCE, TARGET)[1], expected, atol=1e-5)
    assert ("output_layer/kernel" in weights) != tied


@pytest.mark.parametrize(("pointer", "tied"), VARIANTS)
def test_padding_has_no_influence(networks, pointer, tied):
    network = networks[pointer, tied]
    alone = logits_of(network, SOURCE[:1, :4], TARGET[:1])
    padding = np.full((1, 3), PAD)
    more_columns = logits_of(network, np.concatenate([SOURCE[:1, :4], padding], axis=1), TARGET[:1])
    more_rows = logits_of(network, np.concatenate([SOURCE[1:], SOURCE[:1], SOURCE[1:]]), TARGET[[1, 0, 1]])
    np.testing.assert_allclose(more_columns, alone, atol=1e-5)
    np.testing.assert_allclose(more_rows[1:2], alone, atol=1e-5)
    # The same positions filled with a real token do have influence: the comparison above can fail.
    assert np.abs(logits_of(network, np.concatenate([SOURCE[:1, :4], padding * 0 + 9], axis=1), TARGET[:1]) - alone).max() > 1e-2


@pytest.mark.parametrize(("pointer", "tied"), VARIANTS)
def test_later_target_tokens_have_no_influence(networks, pointer, tied):
    network = networks[pointer, tied]
    base = logits_of(network, SOURCE, TARGET)
    for t in range(TARGET.shape[1] - 1):
        changed = TARGET.copy()
        changed[:, t + 1 :] = (changed[:, t + 1 :] + 5) % 13
        moved = np.abs(logits_of(network, SOURCE, changed) - base)
        assert moved[:, : t + 1].max() < 1e-6
        assert moved[:, t + 1 :].max() > 1e-2


def test_no_gradient_flows_from_later_targets_or_padding(networks):
    """Token 10 and 2 stand in the second target only, from position 5 on; padding only in the first source and after the end."""
    network = networks[True, False]
    with tf.GradientTape(persistent=True) as tape:
        logits = network(SOURCE, TARGET)
        early, late = tf.reduce_sum(logits[1, :5] ** 2), tf.reduce_sum(logits[1, 5] ** 2)
        first = tf.reduce_sum(logits[0] ** 2)
    table = network.embedding.table.value
    early, late, first = (np.asarray(tf.convert_to_tensor(tape.gradient(loss, table))) for loss in (early, late, first))
    assert (early[10] == 0).all() and (early[2] == 0).all() and (early[12] != 0).any()
    assert (late[10] != 0).any() and (late[2] == 0).all()
    assert (first[PAD] == 0).all() and (first[7] != 0).any()


@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize(("pointer", "tied"), VARIANTS)
def test_cached_steps_equal_teacher_forcing(networks, pointer, tied, beams):
    network = networks[pointer, tied]
    targets = np.random.default_rng(beams).integers(0, 13, (2, beams, 8)).astype("int32")
    cache = network.start(network.encode(SOURCE), beams, 8)
    expected = logits_of(network, np.repeat(SOURCE, beams, axis=0), targets.reshape(2 * beams, 8)).reshape(2, beams, 8, 13)
    for index in range(8):
        logits, cache = network.step(targets[:, :, index], cache, ops.convert_to_tensor(index, "int32"))
        assert logits.dtype == "float32"
        np.testing.assert_allclose(np.asarray(logits), expected[:, :, index], atol=1e-5)
    assert beams == 1 or np.abs(expected[:, 0] - expected[:, 1]).max() > 0.1


def test_the_beams_of_a_cache_are_leading_axes(networks):
    """A search reorders [B, K, ...] and repeats nothing of what is shared."""
    cache = networks[True, True].start(networks[True, True].encode(SOURCE), 3, 5)
    assert {tuple(past.shape[:2]) for past in keras.tree.flatten(cache.beams)} == {(2, 3)}
    assert {past.shape[0] for past in keras.tree.flatten(cache.shared)} == {2}


def test_the_longest_source_and_target_have_positions():
    network = network_of(max_source_tokens=6, max_target_tokens=7)  # the target has a start token besides
    assert np.isfinite(logits_of(network, SOURCE, TARGET)).all()
    cache = network.start(network.encode(SOURCE), 1, 8)
    logits, _ = network.step(TARGET[:, :1], cache, ops.convert_to_tensor(7, "int32"))
    assert np.isfinite(np.asarray(logits)).all()


def test_a_source_of_padding_only_is_no_nan(networks):
    source = np.stack([np.full(6, PAD, "int32"), SOURCE[1]])
    logits = logits_of(networks[True, True], source, TARGET)
    assert np.isfinite(logits).all()
    np.testing.assert_allclose(logits[1], logits_of(networks[True, True], SOURCE, TARGET)[1], atol=1e-5)


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
    network, without = network_of(dropout=0.5), network_of(dropout=0.0)
    np.testing.assert_array_equal(logits_of(network, SOURCE, TARGET), logits_of(without, SOURCE, TARGET))
    assert np.abs(logits_of(network, SOURCE, TARGET, training=True) - logits_of(without, SOURCE, TARGET)).max() > 1e-2
    encoded, noisy = (np.asarray(network.encode(SOURCE, training=training).states) for training in (False, True))
    assert np.abs(encoded - noisy).max() > 1e-2


def test_training_reaches_every_dropout(monkeypatch):
    network = network_of()
    seen = []
    call = keras.layers.Dropout.call
    monkeypatch.setattr(
        keras.layers.Dropout, "call", lambda self, x, training=False: seen.append((self.path, training)) or call(self, x, training)
    )
    network(SOURCE, TARGET, training=True)
    residuals = [f"encoder_{i}/{part}" for i in range(2) for part in ("attention_residual", "feed_forward_residual")]
    residuals += [f"decoder_{i}/{part}" for i in range(2) for part in ("self_residual", "cross_residual", "feed_forward_residual")]
    # The embedding twice: once for the source and once for the target.
    assert len(seen) == len(residuals) + 2 and all(training for _, training in seen)


@pytest.mark.parametrize(("pointer", "tied"), VARIANTS)
def test_weight_paths_are_unique(networks, pointer, tied):
    paths = [weight.path for weight in networks[pointer, tied].weights]
    assert len(set(paths)) == len(paths)
    # Per attention 8, per residual 2, per feed-forward network 4; table; output layer; three dense layers of the pointer.
    assert len(paths) == 2 * (8 + 4 + 4) + 2 * (16 + 4 + 6) + 1 + (0 if tied else 2) + (6 if pointer else 0)
    assert not any(weight.path.startswith("transformer/transformer") for weight in networks[pointer, tied].weights)


def test_heads_must_divide_the_width():
    with pytest.raises(UsageError, match="the width must be a multiple of the number of heads, but 8 is not one of 3; take 6"):
        build_network(dataclasses.replace(CONFIG, heads=3))


@pytest.mark.parametrize(("pointer", "tied"), VARIANTS)
def test_mixed_precision_stays_near_float32(networks, pointer, tied):
    reference = networks[pointer, tied]
    network = network_of(pointer=pointer, tied=tied, precision="mixed_bfloat16")
    assert keras.config.dtype_policy().name == "float32"  # as it was before
    assert network.compute_dtype == "bfloat16" and {weight.dtype for weight in network.weights} == {"float32"}
    logits = network(SOURCE, TARGET)
    cache = network.start(network.encode(SOURCE), 1, 8)
    stepped, cache = network.step(TARGET[:, :1], cache, ops.convert_to_tensor(0, "int32"))
    assert logits.dtype == "float32" and stepped.dtype == "float32"
    assert cache.beams[0][0].dtype == "bfloat16"
    expected = distribution(reference(SOURCE, TARGET))
    difference = np.abs(distribution(logits) - expected)
    assert 0 < difference.max() < 0.05
    assert np.abs(distribution(stepped)[:, 0] - expected[:, 0]).max() < 0.05
    if pointer:  # the mixture itself is float32
        np.testing.assert_allclose(np.exp(np.asarray(logits)).sum(-1), 1, atol=1e-5)
