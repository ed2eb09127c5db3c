"""A folder of records, written without Beam."""

import functools
import hashlib
from collections import Counter
from pathlib import Path

from precis.model import files
from precis.model.records.dataset import (
    DATASET_FILE,
    DatasetInfo,
    Shard,
    shard_name,
    summarise_lengths,
)
from precis.model.records.example import Example, frame, serialise
from precis.model.tokenization.folder import TOKENIZER_FOLDER
from precis.model.tokenization.wordpiece import Tokenizer
from support.damaged_results import write_success

MAX_SOURCE_TOKENS, MAX_TARGET_TOKENS = 192, 48


def write_records(
    folder: Path, examples: dict[str, list[list[Example]]], tokenizer: Tokenizer
) -> str:
    """Writes a folder of records as `precis prepare` would.

    Args:
      folder: where to.
      examples: the shards of each split.
      tokenizer: the tokenizer of the examples.
    """
    splits = {}
    sources: Counter[int] = Counter()
    targets: Counter[int] = Counter()
    for split, parts in examples.items():
        shards = []
        for index, part in enumerate(parts):
            name = shard_name(split, index, len(parts))
            content = b"".join(map(frame, serialise(part)))
            files.write_bytes(str(folder / name), content)
            sha256 = hashlib.sha256(content).hexdigest()
            shards.append(Shard(name, len(part), len(content), sha256))
            sources.update(example.source_tokens for example in part)
            targets.update(len(example.target) for example in part)
        splits[split] = tuple(shards)
    tokenizer.save(str(folder / TOKENIZER_FOLDER))
    written = sum(sources.values())
    none = dict.fromkeys(("duplicates", "failed", "skipped"), 0)
    checksums = {name: [each.sha256 for each in splits[name]] for name in splits}
    info = DatasetInfo(
        splits=splits,
        source_lengths=summarise_lengths(sources),
        target_lengths=summarise_lengths(targets),
        counts={"read": written, "written": written, **none},
        max_source_tokens=MAX_SOURCE_TOKENS,
        max_target_tokens=MAX_TARGET_TOKENS,
        seed=1,
        tokenizer_fingerprint=tokenizer.fingerprint,
        fingerprint=files.sha256_json(checksums),
    )
    files.write_json(str(folder / DATASET_FILE), info.to_json())
    write_success(folder / DATASET_FILE)
    return str(folder)


@functools.cache
def labelled_records(base: Path) -> str:
    """Records of 100 articles with oracle labels, in several shards, made once in a
    process below the base folder of its temporary files
    (`tmp_path_factory.getbasetemp()`).
    """
    from precis.pipelines.prepare.prepare import prepare  # imports Beam

    output = str(base / "labelled_records")
    info = prepare(
        corpus="sample:100",
        output=output,
        oracle_sentences=3,
        vocabulary_size=600,
        max_source_tokens=64,
        max_target_tokens=16,
        task_bytes=400_000,
    )
    assert info.records("train") == 84
    assert len(info.splits["train"]) > 1 and len(info.splits["validation"]) > 1
    return output
