"""How long the steps of `precis train-summarizer` take on this machine, from a trial.

    records, pairs   `prepare` of two samples of the corpus; the larger one tells the
                     time of a document beside what each run takes
    extractor        the parts of its training, on the larger sample
    writer           some optimizer steps of its training, on pairs

The samples are the first documents of a task: from all over a compressed corpus they
would take longer to find than to prepare. They are prepared in this process; the job
shares its documents among workers.
"""

import contextlib
import functools
import io
import itertools
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from precis.model import files
from precis.model.inference.process_limits import usable_cores
from precis.model.inference.sentence_scorer import SentenceScorer
from precis.model.progress.stages import stage, unseen
from precis.model.training.config import ExtractiveTraining
from precis.model.training.extractor import (
    VALIDATION_ARTICLES,
    read_splits,
    validate_extractor,
)
from precis.model.training.extractor_importance import learn_importance
from precis.model.training.extractor_state import (
    make_extractor_setup,
    make_extractor_state,
)
from precis.model.training.extractor_step import article_batches, make_extractor_step
from precis.model.training.input_batches import distributed_batches
from precis.model.training.record_sets import open_records
from precis.model.training.state import make_setup, make_state
from precis.model.training.step_runner import make_step_runner
from precis.model.training.strategy import make_strategy
from precis.pipelines.beam.beam_runner import pipeline_options
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.packing import join_tasks
from precis.pipelines.corpus.sampling import CorpusSample, sample_corpus
from precis.pipelines.corpus.task import Task
from precis.pipelines.estimation.estimate import (
    JobFigures,
    SampledRun,
    fit,
    worker_count,
)
from precis.pipelines.flags.flags import option_names, read_flags
from precis.pipelines.options.train import TRAIN
from precis.pipelines.preparation.prepare import prepare_listed
from precis.pipelines.recipes.left_steps import LeftSteps
from precis.pipelines.recipes.step_flags import StepFlags
from precis.pipelines.training.train import choose_network

# The first run of a process also imports and compiles, so it tells nothing else.
_SAMPLES = (24, 96, 384)
# A sample of few documents has some of each split only where the hash decides.
_SPLITS = {
    "split_field": "",
    "split": "",
    "validation_share": 0.2,
    "test_share": 0.0,
}
_MOST_BATCHES = 40
_WRITER_SECONDS = 4.0
_LEAST_WRITER_STEPS = 3
_SECONDS_UNTIL_MINUTES = 150


class _Trial(NamedTuple):
    """The corpus of a trial, and where its samples are prepared."""

    corpus: CorpusSample
    folder: str


def measure_steps(steps: StepFlags, left: LeftSteps) -> dict[str, float]:
    """The seconds of each step that is left, by its name.

    Raises:
      PrecisError: a step fails on the sample, as it may on the corpus.
    """
    with (
        stage("trying the steps", is_brief=True),
        unseen(),
        tempfile.TemporaryDirectory(prefix="precis-trial-") as folder,
        contextlib.redirect_stderr(io.StringIO()),
    ):
        return dict(_measure(steps, left, folder))


def describe_times(seconds: Mapping[str, float]) -> str:
    """The times in one line: `about 41 minutes on 2 cores: records 4, extractor 9`."""
    total = sum(seconds.values())
    name, unit = ("minutes", 60.0) if total > _SECONDS_UNTIL_MINUTES else ("seconds", 1)
    cores = usable_cores()
    parts = (f"{step} {_rounded(value / unit)}" for step, value in seconds.items())
    return (
        f"about {_rounded(total / unit)} {name} on {cores} core{'s' * (cores > 1)}: "
        f"{', '.join(parts)}"
    )


def _rounded(number: float) -> str:
    return f"{number:,.0f}" if number >= 0.5 else "under 1"


def _measure(
    steps: StepFlags, left: LeftSteps, folder: str
) -> Iterator[tuple[str, float]]:
    pairs = steps.pairs["output"]
    if left.records or left.extractor or left.pairs:
        names = option_names([CorpusOptions])
        options = {name: steps.records[name] for name in names}
        trial = _Trial(sample_corpus(CorpusOptions(**options)), folder)
    if left.records or left.extractor:
        sizes = _SAMPLES if left.records else _SAMPLES[1:]
        runs = _prepare_samples(trial, "records", steps.records, sizes)
        if left.records:
            yield "records", _seconds_of_preparing(trial, steps.records, runs)
        if left.extractor:
            smaller, larger = (
                _sample_folder(trial, "records", size) for size in _SAMPLES[1:]
            )
            scale = trial.corpus.records / max(1, runs[-1].records)
            seconds = _seconds_of_extractor(steps.extractor, larger, smaller, scale)
            yield "extractor", seconds
    if left.pairs:
        sizes = _SAMPLES[1:] if left.records else _SAMPLES
        runs = _prepare_samples(trial, "pairs", steps.pairs, sizes)
        yield "pairs", _seconds_of_preparing(trial, steps.pairs, runs)
        pairs = _sample_folder(trial, "pairs", _SAMPLES[-1])
    if left.writer_steps:
        output = files.join(folder, "writer")
        flags = {**steps.writer, "records": pairs, "output": output}
        compiling, seconds = _seconds_of_writer_step(flags)
        yield "writer", compiling + left.writer_steps * seconds


def _sample_folder(trial: _Trial, name: str, size: int) -> str:
    return files.join(trial.folder, f"{name}-{size}")


def _prepare_samples(
    trial: _Trial, name: str, flags: Mapping[str, Any], sizes: Sequence[int]
) -> list[SampledRun]:
    """Prepares samples of so many documents, if the largest task has as many."""
    runs = []
    largest = max(trial.corpus.tasks, key=lambda task: task.size_bytes)
    for size in sizes:
        tasks = [join_tasks([largest._replace(max_records=size)])]
        changed = {
            **flags,
            **_SPLITS,
            "output": _sample_folder(trial, name, size),
            # A few records may all fail, and one process tells the time of a document.
            "max_failed_share": 1.0,
            "max_empty_share": 1.0,
            "workers": 1,
        }
        started = time.monotonic()
        info = prepare_listed(functools.partial(_sampled, tasks), changed)
        seconds = time.monotonic() - started
        runs.append(SampledRun(seconds, JobFigures(info.counts, 0, 0, 0)))
    return runs


def _sampled(tasks: list[Task], _: CorpusOptions) -> list[Task]:
    """Lists the tasks of a sample in place of those of the corpus."""
    return tasks


def _seconds_of_preparing(
    trial: _Trial, flags: Mapping[str, Any], runs: Sequence[SampledRun]
) -> float:
    """The time of `prepare` over the whole corpus."""
    tasks = trial.corpus.tasks
    workers = worker_count("prepare", flags, pipeline_options(()), tasks)
    seconds_per_record, fixed, _ = fit(runs)
    work = trial.corpus.records * seconds_per_record / workers
    return work + fixed + trial.corpus.listing_seconds


def _seconds_of_extractor(
    flags: Mapping[str, Any], records: str, smaller: str, scale: float
) -> float:
    """The time of a training of the extractor.

    Args:
      flags: of the training.
      records: of a sample.
      smaller: records of a smaller sample. What comes last compiles a network again
        for every training, so two samples tell the time of an article.
      scale: documents of the corpus for each of the sample.
    """
    settings = {
        name: flags[name] for name in flags if name not in ("records", "output")
    }
    training = ExtractiveTraining(**settings)
    clock = _Clock()
    setup = make_extractor_setup(records, f"{records}-extractor", training=training)
    articles = read_splits(setup)
    reading = clock.lap()
    state = make_extractor_state(setup, articles.train)
    train_step = make_extractor_step(state.network, state.optimizer)
    batches = list(
        article_batches(
            articles.train,
            batch_documents=training.batch_documents,
            seed=training.seed,
            epoch=0,
        )
    )
    train_step(*batches[0])
    compiling = clock.lap()
    for batch in batches:
        train_step(*batch)
    epoch = clock.lap()
    scorer = SentenceScorer(state.network, None)
    validate_extractor(scorer, articles.validation)
    compiling += clock.lap()
    validate_extractor(scorer, articles.validation)
    validating = clock.lap() / len(articles.validation)
    trained = len(articles.train)
    few = make_extractor_setup(smaller, f"{smaller}-extractor", training=training)
    learn_importance(few, state.network)
    compiling += (of_few := clock.lap())
    learn_importance(setup, state.network)
    more = max(1, trained - few.info.records("train"))
    importance = max(0.0, clock.lap() - of_few) / more
    documents = scale * (trained + len(articles.validation))
    validated = min(documents, VALIDATION_ARTICLES)
    return (
        scale * reading
        + compiling
        + training.epochs * (scale * epoch + validated * validating)
        + min(documents, training.importance_articles) * importance
    )


def _seconds_of_writer_step(flags: Mapping[str, Any]) -> tuple[float, float]:
    """The time until the first optimizer step is done, and that of another, on the
    larger batches of some records.
    """
    clock = _Clock()
    options, network_options, training = read_flags(
        TRAIN, {**flags, "validation_steps": 0}
    )
    records = open_records(options.folders)
    network, initial = choose_network(records, network_options)
    with tempfile.TemporaryDirectory(prefix="precis-records-") as staging:
        setup = make_setup(
            records,
            options.output,
            network=network,
            training=training,
            strategy=make_strategy(training.strategy),
            initial=initial,
            staging=staging,
        )
        state = make_state(setup, network)
        batches = distributed_batches(
            setup.strategy,
            setup.shards,
            limits=setup.limits,
            ids=setup.ids,
            seed=training.seed,
            epoch=0,
            skip=0,
            mixture=[],
            shuffle_documents=0,
        )
        run_steps = make_step_runner(setup, state, batches.element_spec)
        some = list(itertools.islice(iter(batches), _MOST_BATCHES))
    some.sort(key=lambda batch: -int(np.prod(batch["source"].shape)))
    # The last batches of a pass are smaller, and there are few of them in the job.
    some = some[: max(1, len(some) // 2)]
    run_steps(iter(some[:1]), 1)
    compiling = clock.lap()
    seconds: list[float] = []
    while sum(seconds) < _WRITER_SECONDS or len(seconds) < _LEAST_WRITER_STEPS:
        run_steps(iter([some[len(seconds) % len(some)]]), 1)
        seconds.append(clock.lap())
    return compiling, float(np.mean(seconds))


class _Clock:
    """Tells the seconds between its calls."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def lap(self) -> float:
        """The seconds since the last call, or since it was made."""
        now = time.monotonic()
        seconds, self._last = now - self._last, now
        return seconds
