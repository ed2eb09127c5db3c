"""The cost of the quality measures, and their recall on injected errors.

    python benchmarks/quality.py [--corpus sample:4000] [--documents 4000] [--record]

prints `name value unit` lines. Time is that of one core, for what a row of `precis
summarize` needs with a network: the source once, its first three sentences as the
extractive summary, and its reference as the abstractive one. Summaries of the source's
sentences should get no flag. Then one number, name, weekday or month of the three
sentences is replaced by one that the article does not hold, names by those of other
articles, or the last word of a full name by that of another one in the article; the
share of these summaries that get the flag is printed.
"""

import argparse
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from machine import record

from precis.model.quality.measures import measure, read_source
from precis.model.text.article import Article
from precis.model.text.stop_words import STOP_WORDS
from precis.pipelines.corpus.corpus import list_tasks, read_task
from precis.pipelines.corpus.options import CorpusOptions

SENTENCES = 3
WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
# Without March and May, which are words too.
MONTHS = (
    "january february april june july august september october november december"
).split()
# From two on; NUMBERS[i] and ORDINALS[i] are i + 2.
NUMBERS = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
).split()
ORDINALS = (
    "second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
    "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth"
).split()
NAME = r"[A-Z][a-z]{2,}\b"
NOT_FIRST = r"(?<=[a-z,] )"  # in its sentence
FULL_NAME = re.compile(rf"{NOT_FIRST}({NAME}) ({NAME})(?! [A-Z])")
TRIES = 50

Fits = Callable[[Article, str], bool]


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags and prints the cost, the flags and the recall."""
    parser = argparse.ArgumentParser(
        description="What the quality measures cost, and what they find."
    )
    parser.add_argument(
        "--corpus",
        default="sample:4000",
        help="as in `precis summarize` (default: sample:4000)",
    )
    parser.add_argument(
        "--documents", type=int, default=4_000, help="documents at most (default: 4000)"
    )
    parser.add_argument(
        "--record", action="store_true", help="write the figures into docs/figures.json"
    )
    flags = parser.parse_args(argv)
    articles = read_articles(flags.corpus, flags.documents)
    print(f"documents {len(articles)} count")
    print_speed(articles)
    counts = Counter(
        name
        for article in articles
        for name in measure(lead(article), read_source(article)).flags
    )
    by_name = ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"
    print(f"flags_of_extractive_summaries {counts.total()} count ({by_name})")
    for kind, flag, trials in injections(articles):
        hits = [
            flag in measure(text, read_source(article)).flags
            for article, text in trials
        ]
        if hits:
            recall = 100 * sum(hits) / len(hits)
            print(f"recall_of_{flag}_{kind} {recall:.2f} % of {len(hits)}")
            if flags.record:
                command = f"python benchmarks/quality.py --corpus '{flags.corpus}'"
                unit = "% of the summaries"
                record(f"flags.recall.{kind}", f"{recall:.1f} %", unit, command)


def read_articles(corpus: str, count: int) -> list[Article]:
    """The first articles of a corpus that have a reference."""
    options = CorpusOptions(corpus=corpus)
    articles: list[Article] = []
    for task in list_tasks(options):
        for article in read_task(task, options):
            if (
                isinstance(article, Article)
                and article.document.highlights
                and len(articles) < count
            ):
                articles.append(article)
    return articles


def lead(article: Article) -> str:
    """The first three sentences of an article, one a line."""
    sentences = article.sentences[:SENTENCES]
    return "\n".join(" ".join(sentence.text.split()) for sentence in sentences)


def lacks(article: Article, word: str) -> bool:
    """Whether the article does not hold a word, not even as part of another."""
    return word.lower() not in article.document.article.lower()


def lacks_number(article: Article, number: str) -> bool:
    """Whether the article holds a number neither in digits nor in words."""
    index = -1
    if number in NUMBERS:
        index = NUMBERS.index(number)
    elif number.isdigit():
        index = int(number) - 2
    forms = [number]
    if 0 <= index < len(NUMBERS):
        forms = [str(index + 2), NUMBERS[index], ORDINALS[index]]
    return number != "1" and all(lacks(article, form) for form in forms)


def print_speed(articles: Sequence[Article]) -> None:
    """Prints processor seconds; results are dropped, as in a job."""
    seconds: dict[str, float] = dict.fromkeys(
        ("source", "extractive", "abstractive"), 0.0
    )
    for article in articles:
        texts = {
            "extractive": lead(article),
            "abstractive": article.document.highlights or "",
        }
        started = time.process_time()
        source = read_source(article)
        seconds["source"] += time.process_time() - started
        for name, text in texts.items():
            started = time.process_time()
            measure(text, source)
            seconds[name] += time.process_time() - started
    for name, total in seconds.items():
        print(f"{name} {1e6 * total / len(articles):.0f} us/document")
    print(f"all {len(articles) / sum(seconds.values()):.0f} documents/s")


def injections(
    articles: Sequence[Article],
) -> Iterator[tuple[str, str, list[tuple[Article, str]]]]:
    """Injects errors of each kind.

    Yields:
      The kind, the flag that it should raise, and the articles with the summaries that
      the error was injected into.
    """
    rng = random.Random(1)

    def swap(
        pattern: str, propose: Callable[[str], str], fits: Fits = lacks
    ) -> list[tuple[Article, str]]:
        texts = [
            (article, inject(article, pattern, propose, fits, rng))
            for article in articles
        ]
        return [(article, text) for article, text in texts if text]

    def other_digits(number: str) -> str:
        return re.sub(r"\d", lambda _: str(rng.randint(1, 9)), number)

    def any_of(words: Sequence[str]) -> Callable[[str], str]:
        return lambda _: rng.choice(words)

    in_digits = swap(r"\d+(?:,\d{3})*(?:\.\d+)?", other_digits, lacks_number)
    yield "in_digits", "unsupported_number", in_digits
    numbers = rf"\b(?:{'|'.join(NUMBERS)})\b"
    in_words = swap(numbers, any_of(NUMBERS), lacks_number)
    yield "in_words", "unsupported_number", in_words
    weekdays = rf"(?i)\b(?:{'|'.join(WEEKDAYS)})\b"
    yield "weekday", "unsupported_date", swap(weekdays, any_of(WEEKDAYS))
    months = rf"(?i)\b(?:{'|'.join(MONTHS)})\b"
    yield "month", "unsupported_date", swap(months, any_of(MONTHS))
    if names := names_of(articles):
        within = swap(rf"{NOT_FIRST}{NAME}", any_of(names))
        yield "within_a_sentence", "unsupported_name", within
        first = swap(rf"(?m)^{NAME}", any_of(names))
        yield "first_in_a_sentence", "unsupported_name", first
        joined = [(article, join_names(article, rng)) for article in articles]
        yield (
            "joined_of_two",
            "unsupported_name",
            [(article, text) for article, text in joined if text],
        )


def inject(
    article: Article,
    pattern: str,
    propose: Callable[[str], str],
    fits: Fits,
    rng: random.Random,
) -> str | None:
    """The lead of an article with one match replaced by a proposal that fits; None
    where there is no match or no such proposal.
    """
    text = lead(article)
    matches = [
        match
        for match in re.finditer(pattern, text)
        if match[0].lower() not in (*STOP_WORDS, "may", "march")
    ]
    if not matches:
        return None
    match = rng.choice(matches)
    for _ in range(TRIES):
        proposal = propose(match[0])
        if fits(article, proposal):
            return text[: match.start()] + proposal + text[match.end() :]
    return None


def join_names(article: Article, rng: random.Random) -> str | None:
    """The lead of an article in which one of its full names ends as another one does;
    None where it has no two that differ.
    """
    text, whole = lead(article), article.document.article
    names = [match.groups() for match in FULL_NAME.finditer(whole)]
    matches = list(FULL_NAME.finditer(text))
    for _ in range(TRIES if matches else 0):
        match = rng.choice(matches)
        _, last = rng.choice(names)
        if not re.search(rf"{match[1]}\W+(?:\w+\W+){{0,2}}{last}", whole):
            return text[: match.start(2)] + last + text[match.end(2) :]
    return None


def names_of(articles: Sequence[Article]) -> list[str]:
    """Capitalized words within sentences that stand nowhere in the corpus in lower
    case.
    """
    lower_case = {*WEEKDAYS, *MONTHS}
    for article in articles:
        lower_case.update(re.findall(r"\b[a-z]+\b", article.document.article))
    names = {
        name
        for article in articles
        for name in re.findall(rf"{NOT_FIRST}{NAME}", lead(article))
    }
    return sorted(name for name in names if name.lower() not in lower_case)


if __name__ == "__main__":
    main()
