"""Fixtures that several test files share."""

import functools
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import summarize_runs
from support.command_line import write_jsonl
from support.records import MAX_TARGET_TOKENS, write_records

from precis.model.own_process import prepare_own_process
from precis.model.records.dataset import load_dataset
from precis.model.records.example import Example
from precis.model.text.normalization import normalise
from precis.model.tokenization.vocabulary import count_words, learn
from precis.model.tokenization.wordpiece import Tokenizer
from precis.pipelines.corpus.sample.generator import document, hand_written

# As the process of a command does.
prepare_own_process()

# In the background of a shell SIGINT is ignored, and so it would be by the commands
# that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def records_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder of records.

    It holds 60 training documents in 3 shards of different size and 12 validation
    documents in 1 shard. Sources have 20 to 192 tokens.
    """
    documents = [document(len(hand_written()) + index) for index in range(72)]
    articles, highlights = (
        [normalise(text) for text in texts]
        for texts in zip(*((d.article, d.highlights) for d in documents), strict=True)
    )
    tokenizer = Tokenizer(learn(count_words([*articles, *highlights]), size=600))
    # Articles of the built-in corpus are of similar length. Cut at different lengths,
    # they fill several length buckets.
    lengths = [20 + 43 * index % 173 for index in range(72)]
    encoded = tokenizer.encode(articles), tokenizer.encode(highlights)
    most = MAX_TARGET_TOKENS
    rows = zip(documents, *encoded, highlights, lengths, strict=True)
    examples = [
        Example(d.document_id, source[:length], target[:most], len(source), text)
        for d, source, target, text, length in rows
    ]
    train = [examples[:25], examples[25:41], examples[41:60]]
    shards = {"train": train, "validation": [examples[60:]]}
    folder = write_records(tmp_path_factory.mktemp("records"), shards, tokenizer)
    assert load_dataset(folder).records("train") == 60
    return folder


@pytest.fixture(scope="session")
def copy_records(records_folder: str) -> Callable[[Path], str]:
    """A function that copies the records to a folder, where a test may damage them."""
    return functools.partial(shutil.copytree, records_folder)


# The fixtures below are for the tests of `precis summarize`. `summarize_runs` describes
# the corpus.
@pytest.fixture
def one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets the time at which runs begin."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, one_time: None) -> Any:
    """Runs `precis summarize` and notes the documents that it summarizes."""
    from support.incremental_runs import CountedRuns

    return CountedRuns(monkeypatch)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The `--corpus` with lines of every kind of `summarize_runs`."""
    path = tmp_path_factory.mktemp("corpus") / "news.jsonl"
    return write_jsonl(path, [line for line, _ in summarize_runs.LINES])


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """The tokenizer of `bundle`."""
    return summarize_runs.learn_tokenizer()


@pytest.fixture(scope="session")
def bundle(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of an untrained network."""
    folder = tmp_path_factory.mktemp("bundle")
    summarize_runs.save_network(folder, tokenizer)
    return folder


@pytest.fixture(scope="session")
def flags(corpus: str, bundle: Path) -> dict[str, Any]:
    """The flags of the run `undisturbed`, in which no document counts as too short and
    long documents are cut.
    """
    sizes = {"task_bytes": 4_000, "window_documents": 5, "min_source_words": 0}
    sizes |= {"max_failed_share": 0.5, "deduplicate": True}
    search = {"beam_width": 3, "n_best": 2, "long_documents": "head"}
    return {"corpus": corpus, "bundle": bundle, **search, **sizes}


@pytest.fixture(scope="session")
def undisturbed(
    flags: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A run with a network."""
    return _run(tmp_path_factory.mktemp("undisturbed") / "run", **flags)


@pytest.fixture(scope="session")
def extractive(corpus: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without a network."""
    flags = {"corpus": corpus, "task_bytes": 4_000, "min_source_words": 0}
    kept = {"max_failed_share": 0.5, "deduplicate": True}
    return _run(tmp_path_factory.mktemp("extractive") / "run", **flags, **kept)


def _run(folder: Path, **flags: Any) -> Path:
    from precis.pipelines.summarize.summarize import summarize

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        summarize(output=folder, **flags)
    return folder


# What the tests of `precis prepare` share; `prepared` says what is in the corpus.
@pytest.fixture(scope="session")
def prepare_flags(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The flags of the run `prepared_records`: several tasks and splits, labels."""
    from support.prepared import LINES, SMALL  # TensorFlow takes seconds.

    path = tmp_path_factory.mktemp("prepare_corpus") / "news.jsonl"
    corpus = write_jsonl(path, [line for line, _ in LINES])
    shares = {"validation_share": 0.2, "test_share": 0.2}
    cut = {"task_bytes": 12_000, "oracle_sentences": 2, "max_failed_share": 0.5}
    return {"corpus": corpus, **cut, **shares, **SMALL}


@pytest.fixture(scope="session")
def prepared_records(
    prepare_flags: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The records of an undisturbed run."""
    from precis.pipelines.prepare.prepare import prepare

    folder = tmp_path_factory.mktemp("prepared") / "records"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        prepare(output=folder, **prepare_flags)
    return folder


@pytest.fixture(scope="session")
def selector_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A selector of sentences of one layer that has learned nothing."""
    # TensorFlow takes seconds to import, and not every test needs it.
    from precis.model.inference.selector_bundle import save_selector
    from precis.model.inference.selector_network import SelectorNetwork
    from precis.model.network.build import build_network
    from precis.model.network.config import SelectorConfig

    shape = {"width": 8, "layers": 1, "feed_forward": 8, "heads": 2}
    config = SelectorConfig(vector_width=0, max_sentences=32, **shape)
    folder = tmp_path_factory.mktemp("scorer") / "bundle"
    network = build_network(config)
    save_selector(str(folder), network=SelectorNetwork.of(network), provenance={})
    return folder
