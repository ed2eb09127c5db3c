"""The names of splits, and the split of a document that its source assigns to none."""

import hashlib
import re

from precis.pipelines.corpus.options import CorpusOptions

_SPLIT_NAME = re.compile(r"[A-Za-z0-9_]{1,40}")


def is_split_name(split: str) -> bool:
    """Whether a split may name files: 1 to 40 letters, digits and underscores."""
    return _SPLIT_NAME.fullmatch(split) is not None


def split_of(document_id: str, options: CorpusOptions) -> str:
    """The split by the hash of a document's id, the same in every run.

    The hash is taken as a number from 0 to 1. With a validation share of 0.2 and a test
    share of 0.3:

        0          0.2         0.5                  1
        | validation |   test   |       train       |
    """
    digest = hashlib.sha256(f"{options.seed}:{document_id}".encode()).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    if place < options.validation_share:
        return "validation"
    return "test" if place < options.validation_share + options.test_share else "train"
