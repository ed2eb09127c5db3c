"""How much a document's summaries and scores depend on the documents beside it, with
and without `batch_invariant`, and what the flag costs.

    python benchmarks/batch_invariance.py [--documents 500] [--bundle DIR]
        [--extractive_bundle DIR] [--beam_widths 1,4] [--rounds 3]

searches the same documents of the built-in corpus in windows of 512, 64, 7 and 1
documents and in reversed order, and compares the results with those of the first.
Without `--bundle`, a network `tiny` with random weights writes the summaries. It prints
a table: documents with another best summary; documents whose score differs in any bit,
and as the rows hold it, rounded; the largest difference of a score in units of the
score, and that of a margin. Of a bundle of `precis train-extractor` it compares the
three best sentences and the scores of all sentences.

The cost is the CPU time with the flag over that without it for a window of 64
documents, in alternating rounds: the median of the ratios. All is computed on one
thread. That more threads and processes change nothing is tested in
tests/model/inference/test_batch_invariance.py.
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from machine import chip
from overhead import random_bundle

from precis.model.bundle.manifest import read_manifest
from precis.model.inference.batches import batches_by_length, restore_order
from precis.model.inference.bulk_summarizer import ModelSearch, load_searcher
from precis.model.inference.process_limits import compute_on_one_thread
from precis.model.search.config import SearchConfig
from precis.model.tensorflow_import import import_tensorflow
from precis.model.text.article import Article
from precis.pipelines.corpus.sample import generator
from precis.pipelines.tables.score_rounding import round_margin, round_score

WINDOWS = (512, 64, 7, 1)
COST_DOCUMENTS = 64
SENTENCES = 3
HEADER = (
    "| what | batch_invariant | windows | other summary | other bits "
    "| other rounded score | largest difference | of a margin |\n"
    "|---|---|---|---|---|---|---|---|"
)


class Result(NamedTuple):
    """What is compared of a document.

    Attributes:
      choice: the tokens of the best summary, or the places of the best sentences.
      scores: float64, of its summaries or sentences.
      margin: of the best summary, if there is one.
    """

    choice: list[int]
    scores: np.ndarray
    margin: float | None


# Computes documents with or without the flag.
Compute = Callable[[Sequence[Any], bool], list[Result]]


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, compares and prints."""
    flags = parse_flags(argv)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import_tensorflow()
    compute_on_one_thread()
    print(f"chip: {chip()}; {flags.documents} documents\n{HEADER}", flush=True)
    articles = make_articles(flags.documents)
    costs = []
    with tempfile.TemporaryDirectory() as folder:
        for name, compute, documents in subjects(flags, articles, folder):
            for is_invariant in (False, True):
                for line in compare(compute, documents, is_invariant):
                    switch = "on" if is_invariant else "off"
                    print(f"| {name} | {switch} | {line} |", flush=True)
            factor = cost(compute, documents[:COST_DOCUMENTS], flags.rounds)
            costs.append(f"cost of {name}: {factor}")
    print(*costs, sep="\n")


def parse_flags(argv: Sequence[str] | None) -> argparse.Namespace:
    """The flags of the benchmark."""
    parser = argparse.ArgumentParser(
        description="How much a result depends on the documents beside it."
    )
    parser.add_argument(
        "--documents", type=int, default=500, help="documents (default: 500)"
    )
    parser.add_argument("--bundle", default="", help="(default: random weights)")
    parser.add_argument("--extractive_bundle", default="", help="(default: none)")
    parser.add_argument("--beam_widths", default="1,4", help="(default: 1,4)")
    parser.add_argument(
        "--rounds", type=int, default=3, help="rounds of the cost (default: 3)"
    )
    return parser.parse_args(argv)


def make_articles(documents: int) -> list[Article]:
    """Articles of the built-in corpus, cut at lengths that differ."""
    first = len(generator.hand_written())
    texts = [generator.document(first + index).article for index in range(documents)]
    return [
        Article.from_text(text[: 300 + 211 * index % 1600])
        for index, text in enumerate(texts)
    ]


def subjects(
    flags: argparse.Namespace, articles: Sequence[Article], folder: str
) -> Iterator[tuple[str, Compute, list[Any]]]:
    """What is compared: its name, how it is computed, and its documents."""
    from precis.model.bundle.network_bundle import open_bundle
    from precis.model.tokenization.source import encode_sources

    bundle = flags.bundle or random_bundle(os.path.join(folder, "b"), "tiny").bundle
    contents = open_bundle(bundle)
    encoded = encode_sources(
        contents.source_tokenizer,
        [article.body for article in articles],
        max_source_tokens=contents.config.max_source_tokens,
    )
    sources = [source.ids for source in encoded]
    for width in map(int, flags.beam_widths.split(",")):
        yield f"beam width {width}", search_compute(bundle, width), sources
    if flags.extractive_bundle:
        sentences = [
            [sentence.text for sentence in article.sentences] for article in articles
        ]
        yield "neural sentences", score_compute(flags.extractive_bundle), sentences


def search_compute(bundle: str, width: int) -> Compute:
    """Searches token ids with a bundle."""
    config = SearchConfig(beam_width=width, n_best=min(2, width))
    model_id = read_manifest(bundle)["model_id"]
    searcher = load_searcher(ModelSearch(bundle, model_id, "float32", config))

    def compute(sources: Sequence[np.ndarray], is_invariant: bool) -> list[Result]:
        batches = batches_by_length(
            [len(source) for source in sources],
            beams=width,
            limit=searcher.max_source_tokens,
            batch_invariant=is_invariant,
        )
        searched = [
            searcher.search_together([sources[row] for row in rows]) for rows in batches
        ]
        return [
            Result(
                ranked[0].tokens,
                np.array([hypothesis.score for hypothesis in ranked]),
                ranked[0].margin,
            )
            for ranked in restore_order(batches, searched)
        ]

    return compute


def score_compute(bundle: str) -> Compute:
    """Scores sentences with a bundle."""
    from precis.model.inference.sentence_scorer import load_scorer

    scorers = [load_scorer(bundle, batch_invariant=switch) for switch in (False, True)]

    def compute(documents: Sequence[list[str]], is_invariant: bool) -> list[Result]:
        return [
            Result(best_places(scores), scores, None)
            for scores in scorers[is_invariant].score(documents)
        ]

    return compute


def best_places(scores: np.ndarray) -> list[int]:
    """The sentences that `precis summarize` selects without redundancy."""
    rounded = np.array([round_score(score) for score in scores.tolist()])
    return sorted(np.argsort(-rounded, kind="stable")[:SENTENCES].tolist())


def compare(
    compute: Compute, documents: Sequence[Any], is_invariant: bool
) -> Iterator[str]:
    """Yields the last cells of a row of the table for each way to cut windows."""
    reference = in_windows(compute, documents, WINDOWS[0], is_invariant)
    # With the flag, windows of any size make the same calls.
    for window in () if is_invariant else WINDOWS[1:]:
        results = in_windows(compute, documents, window, is_invariant)
        yield f"{window} | {differences(reference, results)}"
    results = in_windows(compute, documents[::-1], WINDOWS[0], is_invariant)
    yield f"{WINDOWS[0]}, reversed | {differences(reference, results[::-1])}"


def in_windows(
    compute: Compute, documents: Sequence[Any], window: int, is_invariant: bool
) -> list[Result]:
    """The results of all documents, computed in windows."""
    return [
        result
        for first in range(0, len(documents), window)
        for result in compute(documents[first : first + window], is_invariant)
    ]


def differences(reference: Iterable[Result], results: Iterable[Result]) -> str:
    """The cells that count the differences.

    The numbers of documents with the same choice are compared; with another choice,
    they are numbers of something else.
    """
    other_choices = other_bits = other_rounded = 0
    largest = largest_margin = 0.0
    for first, second in zip(reference, results, strict=True):
        if first.choice != second.choice or len(first.scores) != len(second.scores):
            other_choices += 1
            continue
        other_bits += not np.array_equal(first.scores, second.scores)
        other_rounded += [*map(round_score, first.scores.tolist())] != [
            *map(round_score, second.scores.tolist())
        ] or round_margin(first.margin) != round_margin(second.margin)
        apart = np.abs(first.scores - second.scores) / np.abs(first.scores)
        largest = max(largest, apart.max(initial=0.0))
        if first.margin is not None and second.margin is not None:
            largest_margin = max(largest_margin, abs(first.margin - second.margin))
    return (
        f"{other_choices} | {other_bits} | {other_rounded} | {largest:.1e} "
        f"| {largest_margin:.1e}"
    )


def cost(compute: Compute, documents: Sequence[Any], rounds: int) -> str:
    """The CPU time with the flag over that without it.

    Both have run before, so nothing is compiled here.
    """
    ratios = []
    for _ in range(rounds):
        seconds = []
        for is_invariant in (False, True):
            started = time.process_time()
            in_windows(compute, documents, WINDOWS[0], is_invariant)
            seconds.append(time.process_time() - started)
        ratios.append(seconds[1] / seconds[0])
    return (
        f"{statistics.median(ratios):.2f} times the CPU time "
        f"({min(ratios):.2f} to {max(ratios):.2f} in {rounds} rounds)"
    )


if __name__ == "__main__":
    main()
