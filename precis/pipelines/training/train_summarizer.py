"""`precis train-summarizer`: trains a summarizer on a corpus with references.

    step        command          output
    records     prepare          DIR/training/records            with oracle labels
    selector    train-selector   DIR/extractor                   trained on the records
    pairs       prepare          DIR/training/sentence_records   lines of references and
                                                                 the sentences that
                                                                 support them
    draft       train            DIR/training/draft              trained on the pairs
    cuts        prepare          DIR/training/cut_records        pairs whose line only
                                                                 leaves out words
    writer      train            DIR/writer                      the draft, trained on
                                                                 the cuts
    summarizer                   DIR/manifest.json               names both networks

Each step calls the function of a command. `prepare` and the trainings resume, and a
complete bundle is kept, so the same command continues after any kill. With other flags,
the first step that they affect refuses its folder.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from precis.model import files
from precis.model.bundle.manifest import (
    ABSTRACTIVE,
    EXTRACTIVE,
    MANIFEST_FILE,
    SUMMARIZER,
    SUMMARIZER_PARTS,
    TRAINING_FOLDER,
    open_stored,
    refuse_other_kind,
)
from precis.model.bundle.summarizer_bundle import save_summarizer_bundle
from precis.model.errors import DataError
from precis.model.progress.stages import about, say
from precis.model.records.dataset import load_dataset
from precis.model.training.loop import LONG_SECONDS, TrainResult
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.prepare.options import PREPARE
from precis.pipelines.prepare.prepare import prepare
from precis.pipelines.run.options import read_flags, recorded_flags
from precis.pipelines.training.options import TRAIN, TRAIN_SELECTOR, TRAIN_SUMMARIZER
from precis.pipelines.training.recipes import NEWS, SummarizerRecipe
from precis.pipelines.training.train import train, train_selector
from precis.pipelines.verify.bundle import check_bundle

_WARMUP_SHARE = 0.1  # maximum share of a training's steps
_CUTS_SHARE = 0.14  # share of all steps
_FEWEST_CUTS = 100  # minimum number of records
_MOST_STEPS = 2_500
_PAIRS_A_STEP = 10
_FEW_PAIRS = 5_000
# For news: pairs per article, and seconds on two cores (docs/MODELS.md).
_PAIRS_AN_ARTICLE = 1.6
_SECONDS_A_STEP, _SECONDS_AN_ARTICLE, _SECONDS_OF_STARTS = 1.0, 0.015, 180


def train_summarizer(**flags: Any) -> TrainResult:
    """Trains a selector and a writer on a corpus with references and saves them as one
    bundle; resumes an interrupted run with the same flags.

    Args:
      **flags: the fields of the dataclasses in
          `pipelines.training.options.TRAIN_SUMMARIZER`.

    Returns:
      The bundle of the summarizer, with the writer's step and validation.

    Raises:
      UsageError: invalid flags, a corpus without a needed split, or a folder with other
          content.
      DataError: too many records failed, there is nothing to learn from, or a loss is
          not finite.
      Interrupted: on a signal, after the state of the writer was saved.
    """
    option_groups = read_flags(TRAIN_SUMMARIZER, flags)
    output, asked_steps = option_groups[1].output, option_groups[1].writer_steps
    steps = step_flags(option_groups, asked_steps or _MOST_STEPS)
    # Check now what a later step would refuse after an hour.
    for options, each in zip(
        (PREPARE, TRAIN_SELECTOR, PREPARE, TRAIN, PREPARE, TRAIN), steps, strict=True
    ):
        read_flags(options, each)
    refuse_other_kind(output, SUMMARIZER)
    files.remove_leftovers(output)
    _begin(1, "records")
    prepare(**steps.records)
    if not _is_finished(steps.selector, TRAIN_SELECTOR):
        articles = load_dataset(steps.records["output"]).records("train")
        _say_time(articles, asked_steps or steps_for(_PAIRS_AN_ARTICLE * articles))
        _begin(2, "selector")
        train_selector(**steps.selector)
    _begin(3, "pairs")
    prepare(**steps.pairs)
    pairs = load_dataset(steps.pairs["output"]).records("train")
    steps = step_flags(option_groups, asked_steps or steps_for(pairs))
    if not _is_finished(steps.draft, TRAIN):
        if pairs < _FEW_PAIRS:
            say(
                f"precis train-summarizer: warning: {pairs:,} pairs of a sentence and "
                "its line are too few: the network will write poor lines, most of "
                "which will be rejected; `precis summarize --extractive neural "
                f"--extractive_bundle {steps.selector['output']}` needs no network"
            )
        _begin(4, "draft")
        train(**steps.draft)
    _begin(5, "cuts")
    writer = dict(steps.writer)
    if not _are_enough(steps.cuts):
        say(
            "precis train-summarizer: too few sentences to learn cuts from; the writer "
            "learns from all pairs"
        )
        writer["records"] = steps.pairs["output"]
    if not _is_finished(writer, TRAIN):
        _begin(6, "writer")
        train(**writer)
    request = {"command": "train-summarizer", "flags": recorded_flags(option_groups)}
    model_id = save_summarizer_bundle(output, provenance=request)
    trained = open_stored(steps.writer["output"]).manifest["provenance"]
    return TrainResult(
        output, model_id, trained.get("step", 0), trained.get("validation", {})
    )


def steps_for(pairs: float) -> int:
    """The best number of writer steps for a number of pairs of a sentence and its line.

    A step reads about 60 pairs, so a small corpus is read six times. For 78,000
    articles, 5,000 steps were not better than 2,500 (docs/MODELS.md).
    """
    return min(max(2, int(pairs) // _PAIRS_A_STEP), _MOST_STEPS)


def _say_time(articles: int, steps: int) -> None:
    """Prints an estimate of the total time before the long steps begin."""
    seconds = _SECONDS_AN_ARTICLE * articles + _SECONDS_A_STEP * steps
    seconds += _SECONDS_OF_STARTS
    less = ("; use a smaller `writer_steps=` or `limit=` to shorten it") * (
        seconds > LONG_SECONDS
    )
    say(
        f"precis train-summarizer: {about(seconds)} in total on two cores, for "
        f"{articles:,} articles and {steps:,} steps of the writer{less}"
    )


def step_flags(option_groups: Sequence[Any], writer_steps: int) -> SummarizerRecipe:
    """The flags of each step: the recipe's, and those for data and output.

    Args:
      option_groups: the dataclasses in `TRAIN_SUMMARIZER`.
      writer_steps: the number of steps of draft and writer together.
    """
    corpus, options, *others = option_groups
    training = files.join(options.output, TRAINING_FOLDER)
    records = files.join(training, "records")
    pairs = files.join(training, "sentence_records")
    cuts = files.join(training, "cut_records")
    draft = files.join(training, "draft")
    corpus_flags = dataclasses.asdict(corpus)
    for option_group in others:
        corpus_flags |= dataclasses.asdict(option_group)
    # The seed of the splits is fixed; otherwise a new seed would put documents of the
    # test split into training.
    corpus_flags["seed"] = CorpusOptions.seed
    cut_steps = max(2, int(_CUTS_SHARE * writer_steps))
    draft_steps = max(2, writer_steps - cut_steps)

    return SummarizerRecipe(
        records={**corpus_flags, **NEWS.records, "output": records},
        selector={
            **NEWS.selector,
            "seed": corpus.seed,
            "records": records,
            "output": files.join(options.output, SUMMARIZER_PARTS[EXTRACTIVE]),
        },
        pairs={**corpus_flags, **NEWS.pairs, "output": pairs},
        draft={
            **NEWS.draft,
            "seed": corpus.seed,
            "records": pairs,
            "output": draft,
            **_steps(draft_steps, NEWS.draft),
        },
        cuts={**corpus_flags, **NEWS.cuts, "tokenizer": pairs, "output": cuts},
        writer={
            **NEWS.writer,
            "seed": corpus.seed,
            "records": cuts,
            "output": files.join(options.output, SUMMARIZER_PARTS[ABSTRACTIVE]),
            "init_from": draft,
            **_steps(cut_steps, NEWS.writer),
        },
    )


def _steps(count: int, flags: Mapping[str, Any]) -> dict[str, int]:
    """The flags for the length of a training; short trainings have a short warm-up."""
    most_warmup = max(1, int(_WARMUP_SHARE * count))
    return {"steps": count, "warmup_steps": min(flags["warmup_steps"], most_warmup)}


def _begin(number: int, step: str) -> None:
    """Announces the step to which the following progress and messages belong."""
    say(f"precis train-summarizer: step {number} of 6, {step}")


def _are_enough(cuts: Mapping[str, Any]) -> bool:
    """Prepares the cuts; returns whether there are enough to learn from."""
    try:
        prepare(**cuts)
    except DataError:  # Nothing was written; earlier steps meet other errors.
        return False
    info = load_dataset(cuts["output"])
    return info.records("train") >= _FEWEST_CUTS and info.records("validation") > 0


def _is_finished(flags: Mapping[str, Any], option_groups: Sequence[type]) -> bool:
    """Whether the bundle of a training is complete, undamaged, and made from its
    records with its flags.

    Training repairs a damaged bundle from its last checkpoint, and refuses a bundle
    with other flags.

    Args:
      flags: the flags of the training; its records exist.
      option_groups: the dataclasses of the flags.
    """
    folder, records = flags["output"], flags["records"]
    if not files.exists(files.join(folder, MANIFEST_FILE)) or any(check_bundle(folder)):
        return False
    made = open_stored(folder).manifest["provenance"]
    recorded = recorded_flags(read_flags(option_groups, flags))
    for name in {"records", "init_from"} & recorded.keys():
        recorded[name] = made["flags"][name]  # The folder may have moved.
    is_of_records = made["records_fingerprint"] == load_dataset(records).fingerprint
    return bool(is_of_records and made["flags"] == recorded)
