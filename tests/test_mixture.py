"""Batches of mixtures of record sets: each set has its share, all documents of a set
come equally often, and a single set has the batches that it has without a mixture.
"""

import dataclasses
import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from support.records import write_records

from precis.model.errors import UsageError
from precis.model.records.dataset import load_dataset
from precis.model.records.example import Example
from precis.model.tokenization.wordpiece import RESERVED_TOKENS, Tokenizer
from precis.model.training.batch_shapes import BatchLimits, SpecialIds
from precis.model.training.input_batches import distributed_batches, epoch_batches
from precis.model.training.mixture import Part, check_mixture, turns
from precis.model.training.shards import check_shards
from precis.model.training.strategy import make_strategy

IDS = SpecialIds(target_pad=0, start=2, end=3)
LIMITS = BatchLimits(
    max_source_tokens=60,
    max_target_tokens=6,
    batch_tokens=480,
    pieces=1,
    fixed_shapes=False,
)
LARGE, SMALL = 200, 30


def write_set(folder: Path, name: int, counts: list[int]) -> str:
    """Records in shards of the given sizes. A source has 3 to 52 tokens, of which the
    first two are its set and its number.
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
        write_set(folder / "large", 8, [70, 40, 65, 25]),
        write_set(folder / "small", 9, [10, 20]),
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
    shuffle_documents=100,
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
    """Set, number and shard of every row that is not padding, in order."""
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


def test_documents_come_in_proportion_and_those_of_a_set_equally_often(shards):
    weights = (2, 5)
    epochs = [
        documents_of(batches_of(shards, halves(weights), epoch=epoch))
        for epoch in range(4)
    ]
    counts = [Counter(name for name, _, _ in documents) for documents in epochs]
    for count in counts:
        assert abs(count[8] - (LARGE + SMALL) * weights[0] / sum(weights)) <= 1
        assert abs(count[9] - (LARGE + SMALL) * weights[1] / sum(weights)) <= 1
    for name, documents in ((8, LARGE), (9, SMALL)):
        numbers = [
            [number for set_name, number, _ in epoch if set_name == name]
            for epoch in epochs
        ]
        often = Counter(itertools.chain(*numbers))
        total = sum(count[name] for count in counts)
        assert len(often) == min(documents, total)
        assert sum(often.values()) == total
        assert max(often.values()) - min(often.values()) <= 1
        # No document comes again before all documents of its set have come.
        first = numbers[0]
        assert len(set(first)) == min(len(first), documents)


def test_sets_are_mixed_throughout_an_epoch(shards):
    # One bucket, so that rows come in the order of the stream.
    limits = LIMITS._replace(max_source_tokens=8)
    documents = documents_of(batches_of(shards, halves((3, 1)), limits=limits))
    names = [name for name, _, _ in documents]
    shares = [names[start : start + 46].count(9) / 46 for start in range(0, 230, 46)]
    assert len(names) == 172 + 57 and 0.15 < min(shares) and max(shares) < 0.35


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


@pytest.mark.parametrize(("epoch", "shuffle_documents"), [(0, 0), (3, 100)])
def test_one_set_has_the_batches_it_has_without_a_mixture(
    shards, epoch, shuffle_documents
):
    settings = {"epoch": epoch, "shuffle_documents": shuffle_documents}
    plain = batches_of(shards[:4], **settings)
    assert len(plain) > 12 and same(
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
            take=120,
        )
    )
    # 230 * 2 / 3 is 153 1/3 and 230 / 3 is 76 2/3 documents an epoch.
    assert [number for name, number, _ in rows if name == 8] == [
        (153 + place) % LARGE for place in range(80)
    ]
    assert [number for name, number, _ in rows if name == 9] == [
        (76 + place) % SMALL for place in range(40)
    ]
    assert [name for name, _, _ in rows] == [
        8 + turn for turn in turns([153, 77])[:120].tolist()
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
        "shuffle_documents": 100,
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
    """The number of its passes does not change the number of operations."""
    mixture = [Part(4, LARGE, 1), Part(2, SMALL, 99)]
    rows = documents_of(batches_of(shards, mixture, epoch=100, shuffle_documents=10))
    often = Counter(number for name, number, _ in rows if name == 9)
    # 227 or 228 documents of a set of 30.
    assert len(often) == SMALL and set(often.values()) == {7, 8}
    assert 229 <= len(rows) <= 231


def test_sets_of_different_tokenizers_are_refused(folders):
    infos = [load_dataset(folder) for folder in folders]
    check_mixture(infos, folders)
    check_mixture(infos[:1], folders[:1])
    first, second = folders
    other = dataclasses.replace(infos[1], tokenizer_fingerprint="ab" * 32)
    fingerprint = infos[0].tokenizer_fingerprint[:12]
    with pytest.raises(
        UsageError,
        match=rf"^{second} and {first} cannot be mixed, "
        "as their token ids mean different things "
        rf"\(tokenizer abababababab and {fingerprint}\); "
        f"prepare {second} again with --tokenizer {first}$",
    ):
        check_mixture([infos[0], other], folders)
    with pytest.raises(UsageError, match=f"{second} and {first} cannot be mixed"):
        check_mixture([infos[0], infos[0], other], [first, "between", second])
    two = dataclasses.replace(infos[1], source_tokenizer_fingerprint="cd" * 32)
    with pytest.raises(
        UsageError,
        match=r"\(source_tokenizer cdcdcdcdcdcd and none\); "
        "prepare .* again without --source_tokenizer$",
    ):
        check_mixture([infos[0], two], folders)
    with pytest.raises(
        UsageError,
        match=r"\(source_tokenizer none and cdcdcdcdcdcd\); "
        "prepare b again with --source_tokenizer a$",
    ):
        check_mixture([two, infos[0]], ["a", "b"])
