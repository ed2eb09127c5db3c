"""Mixtures of record sets: how many documents an epoch takes from each set, which, and
whose turn it is.

Each set is read round and round; an epoch goes on where the one before stopped, so that
all documents of a set come equally often. An epoch takes as many documents as all sets
have together, a share of them from each that is its weight over the sum of the weights;
what is less than a document is left to later epochs.

    sets of 6 and 2 documents, weights 1 and 1     epoch 0     epoch 1     epoch 2
    documents of the first                         0 1 2 3     4 5|0 1     2 3 4 5        | begins another pass, in another order of files
    documents of the second                        0 1|0 1     0 1|0 1     0 1|0 1
    turns                                          0 1 0 1 0 1 0 1, in every epoch
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
      shards: how many files it has; in the list of all they stand behind those of the
          parts before it.
      records: how many documents they hold.
      weight: its share of the documents is this over the sum of all weights.
    """

    shards: int
    records: int
    weight: float


def check_mixture(infos: Sequence[DatasetInfo], folders: Sequence[str]) -> None:
    """Checks that record sets can be mixed: that their token ids mean the same.

    Args:
      infos: what each set says of itself.
      folders: where each lies, for messages.

    Raises:
      UsageError: two sets were encoded with different tokenizers.
    """
    for info, folder in zip(infos, folders, strict=True):
        for flag in ("tokenizer", "source_tokenizer"):
            found, expected = (
                getattr(one, f"{flag}_fingerprint") for one in (info, infos[0])
            )
            if found != expected:
                prints = " and ".join((one or "none")[:12] for one in (found, expected))
                way_out = (
                    f"with --{flag} {folders[0]}" if expected else f"without --{flag}"
                )
                raise UsageError(
                    f"{folder} and {folders[0]} cannot be mixed, as their token ids mean different things ({flag} {prints}); "
                    f"prepare {folder} again {way_out}"
                )


def epoch_span(parts: Sequence[Part], number: int, epoch: int) -> tuple[int, int]:
    """The documents of a part that an epoch takes, counted on from pass to pass: the
    first and the one behind the last.
    """
    documents = sum(part.records for part in parts)
    weights = [
        fractions.Fraction(str(part.weight)) for part in parts
    ]  # as it is written: 0.29 of 100 is 29
    share = weights[number] / sum(weights)
    start, end = (
        math.floor(share * documents * epochs) for epochs in (epoch, epoch + 1)
    )
    return start, end


def turns(counts: Sequence[int]) -> np.ndarray:
    """The part that each document of an epoch comes from, int64 [sum of counts], each
    part's evenly spread; `counts` are theirs.
    """
    places = np.concatenate([(np.arange(count) + 0.5) / count for count in counts])
    return np.repeat(np.arange(len(counts)), counts)[np.argsort(places, kind="stable")]
