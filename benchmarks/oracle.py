"""The speed of oracle labels: `oracle_sentences` and a plain greedy search.

The plain search calls rouge-score for every candidate.

    python benchmarks/oracle.py [--documents 200] [--plain_documents 3] [--runs 3]

prints `name value unit` lines. Articles of 700 words are joined from documents of the
built-in corpus; the highlights of the first document are the reference. The time is the
processor time of one core; rates are medians over the runs. The plain search joins the
sentences with line breaks and counts pairs of words across them too, so that sometimes
it takes another sentence; `agreement` is the share of articles with equal labels.
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


class ReferencedArticle(NamedTuple):
    """The sentences of an article, and its reference summary, one sentence a line."""

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
        help="the articles of them that the plain search labels too (default: 3)",
    )
    parser.add_argument(
        "--runs",
        type=int,
        default=3,
        help="runs whose median is printed (default: 3)",
    )
    options = parser.parse_args(argv)
    source = endless_articles()
    rates = []
    plain_rates = []
    agreements = []
    lengths = []
    for run in range(options.runs + 1):
        articles = list(itertools.islice(source, options.documents))
        rate, labels = measure(label, articles)
        plain_rate, plain_labels = measure(
            label_plainly, articles[: options.plain_documents]
        )
        if run == 0:  # a warm-up
            continue
        rates.append(rate)
        plain_rates.append(plain_rate)
        agreements += [
            places == plain_places
            for places, plain_places in zip(labels, plain_labels, strict=False)
        ]
        lengths += [
            sum(len(words(sentence)) for sentence in article.sentences)
            for article in articles
        ]
    rate = statistics.median(rates)
    plain_rate = statistics.median(plain_rates)
    print(f"article {statistics.mean(lengths):.0f} words")
    print(f"oracle_sentences {rate:.0f} articles/s")
    print(f"plain_search {plain_rate:.2f} articles/s")
    print(f"ratio {rate / plain_rate:.0f} times")
    print(f"agreement {100 * statistics.mean(agreements):.0f} %")


def endless_articles() -> Iterator[ReferencedArticle]:
    """Articles of 700 words or a little more, joined from built-in documents."""
    sentences: list[str] = []
    length = 0
    reference = ""
    for number in itertools.count():
        document = generator.document(number)
        reference = reference or document.highlights or ""
        for sentence in Article.from_text(document.article).sentences:
            sentences.append(sentence.text)
            length += len(words(sentence.text))
            if length >= _ARTICLE_WORDS:
                yield ReferencedArticle(sentences, reference)
                sentences = []
                length = 0
                reference = ""
                break


def measure(
    search: Callable[[ReferencedArticle], list[int]],
    articles: Sequence[ReferencedArticle],
) -> tuple[float, list[list[int]]]:
    """Articles a second of processor time, and the labels of each article."""
    started = time.process_time()
    labels = [search(article) for article in articles]
    return len(articles) / (time.process_time() - started), labels


def label(article: ReferencedArticle) -> list[int]:
    """The places of the sentences that the oracle of precis takes."""
    picks = oracle_sentences(article.sentences, article.reference, _MAX_SENTENCES)
    return [pick.place for pick in picks]


def label_plainly(article: ReferencedArticle) -> list[int]:
    """The places of the sentences that a plain greedy search takes.

    It calls the selector for each candidate of each step.
    """
    from rouge_score.rouge_scorer import RougeScorer

    selector = RougeScorer(["rouge1", "rouge2"], use_stemmer=True)
    chosen: list[int] = []
    best = 0.0
    while len(chosen) < _MAX_SENTENCES:
        totals = {}
        for place in range(len(article.sentences)):
            if place not in chosen:
                candidate = [article.sentences[index] for index in (*chosen, place)]
                scores = selector.score(article.reference, "\n".join(candidate))
                totals[place] = sum(score.fmeasure for score in scores.values())
        if not totals:
            break
        place = max(totals, key=lambda place: totals[place])
        if totals[place] <= best:
            break
        chosen.append(place)
        best = totals[place]
    return chosen


if __name__ == "__main__":
    # NumPy reads these variables when it is imported.
    if any(os.environ.get(name) != value for name, value in _THREADS.items()):
        os.execve(
            sys.executable, [sys.executable, *sys.argv], {**os.environ, **_THREADS}
        )
    main(sys.argv[1:])
