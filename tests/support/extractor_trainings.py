"""Records, an encoder and a finished training that the tests of extractors share.

Each of them is made once in a process, below the base folder of its temporary files
(`tmp_path_factory.getbasetemp()`).
"""

import functools
import shutil
from pathlib import Path
from typing import NamedTuple

from precis.model.bundle.network_bundle import save_bundle
from precis.model.network.config import ExtractorConfig
from precis.model.tokenization.wordpiece import Tokenizer
from precis.model.training.config import ExtractiveTraining
from precis.model.training.extractor import ArticleSplits, read_splits, train_extractor
from precis.model.training.extractor_state import (
    ExtractorSetup,
    ExtractorState,
    make_extractor_setup,
    make_extractor_state,
)
from precis.model.training.resume import restore_training
from precis.pipelines.prepare.prepare import prepare
from support.command_line import contents
from support.shared_networks import eagerly
from support.small_network import make_network
from support.small_training import reports

FLAGS = {
    "epochs": 2,
    "batch_documents": 42,
    "dropout": 0.3,
    "vector_precision": "float32",
    "importance_articles": 0,
}
ARTICLES = 84
STEPS_PER_EPOCH = 2  # of 42 articles
MAX_SENTENCES = ExtractorConfig().max_sentences
BUNDLE_FILES = [
    "README.md",
    "SHA256SUMS",
    "config.json",
    "manifest.json",
    "tokenizer/tokenizer.json",
    "tokenizer/vocab.txt",
    "weights.safetensors",
]


@functools.cache
def labelled_records(base: Path) -> str:
    """Records of 100 articles with oracle labels, in several shards."""
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
    assert info.records("train") == ARTICLES
    assert len(info.splits["train"]) > 1 and len(info.splits["validation"]) > 1
    return output


@functools.cache
def encoder_bundle(base: Path) -> str:
    """The bundle of a tiny network that writes; an extractor uses its encoder."""
    folder = str(base / "encoder_of_extractors")
    tokenizer = Tokenizer.load(f"{labelled_records(base)}/tokenizer")
    network = make_network(
        vocabulary_size=tokenizer.vocabulary_size,
        pad_id=tokenizer.pad_id,
        max_source_tokens=64,
    )
    save_bundle(folder, network=network, tokenizer=tokenizer, provenance={})
    return folder


@functools.cache
def finished_training(base: Path) -> Path:
    """The output of a training of two epochs."""
    output = base / "finished_extractor"
    training = extractor_settings(encoder_bundle(base))
    with eagerly():
        train_extractor(labelled_records(base), str(output), training=training)
    return output


class SmallExtractorTraining(NamedTuple):
    """A training of an extractor that is ready for its next epoch."""

    setup: ExtractorSetup
    articles: ArticleSplits
    state: ExtractorState


def prepare_extractor(records, output, training) -> SmallExtractorTraining:
    """A training as `train_extractor` prepares it: restored from its last checkpoint,
    but without an epoch.
    """
    setup = make_extractor_setup(str(records), str(output), training=training)
    articles = read_splits(setup)
    state = make_extractor_state(setup, articles.train)
    restore_training(setup, state)
    return SmallExtractorTraining(setup, articles, state)


def extractor_settings(encoder, **changes) -> ExtractiveTraining:
    return ExtractiveTraining(**{"encoder": encoder, **FLAGS, **changes})


def copied(folder, to) -> str:
    return shutil.copytree(folder, to)


def bundle_files(folder) -> dict[str, bytes]:
    return {
        name: content
        for name, content in contents(folder).items()
        if not name.startswith("training/")
    }


def vector_files(folder) -> list[str]:
    return sorted(path.name for path in (Path(folder) / "training/vectors").iterdir())


def assert_same_extractor_training(output, other) -> None:
    """Every byte of the reports and of the bundle, which has them in its model id."""
    losses = "training/losses.jsonl"
    assert (Path(output) / losses).read_bytes() == (Path(other) / losses).read_bytes()
    assert [row["epoch"] for row in reports(output)] == [1, 2]
    assert bundle_files(output) == bundle_files(other)
    assert sorted(bundle_files(output)) == BUNDLE_FILES
