"""Training of an extractor: records with oracle labels -> bundle of the kind
`extractive`.

An encoder, where there is one, is not trained. The vectors of the sentences are
computed once and kept, so that an epoch costs a minute on a laptop whatever the
encoder's size. Each epoch ends with a checkpoint, and an interrupted training goes on
from the last one with the steps that it would have made.

    training/vectors/        sentence vectors, one file a shard
    training/checkpoints/    one an epoch
    training/losses.jsonl    one line an epoch
"""

import itertools
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from precis.model import files
from precis.model.errors import DataError
from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.selection import select
from precis.model.inference.sentence_scorer import SentenceScorer, save_scorer
from precis.model.progress.counters import paused
from precis.model.progress.stages import Stage, say, stage
from precis.model.records.facts import record_facts
from precis.model.rouge import Reference
from precis.model.training.checkpoint import restore_best
from precis.model.training.config import ExtractiveTraining
from precis.model.training.export import TrainResult, validation_of
from precis.model.training.extractor_articles import (
    TrainingArticle,
    VectorStore,
    read_articles,
)
from precis.model.training.extractor_importance import (
    learn_importance,
    make_vector_store,
)
from precis.model.training.extractor_state import (
    ExtractorSetup,
    ExtractorState,
    make_extractor_setup,
    make_extractor_state,
    save_extractor,
    settings_without_encoder,
)
from precis.model.training.extractor_step import article_batches, make_extractor_step
from precis.model.training.resume import restore_training
from precis.model.training.shards import check_shards

# The first articles of the validation split, scored at the end of each epoch.
VALIDATION_ARTICLES = 2_000


def train_extractor(
    records: str,
    output: str,
    *,
    training: ExtractiveTraining,
    request: Mapping[str, Any] | None = None,
) -> TrainResult:
    """Trains an extractor and writes it as a bundle; goes on where an interrupted run
    of the same flags stopped.

    Args:
      records: folder that `precis prepare --oracle_sentences` wrote.
      output: folder for the bundle, with vectors, checkpoints and losses in `training/`
          below it.
      training: how to train.
      request: the command and its flags, for the manifest.

    Raises:
      UsageError: settings that cannot be, records without oracle labels, or checkpoints
          of another training.
      DataError: damaged records, none with sentences, or a loss that is not finite.
    """
    setup = make_extractor_setup(records, output, training=training, request=request)
    files.remove_leftovers(output)
    articles = read_splits(setup)
    state = make_extractor_state(setup, articles.train)
    restore_training(setup, state)
    run_epochs(setup, state, articles)
    return export_extractor(setup, state)


class ArticleSplits(NamedTuple):
    """The articles that are trained on and those that are validated on."""

    train: list[TrainingArticle]
    validation: list[TrainingArticle]


def read_splits(setup: ExtractorSetup) -> ArticleSplits:
    """Reads the articles of both splits, with vectors of this run or an earlier one.

    Raises:
      DataError: a damaged shard, or a split without an article that has sentences.
    """
    vector_store = make_vector_store(setup)
    with tempfile.TemporaryDirectory(prefix="precis-records-") as staging:
        train = _read_split(setup, "train", vector_store, staging)
        validation = _read_split(
            setup, "validation", vector_store, staging, most=VALIDATION_ARTICLES
        )
    if not train or not validation:
        raise DataError(
            f"{setup.records}: no article of a split has a sentence to learn from; "
            "prepare another corpus"
        )
    return ArticleSplits(train, validation)


def _read_split(
    setup: ExtractorSetup,
    split: str,
    vector_store: VectorStore | None,
    staging: str,
    most: int | None = None,
) -> list[TrainingArticle]:
    """Reads the first articles of a split, or all of them; only those of the validation
    split keep their text.
    """
    shards = check_shards(setup.records, setup.info, split, staging=staging)
    records = setup.info.records(split)
    total = records if most is None else min(records, most)
    with stage(f"read {split}", total=total) as reading:
        articles = read_articles(
            shards,
            max_sentences=setup.config.max_sentences,
            vector_store=vector_store,
            keep_text=split == "validation",
        )
        return [
            reading.counted(article) for article in itertools.islice(articles, most)
        ]


def run_epochs(
    setup: ExtractorSetup, state: ExtractorState, articles: ArticleSplits
) -> None:
    """Trains until the last epoch.

    Raises:
      DataError: a loss was not finite.
    """
    training = setup.training
    position = state.position
    train_step = make_extractor_step(state.network, state.optimizer)
    scorer = SentenceScorer(state.network, None)
    with stage(
        "train",
        total=training.epochs * len(articles.train),
        unit="articles",
        warms_up=True,
    ) as progress:
        progress.resume(position.epoch * len(articles.train))
        while position.epoch < training.epochs:
            _run_epoch(setup, state, articles, train_step, scorer, progress)


def _run_epoch(
    setup: ExtractorSetup,
    state: ExtractorState,
    articles: ArticleSplits,
    train_step: Callable[..., float],
    scorer: SentenceScorer,
    progress: Stage,
) -> None:
    """Trains on all articles once, validates the network and saves its state.

    Raises:
      DataError: the loss is not finite.
    """
    position = state.position
    batches = article_batches(
        articles.train,
        batch_documents=setup.training.batch_documents,
        seed=setup.training.seed,
        epoch=position.epoch,
    )
    losses = []
    for batch in batches:
        losses.append(train_step(*batch))
        progress.advance(len(batch[0]))
    position.step += len(losses)
    position.epoch += 1
    loss = float(np.mean(losses))
    if not math.isfinite(loss):
        raise DataError(
            f"the loss is not finite in epoch {position.epoch}; "
            "lower --learning_rate, with another --output"
        )
    with paused(), stage("validate"):
        validation = validate_extractor(scorer, articles.validation)
    _record_epoch(state, loss, validation)
    save_extractor(setup, state)
    progress.note = f"loss {loss:.4f}"
    say(
        f"epoch {position.epoch}: loss {loss:.4f}; "
        f"validation loss {validation['loss']:.4f}, "
        f"rouge1 {100 * validation['rouge1']:.2f}, "
        f"rouge2 {100 * validation['rouge2']:.2f}"
    )


def _record_epoch(
    state: ExtractorState, loss: float, validation: dict[str, float]
) -> None:
    """Adds an epoch to the log and remembers its step if it is the best so far."""
    position = state.position
    score = -validation["loss"]
    position.validated_step = position.step
    if position.best_step == 0 or score > position.best_score:
        position.best_step = position.step
        position.best_score = score
    state.log.reports.append(
        {
            "step": position.step,
            "epoch": position.epoch,
            "loss": loss,
            "validation": validation,
        }
    )


def validate_extractor(
    scorer: SentenceScorer, articles: Sequence[TrainingArticle]
) -> dict[str, float]:
    """Scores the extractor: the mean loss of a sentence, by which the best epoch is
    chosen, and the mean ROUGE F1 of summaries of three sentences.
    """
    scores = scorer.score_inputs(
        [article.vectors.astype(np.float32) for article in articles],
        [article.features for article in articles],
    )
    rows = []
    for article, article_scores in zip(articles, scores, strict=True):
        places = select(article.sentences, article_scores, selection=SelectionConfig())
        summary = "\n".join(article.sentences[place] for place in sorted(places))
        figures = Reference(article.highlights).score(summary)
        rows.append([figures[name].fmeasure for name in ("rouge1", "rouge2")])
    rouge1, rouge2 = np.mean(rows, axis=0).tolist()
    labels = np.concatenate([article.labels for article in articles])
    positive = np.concatenate(scores)
    right = np.clip(np.where(labels > 0, positive, 1.0 - positive), 1e-12, 1.0)
    return {
        "loss": float(-np.log(right).mean()),
        "rouge1": rouge1,
        "rouge2": rouge2,
    }


def export_extractor(setup: ExtractorSetup, state: ExtractorState) -> TrainResult:
    """Writes the bundle from the best epoch.

    Raises:
      DataError: the checkpoint of the best epoch is damaged.
    """
    step = restore_best(
        setup.checkpoints,
        state.position,
        variables=state.variables,
        fingerprint=setup.fingerprint,
    )
    validation = validation_of(state.log.reports, step)
    provenance = {
        **setup.request,
        "records_fingerprint": setup.info.fingerprint,
        "data": [record_facts(setup.info)],
        "encoder": setup.encoder.model_id if setup.encoder else None,
        "training": settings_without_encoder(setup.training),
        "training_fingerprint": setup.fingerprint,
        "step": step,
        "validation": validation,
    }
    model_id = save_scorer(
        setup.output,
        extractor=state.network,
        encoder=setup.encoder,
        precision=setup.training.vector_precision,
        provenance=provenance,
        importance=learn_importance(setup, state.network),
    )
    return TrainResult(setup.output, model_id, step, validation)
