"""The speed of extractive summaries: documents a second for each method, beside sumy,
and seconds for documents of thousands of sentences.

    python benchmarks/extractive.py [--documents 60] [--runs 5] [--long 2000,20000]

prints `name value unit` lines. Articles of 700 words are joined from documents of the
built-in corpus. Both sides begin with the same sentences as strings, split them into
words, and end with three sentences in document order. Ours reads the words of the
articles of a run together, as `precis summarize` does with those of a window. Every run
has new articles, so that caches of words are as full as in a bulk job. The sides take
turns in one thread, and processor time is measured, on which other work on the machine
has little influence. Rates are medians over the runs, ratios medians of the ratios of
each run. sumy is measured where it is installed (the group parity of pyproject.toml).
"""

import argparse
import importlib
import importlib.util
import itertools
import os
import re
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence

from precis.model.extractive.config import BASELINES, SelectionConfig
from precis.model.extractive.methods import METHODS, TERM_METHODS, score_sentences
from precis.model.extractive.selection import select
from precis.model.extractive.terms import Terms, find_terms
from precis.model.text.article import Article
from precis.model.text.words import words
from precis.pipelines.corpus.sample import generator

_ARTICLE_WORDS = 700
# The module and the class of sumy for each of our methods that it has.
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
    parser.add_argument(
        "--long",
        default="2000,20000",
        help="sentences of long documents; may be empty (default: 2000,20000)",
    )
    options = parser.parse_args(argv)
    lengths = [int(count) for count in options.long.split(",") if count]
    for line in itertools.chain(
        measure(options.documents, options.runs), measure_long(lengths)
    ):
        print(line, flush=True)


def articles() -> Iterator[Sentences]:
    """Endless articles of 700 words or slightly more, as sentences, joined from
    documents of the built-in corpus.
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
    peers: dict[str, Summarize] = {}
    if importlib.util.find_spec("sumy"):
        peers = {f"sumy_{method}": sumy_method(name) for method, name in _PEERS.items()}
    rates: dict[str, list[float]] = {name: [] for name in (*METHODS, *peers)}
    batch: list[Sentences] = []
    for run in range(runs + 1):  # the first warms up
        batch = list(itertools.islice(source, documents))
        for name in rates:
            started = time.process_time()
            if name in METHODS:
                # As `precis summarize` does with the documents of a window.
                terms: Sequence[Terms | None] = [None] * documents
                if name in TERM_METHODS:
                    terms = find_terms(batch)
                for article, of_article in zip(batch, terms, strict=True):
                    summarize_with_ours(name, article, of_article)
            else:
                for article in batch:
                    peers[name](article)
            if run:
                rates[name].append(documents / (time.process_time() - started))
    yield f"article {statistics.mean(len(article) for article in batch):.1f} sentences"
    for name, of_runs in rates.items():
        yield f"{name} {statistics.median(of_runs):.0f} documents/s"
    if not peers:
        yield "sumy skipped (not installed)"
    for name in peers:
        method = name.removeprefix("sumy_")
        ratio = statistics.median(
            ours / theirs
            for ours, theirs in zip(rates[method], rates[name], strict=True)
        )
        yield f"{method}_to_sumy {ratio:.1f} times"


def measure_long(lengths: Sequence[int]) -> Iterator[str]:
    """The lines on documents of so many sentences: seconds, and the peak of allocated
    memory.

    No two documents are equal, so that no cache has their words.
    """
    source = itertools.chain.from_iterable(articles())
    needed = max(lengths, default=0) + len(METHODS)
    text = [
        f"{sentence} {number % 7919}x"
        for number, sentence in enumerate(itertools.islice(source, needed))
    ]
    for count in lengths:
        for first, method in enumerate(METHODS):
            started = time.process_time()
            document = text[first : first + count]
            (terms,) = find_terms([document])
            summarize_with_ours(method, document, terms)
            seconds = time.process_time() - started
            yield f"{method}_{count}_sentences {seconds:.3f} s"
        for first, method in enumerate(METHODS):
            tracemalloc.start()
            document = text[first : first + count - 1]
            (terms,) = find_terms([document])
            summarize_with_ours(method, document, terms)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            yield f"{method}_{count}_sentences_memory {peak / 1e6:.1f} MB"


def summarize_with_ours(
    method: str, article: Sentences, terms: Terms | None
) -> list[str]:
    """Three sentences with the defaults of `precis summarize`: boilerplate skipped,
    trigrams blocked.
    """
    chosen = select(
        article,
        score_sentences(method, article, terms),
        selection=SelectionConfig(),
        is_baseline=method in BASELINES,
    )
    return [article[index] for index in sorted(chosen)]


def sumy_method(name: str) -> Summarize:
    """A method of sumy that chooses three sentences, with sumy's stemmer and stop words
    and a regular expression for words.
    """
    from sumy.models.dom import ObjectDocumentModel, Paragraph, Sentence
    from sumy.nlp.stemmers import Stemmer
    from sumy.utils import get_stop_words

    module_name, _, class_name = name.partition(".")
    module = importlib.import_module(f"sumy.summarizers.{module_name}")
    summarizer = getattr(module, class_name)(Stemmer("english"))
    summarizer.stop_words = get_stop_words("english")
    word = re.compile(r"[^\W\d_]+(?:'[a-z]+)?")

    class WordTokenizer:
        def to_words(self, sentence: str) -> tuple[str, ...]:
            return tuple(word.findall(sentence))

    def summarize(article: Sentences) -> object:
        sentences = [Sentence(text, WordTokenizer()) for text in article]
        return summarizer(ObjectDocumentModel([Paragraph(sentences)]), 3)

    return summarize


if __name__ == "__main__":
    # NumPy reads the numbers of threads when it is imported, so they are set before.
    environment = {**os.environ, **_THREADS}
    if environment != dict(os.environ):
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)
    main()
