"""Embeddings and positions: codes, tables, buckets, and what enters the first block."""

import keras
import numpy as np
import pytest
from keras import ops

from precis.model.network import positions
from precis.model.network.config import POSITIONS
from tests import plain_layers as plain
from tests.plain_network import scramble, weights_of
from tests.small_network import close, small_config, values


@pytest.mark.parametrize("in_halves", [False, True])
@pytest.mark.parametrize(("length", "width"), [(1, 2), (7, 6), (300, 16)])
def test_positions_are_sines_and_cosines(length, width, in_halves):
    codes = positions.sinusoidal_positions(length, width, in_halves=in_halves)
    assert codes.dtype == np.float32
    close(
        codes,
        [
            plain.sinusoidal(place, width, in_halves=in_halves)
            for place in range(length)
        ],
        1e-6,
    )


def test_the_second_position_by_hand():
    """Angles 1 and 1 / 100."""
    sines, cosines = (0.841471, 0.0099998), (0.540302, 0.99995)
    expected = [sines[0], cosines[0], sines[1], cosines[1]]
    close(positions.sinusoidal_positions(2, 4)[1], expected, 1e-6)
    close(
        positions.sinusoidal_positions(2, 4, in_halves=True)[1],
        [*sines, *cosines],
        1e-6,
    )


def make_embedding(*, is_scaled=True, has_logits_bias=False):
    layer = positions.TokenEmbedding(
        vocabulary_size=11,
        width=6,
        is_scaled=is_scaled,
        has_logits_bias=has_logits_bias,
        name="embedding",
    )
    layer.build()
    scramble(layer, seed=6)
    return layer


@pytest.mark.parametrize("is_scaled", [True, False])
def test_embeddings_are_rows_of_the_table(is_scaled):
    layer, ids = make_embedding(is_scaled=is_scaled), np.array([[3, 4, 4], [10, 0, 3]])
    table = weights_of(layer)["table"]
    close(
        layer(ids),
        [[table[piece] * (6**0.5 if is_scaled else 1) for piece in row] for row in ids],
    )


@pytest.mark.parametrize("has_logits_bias", [False, True])
def test_tied_logits_are_states_times_the_table_transposed(has_logits_bias):
    layer, states = make_embedding(has_logits_bias=has_logits_bias), values(2, 3, 6)
    logits = np.asarray(layer.logits(ops.convert_to_tensor(states), "float32"))
    weights = weights_of(layer)
    assert logits.dtype == np.float32 and logits.shape == (2, 3, 11)
    assert ("logits_bias" in weights) == has_logits_bias
    for b, t, piece in np.ndindex(2, 3, 11):
        expected = sum(
            float(x) * y
            for x, y in zip(states[b, t], weights["table"][piece], strict=True)
        )
        assert logits[b, t, piece] == pytest.approx(
            expected + (weights["logits_bias"][piece] if has_logits_bias else 0),
            abs=1e-5,
        )


def test_tied_logits_are_multiplied_in_the_given_precision():
    layer, states = (
        make_embedding(has_logits_bias=True),
        ops.convert_to_tensor(values(2, 3, 6)),
    )
    half, full = (layer.logits(states, dtype) for dtype in ("bfloat16", "float32"))
    assert keras.backend.standardize_dtype(half.dtype) == "float32"
    assert 1e-3 < np.abs(np.asarray(half) - np.asarray(full)).max() < 0.05


def test_scaled_embeddings_are_about_as_large_as_positions():
    layer = positions.TokenEmbedding(
        vocabulary_size=500,
        width=64,
        is_scaled=True,
        has_logits_bias=False,
        name="embedding",
    )
    layer.build()
    assert np.std(np.asarray(layer(np.arange(500)))) == pytest.approx(1.0, abs=0.03)


def make_input(**settings):
    config = small_config(dropout=0.5, **settings)
    layer = positions.PositionedInput(config=config, max_tokens=5, name="source_input")
    layer.build()
    scramble(layer, seed=7)
    return layer, config


@pytest.mark.parametrize(
    "settings",
    [{}, {"embedding_norm": True}, {"embedding_norm": True, "rms_norm": True}],
)
@pytest.mark.parametrize("kind", POSITIONS)
def test_positions_are_added_and_then_normed(kind, settings):
    layer, config = make_input(positions=kind, norm_epsilon=0.2, **settings)
    table, weights = values(9, 8, seed=2).astype("float64"), weights_of(layer)
    of_norm = (
        {"norm/scale"}
        if "rms_norm" in settings
        else {"norm/gamma", "norm/beta"}
        if settings
        else set()
    )
    assert set(weights) == ({"positions"} if kind == "learned" else set()) | of_norm
    ids = np.array([3, 8, 0, 5])
    embedded = ops.convert_to_tensor(
        np.stack([table[ids], table[ids[::-1]]]), "float32"
    )
    expected = [
        plain.embed(row, table, weights, config, is_scaled=False)
        for row in (ids, ids[::-1])
    ]
    close(layer(embedded), expected)
    for index in range(4):
        close(
            layer.at(embedded[:, index], ops.convert_to_tensor(index, "int32")),
            np.array(expected)[:, index],
        )
    # Rows that begin at other positions.
    late = layer(embedded, np.array([[0, 1, 2, 3], [1, 2, 3, 4]], "int32"))
    close(
        late,
        [
            expected[0],
            plain.embed(ids[::-1], table, weights, config, is_scaled=False, first=1),
        ],
    )
    assert (np.abs(np.asarray(late)[1] - expected[1]).max() > 0.1) == (
        kind != "relative"
    )


def test_learned_positions_begin_small_and_differ():
    layer = positions.PositionedInput(
        config=small_config(positions="learned", width=64, heads=4),
        max_tokens=200,
        name="source_input",
    )
    layer.build()
    codes = np.asarray(layer.positions)
    assert codes.shape == (200, 64)
    assert (
        np.std(codes) == pytest.approx(0.02, rel=0.05) and np.std(codes.mean(1)) < 0.01
    )


@pytest.mark.parametrize(
    "given", [None, np.array([[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]], "int32")]
)
def test_dropout_of_what_enters_the_first_block_sets_to_zero_or_doubles(given):
    layer, _ = make_input()
    embedded = values(2, 5, 8)
    kept, dropped = (
        np.asarray(layer(embedded, given)),
        np.asarray(layer(embedded, given, training=True)),
    )
    is_zero = dropped == 0
    assert 20 < is_zero.sum() < 60
    close(dropped[~is_zero], 2 * kept[~is_zero])


def buckets_of(distances, **settings):
    return positions.relative_buckets(np.array(distances), **settings).tolist()


def test_the_buckets_of_t5_by_hand():
    """32 buckets up to a distance of 128, as published: sixteen each way, or all of
    them backwards.
    """
    both_ways = {"buckets": 32, "longest": 128, "is_bidirectional": True}
    first = [
        0,
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
        8,
        8,
        8,
        9,
        9,
        9,
        9,
        *[10] * 7,
        *[11] * 9,
        *[12] * 14,
        *[13] * 18,
        *[14] * 27,
        *[15] * 38,
    ]
    assert buckets_of(range(0, -129, -1), **both_ways) == first
    assert buckets_of(range(1, 129), **both_ways) == [
        16 + bucket for bucket in first[1:]
    ]
    backwards = {**both_ways, "is_bidirectional": False}
    assert buckets_of(
        [5, 1, 0, -1, -15, -16, -18, -19, -20, -21, -112, -113, -128], **backwards
    ) == [
        *[0, 0, 0, 1, 15, 16, 16, 17, 17, 18, 30, 31, 31],
    ]


@pytest.mark.parametrize("is_bidirectional", [False, True])
@pytest.mark.parametrize(
    ("buckets", "longest"),
    [(32, 128), (8, 10), (8, 12), (6, 5), (16, 20), (64, 1000), (4, 3), (32, 17)],
)
def test_buckets_grow_as_the_paper_says(buckets, longest, is_bidirectional):
    settings = {
        "buckets": buckets,
        "longest": longest,
        "is_bidirectional": is_bidirectional,
    }
    distances = list(range(-longest, longest + 1))
    found = buckets_of(distances, **settings)
    assert found == [plain.bucket(distance, **settings) for distance in distances]
    assert set(found) <= set(range(buckets)) and max(found) == (
        2 * (buckets // 2) - 1 if is_bidirectional else buckets - 1
    )


@pytest.mark.parametrize("is_bidirectional", [False, True])
def test_numbers_of_relative_positions(is_bidirectional):
    """Beyond the longest distance all positions are alike; rows of positions that
    differ have numbers of their own.
    """
    config = small_config(positions="relative", relative_buckets=8, relative_distance=6)
    layer = positions.make_relative(
        config, is_bidirectional=is_bidirectional, name="encoder_positions"
    )
    layer.build()
    scramble(layer, seed=8)
    table, every = weights_of(layer)["table"], list(range(12))
    assert table.shape == (8, 2)
    close(
        layer(*[np.arange(12)] * 2),
        plain.relative_numbers(
            table, every, every, config, is_bidirectional=is_bidirectional
        ),
    )
    queries, keys = (
        np.array([[3], [9]], "int32"),
        np.array([[0, 1, 2, 3, 11], [11, 2, 9, 8, 0]], "int32"),
    )
    found = np.asarray(layer(queries, keys))
    assert found.shape == (2, 2, 1, 5) and found.dtype == np.float32
    for row in range(2):
        close(
            found[row],
            plain.relative_numbers(
                table,
                queries[row],
                keys[row],
                config,
                is_bidirectional=is_bidirectional,
            ),
        )


def test_only_relative_positions_have_numbers():
    made = [
        positions.make_relative(
            small_config(positions=kind), is_bidirectional=True, name="n"
        )
        for kind in POSITIONS
    ]
    assert [one is not None for one in made] == [
        kind == "relative" for kind in POSITIONS
    ]


def test_numbers_of_relative_positions_begin_small():
    config = small_config(
        positions="relative", relative_buckets=400, relative_distance=500
    )
    layer = positions.make_relative(
        config, is_bidirectional=True, name="encoder_positions"
    )
    layer.build()
    assert np.std(np.asarray(layer.table)) == pytest.approx(0.02, rel=0.1)
