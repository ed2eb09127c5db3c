"""Mixtures of record sets: the share of each, every document of a set equally often,
and the batches of a single set as they were.
"""

import dataclasses
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from conftest import write_records

from precis.model.errors import UsageError
from precis.model.records.dataset import load_dataset
from precis.model.records.example import Example
from precis.model.tokenization.wordpiece import RESERVED_TOKENS, Tokenizer
from precis.model.training.input_batches import (
    Limits,
    SpecialIds,
    check_shards,
    distributed_batches,
    epoch_batches,
)
from precis.model.training.mixture import Part, check_mixture, epoch_span, turns
from precis.model.training.strategy import make_strategy

IDS = SpecialIds(pad=0, start=2, end=3)
LIMITS = Limits(
    max_source_tokens=60,
    max_target_tokens=6,
    batch_tokens=1200,
    pieces=1,
    fixed_shapes=False,
)
LARGE, SMALL = 1000, 150


def write_set(folder: Path, name: int, counts: list[int]) -> str:
    """Records in shards of some sizes; a source says its set and its number, and has 3
    to 52 tokens.
    """
    numbers = iter(range(sum(counts)))
    rng = np.random.default_rng(name)

    def example() -> Example:
        number = next(numbers)
        source = np.array([name, 1000 + number, *[4] * rng.integers(1, 51)])
        return Example(f"{name}-{number}", source, np.array([5, 6]), len(source), "")

    shards = [[example() for _ in range(count)] for count in counts]
    return write_records(
        folder, {"train": shards}, Tokenizer([*RESERVED_TOKENS, "a", "b", "c"])
    )


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> list[str]:
    folder = tmp_path_factory.mktemp("sets")
    return [
        write_set(folder / "large", 8, [350, 200, 325, 125]),
        write_set(folder / "small", 9, [50, 100]),
    ]


@pytest.fixture(scope="module")
def shards(folders) -> list[str]:
    return [
        path
        for folder in folders
        for path in check_shards(folder, load_dataset(folder), "train", staging="")
    ]


def halves(weights: tuple[float, float] = (1, 1)) -> tuple[Part, Part]:
    return Part(4, LARGE, weights[0]), Part(2, SMALL, weights[1])


def batches_of(
    shards,
    mixture=(),
    *,
    epoch=0,
    seed=5,
    shuffle_documents=500,
    limits=LIMITS,
    take=-1,
) -> list[dict[str, np.ndarray]]:
    order = {
        "seed": seed,
        "epoch": epoch,
        "shuffle_documents": shuffle_documents,
        "take": take,
        "mixture": mixture,
    }
    return list(
        epoch_batches(shards, limits=limits, ids=IDS, **order).as_numpy_iterator()
    )


def documents_of(batches) -> list[tuple[int, int, int]]:
    """Set, number and shard of every row that is no padding, in order."""
    rows = [
        (*source[:2].tolist(), int(shard))
        for batch in batches
        for source, shard in zip(batch["source"], batch["shard"], strict=True)
    ]
    return [(name, number - 1000, shard) for name, number, shard in rows if shard >= 0]


def same(batches, others) -> bool:
    return len(batches) == len(others) and all(
        np.array_equal(batch[name], other[name])
        for batch, other in zip(batches, others, strict=True)
        for name in batch
    )


def test_an_epoch_goes_on_where_the_one_before_stopped_by_hand():
    parts = (Part(2, 6, 1), Part(1, 2, 1))
    assert [epoch_span(parts, 0, epoch) for epoch in range(3)] == [
        (0, 4),
        (4, 8),
        (8, 12),
    ]
    assert [epoch_span(parts, 1, epoch) for epoch in range(3)] == [
        (0, 4),
        (4, 8),
        (8, 12),
    ]
    thirds = (Part(1, 5, 1), Part(1, 5, 2))  # 3 1/3 and 6 2/3 of ten
    assert [epoch_span(thirds, 0, epoch) for epoch in range(4)] == [
        (0, 3),
        (3, 6),
        (6, 10),
        (10, 13),
    ]
    assert [epoch_span(thirds, 1, epoch) for epoch in range(4)] == [
        (0, 6),
        (6, 13),
        (13, 20),
        (20, 26),
    ]


def test_a_set_alone_is_read_once_an_epoch_whatever_its_weight():
    for weight in (0.1, 0.7, 1 / 3, 3):
        assert all(
            epoch_span([Part(1, 7, weight)], 0, epoch) == (7 * epoch, 7 * epoch + 7)
            for epoch in range(200)
        )


def test_whole_shares_are_exact():
    parts = (Part(1, 40, 0.29), Part(1, 60, 0.71))
    assert int(0.29 * 100) == 28  # in floating point
    assert all(
        epoch_span(parts, 0, epoch) == (29 * epoch, 29 * epoch + 29)
        for epoch in range(200)
    )


def test_turns_are_evenly_spread_by_hand():
    assert turns([4, 4]).tolist() == [0, 1, 0, 1, 0, 1, 0, 1]
    assert turns([6, 2]).tolist() == [
        0,
        0,
        1,
        0,
        0,
        0,
        1,
        0,
    ]  # 1/12 3/12, 3/12, 5/12 7/12 9/12, 9/12, 11/12
    assert turns([1, 3, 2]).tolist() == [1, 2, 0, 1, 2, 1]
    assert turns([0, 2]).tolist() == [1, 1] and turns([3]).tolist() == [0, 0, 0]


@pytest.mark.parametrize("weights", [(0.9, 0.3), (2, 5)])
def test_documents_come_in_proportion_and_those_of_a_set_equally_often(shards, weights):
    found = [
        documents_of(batches_of(shards, halves(weights), epoch=epoch))
        for epoch in range(4)
    ]
    counts = [Counter(name for name, _, _ in epoch) for epoch in found]
    for count in counts:
        assert abs(count[8] - (LARGE + SMALL) * weights[0] / sum(weights)) <= 1
        assert abs(count[9] - (LARGE + SMALL) * weights[1] / sum(weights)) <= 1
    for name, documents in ((8, LARGE), (9, SMALL)):
        often = Counter(
            number for epoch in found for own, number, _ in epoch if own == name
        )
        assert len(often) == min(documents, sum(count[name] for count in counts))
        assert (
            sum(often.values()) == sum(count[name] for count in counts)
            and max(often.values()) - min(often.values()) <= 1
        )
        # Nothing comes again before all have come.
        first = [number for own, number, _ in found[0] if own == name]
        assert len(set(first)) == min(len(first), documents)


def test_sets_are_mixed_throughout_an_epoch(shards):
    # One bucket, so that rows come in the order of the stream.
    limits = LIMITS._replace(max_source_tokens=8)
    names = [
        name
        for name, _, _ in documents_of(
            batches_of(shards, halves((3, 1)), limits=limits)
        )
    ]
    shares = [
        names[start : start + 230].count(9) / 230 for start in range(0, 1150, 230)
    ]
    assert len(names) == 862 + 287 and 0.15 < min(shares) and max(shares) < 0.35


def test_a_row_names_the_file_it_is_from(shards):
    files = []
    for path in shards:
        features = [
            tf.train.Example.FromString(row).features.feature
            for row in tf.data.TFRecordDataset(path).as_numpy_iterator()
        ]
        files.append(
            {tuple(feature["source"].int64_list.value[:2]) for feature in features}
        )
    rows = documents_of(batches_of(shards, halves()))
    assert {shard for _, _, shard in rows} == set(range(6))
    assert all((name, 1000 + number) in files[shard] for name, number, shard in rows)


def test_the_order_is_that_of_the_seed_and_the_epoch(shards):
    first = batches_of(shards, halves(), epoch=1)
    assert same(first, batches_of(shards, halves(), epoch=1))
    for changes in (
        {"epoch": 0},
        {"epoch": 2},
        {"epoch": 1, "seed": 6},
        {"epoch": 1, "mixture": halves((1, 2))},
    ):
        assert documents_of(
            batches_of(shards, **{"mixture": halves(), **changes})
        ) != documents_of(first)


@pytest.mark.parametrize("epoch", [0, 3])
@pytest.mark.parametrize("shuffle_documents", [0, 500])
def test_one_set_has_the_batches_it_has_without_a_mixture(
    shards, epoch, shuffle_documents
):
    settings = {"epoch": epoch, "shuffle_documents": shuffle_documents}
    plain = batches_of(shards[:4], **settings)
    assert len(plain) > 25 and same(
        batches_of(shards[:4], [Part(4, LARGE, 0.3)], **settings), plain
    )


def test_files_that_are_not_shuffled_keep_their_order(shards):
    limits = LIMITS._replace(max_source_tokens=8)
    rows = documents_of(
        batches_of(
            shards,
            halves((2, 1)),
            epoch=1,
            shuffle_documents=0,
            limits=limits,
            take=600,
        )
    )
    # 1150 * 2 / 3 is 766 2/3 and 1150 / 3 is 383 1/3 documents an epoch.
    assert [number for name, number, _ in rows if name == 8] == [
        (766 + place) % LARGE for place in range(400)
    ]
    assert [number for name, number, _ in rows if name == 9] == [
        (383 + place) % SMALL for place in range(200)
    ]
    assert [name for name, _, _ in rows] == [
        8 + turn for turn in turns([767, 383])[:600].tolist()
    ]


def test_two_sets_of_one_corpus_have_orders_of_their_own(shards):
    limits = LIMITS._replace(max_source_tokens=8)
    twice = [Part(4, LARGE, 1), Part(4, LARGE, 1)]
    rows = documents_of(
        batches_of(
            [*shards[:4], *shards[:4]], twice, shuffle_documents=1, limits=limits
        )
    )
    first, second = (
        [number for _, number, shard in rows if (shard < 4) == is_first]
        for is_first in (True, False)
    )
    assert sorted(first) == sorted(second) == list(range(LARGE)) and first != second


def test_skip_goes_on_with_the_next_batch(shards):
    every = batches_of(shards, halves(), epoch=3)
    order = {
        "ids": IDS,
        "seed": 5,
        "epoch": 3,
        "shuffle_documents": 500,
        "mixture": halves(),
    }
    for skip in (0, 7, len(every)):
        rest = list(
            distributed_batches(
                make_strategy("one"), shards, limits=LIMITS, skip=skip, **order
            )
        )
        assert same(
            [{name: rows.numpy() for name, rows in batch.items()} for batch in rest],
            every[skip:],
        )


def test_batches_hold_the_same_documents_whatever_the_pieces(shards):
    def documents(pieces):
        batches = batches_of(shards, halves(), limits=LIMITS._replace(pieces=pieces))
        assert all(len(batch["source"]) % pieces == 0 for batch in batches)
        return [documents_of([batch]) for batch in batches]

    assert documents(4) == documents(1)


def test_a_set_that_is_read_very_often(shards):
    """Its passes are one operation, however many they are."""
    mixture = [Part(4, LARGE, 1), Part(2, SMALL, 99)]
    rows = documents_of(batches_of(shards, mixture, epoch=100, shuffle_documents=50))
    often = Counter(number for name, number, _ in rows if name == 9)
    assert (
        len(often) == SMALL
        and set(often.values()) == {7, 8}
        and 1149 <= len(rows) <= 1151
    )  # 1138 or 1139 of 150


def test_sets_of_different_tokenizers_are_refused(folders):
    infos = [load_dataset(folder) for folder in folders]
    check_mixture(infos, folders)
    check_mixture(infos[:1], folders[:1])
    other, own = (
        dataclasses.replace(infos[1], tokenizer_fingerprint="ab" * 32),
        infos[0].tokenizer_fingerprint,
    )
    refused = rf"^{folders[1]} and {folders[0]} cannot be mixed, as their token ids mean different things \(tokenizer abababababab and "
    with pytest.raises(
        UsageError,
        match=rf"{refused}{own[:12]}\); prepare {folders[1]} again with --tokenizer {folders[0]}$",
    ):
        check_mixture([infos[0], other], folders)
    with pytest.raises(
        UsageError, match=f"{folders[1]} and {folders[0]} cannot be mixed"
    ):
        check_mixture([infos[0], infos[0], other], [folders[0], "between", folders[1]])
    two = dataclasses.replace(infos[1], source_tokenizer_fingerprint="cd" * 32)
    with pytest.raises(
        UsageError,
        match=r"\(source_tokenizer cdcdcdcdcdcd and none\); prepare .* again without --source_tokenizer$",
    ):
        check_mixture([infos[0], two], folders)
    with pytest.raises(
        UsageError,
        match=r"\(source_tokenizer none and cdcdcdcdcdcd\); prepare b again with --source_tokenizer a$",
    ):
        check_mixture([two, infos[0]], ["a", "b"])
