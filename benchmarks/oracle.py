"""What oracle labels cost: articles a second of `oracle_sentences`, beside a greedy
search that calls rouge-score for every candidate.

    python benchmarks/oracle.py [--documents 200] [--plain_documents 3] [--runs 3]

prints `name value unit` lines. Articles of 700 words are put together from the built-in
corpus, with the highlights of their first document as the reference. The time is that
of one core; rates are medians over the runs. The plain search joins the sentences with
line breaks and counts pairs of words across them too, so that now and then it takes
another sentence; `agreement` is the share of articles where it does not.
"""

import argparse
import itertools
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from precis.model.extractive.oracle import oracle_sentences
from precis.model.text.article import Article
from precis.model.text.words import words
from precis.pipelines.corpus.sample import generator

_ARTICLE_WORDS = 700
_MAX_SENTENCES = 5
_THREADS = {
    name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
}


class Pair(NamedTuple):
    """The sentences of an article, and its reference, one sentence a line."""

    sentences: list[str]
    reference: str


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the benchmark and prints it."""
    parser = argparse.ArgumentParser(
        description="Articles a second of the oracle search, on one core."
    )
    parser.add_argument(
        "--documents",
        type=int,
        default=200,
        help="articles of 700 words of each run (default: 200)",
    )
    parser.add_argument(
        "--plain_documents",
        type=int,
        default=3,
        help="those of them that the plain search labels too (default: 3)",
    )
    parser.add_argument(
        "--runs",
        type=int,
        default=3,
        help="runs of which the median counts (default: 3)",
    )
    options = parser.parse_args(argv)
    source = pairs()
    ours, plain, agreed, length = [], [], [], []
    for run in range(options.runs + 1):  # the first warms up
        shown = list(itertools.islice(source, options.documents))
        rate, found = measure(label, shown)
        plain_rate, plainly = measure(label_plainly, shown[: options.plain_documents])
        if run:
            ours.append(rate)
            plain.append(plain_rate)
            agreed += [one == other for one, other in zip(found, plainly, strict=False)]
            length += [
                sum(len(words(sentence)) for sentence in pair.sentences)
                for pair in shown
            ]
    print(f"article {statistics.mean(length):.0f} words")
    print(f"oracle_sentences {statistics.median(ours):.0f} articles/s")
    print(f"plain_search {statistics.median(plain):.2f} articles/s")
    print(f"ratio {statistics.median(ours) / statistics.median(plain):.0f} times")
    print(f"agreement {100 * statistics.mean(agreed):.0f} %")


def pairs() -> Iterator[Pair]:
    """Endlessly many articles of 700 words and a little more, documents of the built-in
    corpus joined up.
    """
    article: list[str] = []
    length, reference = 0, ""
    for number in itertools.count():
        document = generator.document(number)
        reference = reference or document.highlights or ""
        for sentence in Article.from_text(document.article).sentences:
            article.append(sentence.text)
            length += len(words(sentence.text))
            if length >= _ARTICLE_WORDS:
                yield Pair(article, reference)
                article, length, reference = [], 0, ""
                break


def measure(
    search: Callable[[Pair], list[int]], shown: Sequence[Pair]
) -> tuple[float, list[list[int]]]:
    """Articles a second of processor time, and what was found."""
    started = time.process_time()
    found = [search(pair) for pair in shown]
    return len(shown) / (time.process_time() - started), found


def label(pair: Pair) -> list[int]:
    """The oracle of precis."""
    return [
        pick.place
        for pick in oracle_sentences(pair.sentences, pair.reference, _MAX_SENTENCES)
    ]


def label_plainly(pair: Pair) -> list[int]:
    """The greedy search as it is usually written: the scorer is called for each
    candidate of each step.
    """
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rouge1", "rouge2"], use_stemmer=True)
    chosen: list[int] = []
    best = 0.0
    while len(chosen) < _MAX_SENTENCES:
        found = {
            place: sum(
                score.fmeasure
                for score in scorer.score(
                    pair.reference,
                    "\n".join(pair.sentences[i] for i in (*chosen, place)),
                ).values()
            )
            for place in range(len(pair.sentences))
            if place not in chosen
        }
        place = max(found, key=lambda place: found[place], default=-1)
        if place < 0 or found[place] <= best:
            break
        chosen.append(place)
        best = found[place]
    return chosen


if __name__ == "__main__":
    if any(
        os.environ.get(name) != value for name, value in _THREADS.items()
    ):  # NumPy reads them when it is imported
        os.execve(
            sys.executable, [sys.executable, *sys.argv], {**os.environ, **_THREADS}
        )
    main(sys.argv[1:])
