"""What an extractive summary costs: documents a second for each method, beside sumy,
and seconds for documents of thousands of sentences.

    python benchmarks/extractive.py [--documents 60] [--runs 5]

prints `name value unit` lines. Articles of 700 words are put together from the built-in
corpus. Both sides begin with the same sentences as strings, split them into words
themselves, and end with three sentences in document order; each run takes articles that
no run had before, so that what is remembered of words is what a bulk job remembers. The
sides take turns, in one thread, and what counts is the seconds of processor time, so
that other work on the machine does little. Rates are medians over the runs, ratios
medians of the ratios of each run. sumy is measured where it is installed (`pip install
'precis[parity]'`).
"""

import argparse
import functools
import importlib.util
import itertools
import os
import re
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence

from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.methods import METHODS
from precis.model.extractive.selection import select
from precis.model.text.article import Article
from precis.model.text.words import words
from precis.pipelines.corpus.sample import generator

_ARTICLE_WORDS = 700
_LONG_SENTENCES = (2_000, 20_000)
# Our methods and the modules and classes of sumy's.
_PEERS = {
    "lexrank": "lex_rank.LexRankSummarizer",
    "textrank": "text_rank.TextRankSummarizer",
    "lsa": "lsa.LsaSummarizer",
    "luhn": "luhn.LuhnSummarizer",
    "sumbasic": "sum_basic.SumBasicSummarizer",
}
_THREADS = {
    name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
}

Sentences = list[str]
Summarize = Callable[[Sentences], object]


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the benchmark and prints it."""
    parser = argparse.ArgumentParser(
        description="Documents a second of every extractive method, in one thread."
    )
    parser.add_argument(
        "--documents",
        type=int,
        default=60,
        help="articles of 700 words of each run (default: 60)",
    )
    parser.add_argument(
        "--runs",
        type=int,
        default=5,
        help="runs of which the median counts (default: 5)",
    )
    options = parser.parse_args(argv)
    for line in itertools.chain(
        measure(options.documents, options.runs), measure_long()
    ):
        print(line, flush=True)


def articles() -> Iterator[Sentences]:
    """Endlessly many articles of 700 words and a little more, as sentences: documents
    of the built-in corpus joined up.
    """
    article: Sentences = []
    length = 0
    for number in itertools.count():
        for sentence in Article.from_text(generator.document(number).article).sentences:
            article.append(sentence.text)
            length += len(words(sentence.text))
            if length >= _ARTICLE_WORDS:
                yield article
                article, length = [], 0


def measure(documents: int, runs: int) -> Iterator[str]:
    """The lines on articles of 700 words."""
    source = articles()
    sides: dict[str, Summarize] = {
        method: functools.partial(ours, method) for method in METHODS
    }
    peers = (
        {f"sumy_{method}": sumys(name) for method, name in _PEERS.items()}
        if importlib.util.find_spec("sumy")
        else {}
    )
    sides |= peers
    rates: dict[str, list[float]] = {name: [] for name in sides}
    shown: list[Sentences] = []
    for run in range(runs + 1):  # the first warms up
        shown = list(itertools.islice(source, documents))
        for name, summarize in sides.items():
            started = time.process_time()
            for article in shown:
                summarize(article)
            if run:
                rates[name].append(documents / (time.process_time() - started))
    yield f"article {statistics.mean(len(article) for article in shown):.1f} sentences"
    for name, found in rates.items():
        yield f"{name} {statistics.median(found):.0f} documents/s"
    if not peers:
        yield "sumy skipped (not installed)"
    for name in peers:
        method = name.removeprefix("sumy_")
        ratio = statistics.median(
            mine / its for mine, its in zip(rates[method], rates[name], strict=True)
        )
        yield f"{method}_to_sumy {ratio:.1f} times"


def measure_long() -> Iterator[str]:
    """The lines on long documents: seconds, and the most memory that was in use at
    once.
    """
    source = itertools.chain.from_iterable(articles())
    text = [
        f"{sentence} {number % 7919}x"
        for number, sentence in zip(
            range(max(_LONG_SENTENCES) + len(METHODS)), source, strict=False
        )
    ]
    for count in _LONG_SENTENCES:
        for first, method in enumerate(
            METHODS
        ):  # no two texts are the same, so that none is split into words beforehand
            started = time.process_time()
            ours(method, text[first : first + count])
            yield f"{method}_{count}_sentences {time.process_time() - started:.3f} s"
        for first, method in enumerate(METHODS):
            tracemalloc.start()
            ours(method, text[first : first + count - 1])
            yield f"{method}_{count}_sentences_memory {tracemalloc.get_traced_memory()[1] / 1e6:.1f} MB"
            tracemalloc.stop()


def ours(method: str, article: Sentences) -> list[str]:
    """Three sentences with the defaults of `precis summarize`: boilerplate skipped,
    trigrams blocked.
    """
    chosen = select(
        article,
        METHODS[method](article),
        selection=SelectionConfig().for_method(method),
    )
    return [article[index] for index in sorted(chosen)]


def sumys(name: str) -> Summarize:
    """Three sentences by sumy with its own stemmer and stop words, and the plainest way
    to find words.
    """
    from sumy.models.dom import ObjectDocumentModel, Paragraph, Sentence
    from sumy.nlp.stemmers import Stemmer
    from sumy.utils import get_stop_words

    module, _, kind = name.partition(".")
    summarizer = getattr(importlib.import_module(f"sumy.summarizers.{module}"), kind)(
        Stemmer("english")
    )
    summarizer.stop_words = get_stop_words("english")
    word = re.compile(r"[^\W\d_]+(?:'[a-z]+)?")

    class Words:
        def to_words(self, sentence: str) -> tuple[str, ...]:
            return tuple(word.findall(sentence))

    def summarize(article: Sentences) -> object:
        return summarizer(
            ObjectDocumentModel(
                [Paragraph([Sentence(text, Words()) for text in article])]
            ),
            3,
        )

    return summarize


if __name__ == "__main__":
    if any(
        os.environ.get(name) != value for name, value in _THREADS.items()
    ):  # NumPy reads them when it is imported
        os.execve(
            sys.executable, [sys.executable, *sys.argv], {**os.environ, **_THREADS}
        )
    main(sys.argv[1:])
