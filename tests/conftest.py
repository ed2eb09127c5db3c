"""Fixtures that several test files share."""

import functools
import os
import shutil
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
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


Fill = Callable[[Path], object]


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Fill], Path]:
    """A function that returns a folder by its name, which the first process of pytest
    that asks for it fills.
    """
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent

    def made(name: str, fill: Fill) -> Path:
        folder, filled = root / name, root / f"{name}.filled"
        with FileLock(f"{folder}.lock"):
            if not filled.exists():
                # Another process may have failed to fill it.
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                fill(folder)
                filled.touch()
        return folder

    return made


@pytest.fixture(scope="session")
def records_folder(made_once: Any) -> str:
    """A folder of records.

    It holds 60 training documents in 3 shards of different size and 12 validation
    documents in 1 shard. Sources have 20 to 192 tokens.
    """
    return str(made_once("records", _write_records))


def _write_records(folder: Path) -> None:
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
    assert load_dataset(write_records(folder, shards, tokenizer)).records("train") == 60


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
def corpus(made_once: Any) -> str:
    """The `--corpus` with lines of every kind of `summarize_runs`."""
    return _write_corpus(made_once, "corpus", summarize_runs.LINES)


def _write_corpus(made_once: Any, name: str, lines: Sequence[tuple[Any, Any]]) -> str:
    """The `--corpus` of lines, each with what becomes of it."""

    def fill(folder: Path) -> None:
        write_jsonl(folder / "news.jsonl", [line for line, _ in lines])

    return f"jsonl:{made_once(name, fill)}/news.jsonl"


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """The tokenizer of `bundle`."""
    return summarize_runs.learn_tokenizer()


@pytest.fixture(scope="session")
def bundle(tokenizer: Tokenizer, made_once: Any) -> Path:
    """The bundle of an untrained network."""
    save = summarize_runs.save_network
    return made_once("bundle", lambda folder: save(folder, tokenizer))


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
def undisturbed(flags: dict[str, Any], made_once: Any) -> Path:
    """A run with a network."""
    return (
        made_once("undisturbed", lambda folder: _run(folder / "run", **flags)) / "run"
    )


@pytest.fixture(scope="session")
def extractive(corpus: str, made_once: Any) -> Path:
    """A run without a network."""
    flags = {"corpus": corpus, "task_bytes": 4_000, "min_source_words": 0}
    flags |= {"max_failed_share": 0.5, "deduplicate": True}
    return made_once("extractive", lambda folder: _run(folder / "run", **flags)) / "run"


def _run(folder: Path, **flags: Any) -> None:
    from precis.pipelines.summarize.summarize import summarize

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        summarize(output=folder, **flags)


# What the tests of `precis prepare` share; `prepared` says what is in the corpus.
@pytest.fixture(scope="session")
def prepare_flags(made_once: Any) -> dict[str, Any]:
    """The flags of the run `prepared_records`: several tasks and splits, labels."""
    from support.prepared import LINES, SMALL  # TensorFlow takes seconds.

    corpus = _write_corpus(made_once, "prepare_corpus", LINES)
    shares = {"validation_share": 0.2, "test_share": 0.2}
    cut = {"task_bytes": 12_000, "oracle_sentences": 2, "max_failed_share": 0.5}
    return {"corpus": corpus, **cut, **shares, **SMALL}


@pytest.fixture(scope="session")
def prepared_records(prepare_flags: dict[str, Any], made_once: Any) -> Path:
    """The records of an undisturbed run."""
    from precis.pipelines.prepare.prepare import prepare

    def fill(folder: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
            prepare(output=folder / "records", **prepare_flags)

    return made_once("prepared", fill) / "records"


@pytest.fixture(scope="session")
def selector_bundle(made_once: Any) -> Path:
    """A selector of sentences of one layer that has learned nothing."""
    # TensorFlow takes seconds to import, and not every test needs it.
    from precis.model.inference.selector_bundle import save_selector
    from precis.model.inference.selector_network import SelectorNetwork
    from precis.model.network.build import build_network
    from precis.model.network.config import SelectorConfig

    shape = {"width": 8, "layers": 1, "feed_forward": 8, "heads": 2}
    config = SelectorConfig(vector_width=0, max_sentences=32, **shape)

    def fill(folder: Path) -> None:
        network = SelectorNetwork.of(build_network(config))
        save_selector(str(folder), network=network, provenance={})

    return made_once("selector", fill)
