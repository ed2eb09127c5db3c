"""Mixtures of record sets: the documents that an epoch takes from each set, and the
order in which the sets take turns.

Each set is read in passes without end, and an epoch goes on where the epoch before
stopped, so that all documents of a set come equally often. An epoch has as many
documents as all sets together. The share of a set is its weight over the sum of the
weights; fractions of a document are left to later epochs.

    sets of 6 and 2 documents, weights 1 and 1    epoch 0    epoch 1    epoch 2
    documents of the first set                    0 1 2 3    4 5|0 1    2 3 4 5
    documents of the second set                   0 1|0 1    0 1|0 1    0 1|0 1
    sets in turn                                  0 1 0 1 0 1 0 1 in every epoch

A bar marks the beginning of another pass, which has another order of files.
"""

import fractions
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from precis.model.errors import UsageError
from precis.model.records.dataset import DatasetInfo


class Part(NamedTuple):
    """One record set of a mixture.

    Attributes:
      shards: the number of its files; in the list of all files they follow those of the
          parts before it.
      records: the number of documents in those files.
      weight: the share of its documents is this over the sum of all weights.
    """

    shards: int
    records: int
    weight: float


def check_mixture(infos: Sequence[DatasetInfo], folders: Sequence[str]) -> None:
    """Checks that record sets can be mixed: their token ids must mean the same.

    Args:
      infos: the description of each set.
      folders: the folder of each set, for messages.

    Raises:
      UsageError: two sets were encoded with different tokenizers.
    """
    for info, folder in zip(infos, folders, strict=True):
        for flag in ("tokenizer", "source_tokenizer"):
            actual = getattr(info, f"{flag}_fingerprint")
            expected = getattr(infos[0], f"{flag}_fingerprint")
            if actual == expected:
                continue
            if expected:
                way_out = f"with --{flag} {folders[0]}"
            else:
                way_out = f"without --{flag}"
            raise UsageError(
                f"{folder} and {folders[0]} cannot be mixed, "
                "as their token ids mean different things "
                f"({flag} {_short(actual)} and {_short(expected)}); "
                f"prepare {folder} again {way_out}"
            )


def _short(fingerprint: str | None) -> str:
    return (fingerprint or "none")[:12]


def epoch_span(parts: Sequence[Part], number: int, epoch: int) -> tuple[int, int]:
    """The documents of a part that an epoch takes, as the half-open range of their
    numbers, which go on from pass to pass.
    """
    documents = sum(part.records for part in parts)
    # Fractions of the decimals as they are written: 0.29 of 100 documents are 29, and
    # not the 28 of floating-point numbers.
    weights = [fractions.Fraction(str(part.weight)) for part in parts]
    share = weights[number] / sum(weights)
    start = math.floor(share * documents * epoch)
    end = math.floor(share * documents * (epoch + 1))
    return start, end


def turns(counts: Sequence[int]) -> np.ndarray:
    """The part that each document of an epoch comes from, int64 [sum of counts].

    The documents of each part are evenly spread over the epoch.

        turns([6, 2]) -> 0 0 1 0 0 0 1 0

    Args:
      counts: the number of documents of each part.
    """
    places = np.concatenate([(np.arange(count) + 0.5) / count for count in counts])
    return np.repeat(np.arange(len(counts)), counts)[np.argsort(places, kind="stable")]
