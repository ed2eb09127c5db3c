"""What the quality measures cost a document, and what they find: on summaries of
sentences nothing, on injected facts nearly all.

    python benchmarks/quality.py [--corpus sample:4000] [--documents 4000]

prints `name value unit` lines. Time is that of one core, for what a row of `precis
summarize` needs with a network: the source once, its first three sentences as the
    extractive summary, its reference in the place of an abstractive one. Then one
    number, name, weekday or month
of the three sentences is replaced by one that the article does not hold, names by those
of other articles, and the share of those summaries that carry the flag is printed.
"""

import argparse
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from precis.model.quality.flags import QualityConfig
from precis.model.quality.measures import Source, measure, read_source
from precis.model.text.article import Article
from precis.model.text.stop_words import STOP_WORDS
from precis.pipelines.corpus.source import CorpusOptions, list_tasks, read_task

SENTENCES = 3
CONFIG = QualityConfig()
WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
MONTHS = "january february april june july august september october november december".split()
NUMBERS = "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
ORDINALS = (
    "second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth "
    "seventeenth eighteenth nineteenth"
).split()
NAME, WITHIN = r"[A-Z][a-z]{2,}\b", r"(?<=[a-z,] )"
TRIES = 50


class Item(NamedTuple):
    """An article and summaries of it."""

    article: Article

    @property
    def lead(self) -> str:
        """Its first three sentences, one a line."""
        return "\n".join(
            " ".join(one.text.split()) for one in self.article.sentences[:SENTENCES]
        )

    def lacks(self, word: str) -> bool:
        """Whether the article does not hold a word, not even within another."""
        return word.lower() not in self.article.document.article.lower()


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags and prints times, flags and recall."""
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
    flags = parser.parse_args(argv)
    items = read_items(flags.corpus, flags.documents)
    print(f"documents {len(items)} count")
    print_speed(items)
    found = Counter(
        name
        for item in items
        for name in measure(item.lead, read_item(item), CONFIG).flags
    )
    print(
        f"flags_of_extractive_summaries {found.total()} count ({', '.join(f'{name} {count}' for name, count in found.items()) or 'none'})"
    )
    for kind, flag, trials in injections(items):
        recalled = [
            flag in measure(text, read_item(item), CONFIG).flags
            for item, text in trials
        ]
        if recalled:
            print(
                f"recall_of_{flag}_{kind} {100 * sum(recalled) / len(recalled):.2f} % of {len(recalled)}"
            )


def read_items(corpus: str, count: int) -> list[Item]:
    """The first documents of a corpus that have a reference."""
    options = CorpusOptions(corpus=corpus)
    found: list[Item] = []
    for task in list_tasks(options):
        for article in read_task(task, options):
            if (
                isinstance(article, Article)
                and article.document.highlights
                and len(found) < count
            ):
                found.append(Item(article))
    return found


def read_item(item: Item) -> Source:
    """What its summaries are compared with."""
    return read_source(item.article)


def print_speed(items: Sequence[Item]) -> None:
    """Prints processor seconds; nothing is kept, as in a job."""
    seconds = dict.fromkeys(("source", "extractive", "abstractive"), 0.0)
    for item in items:
        texts = {
            "extractive": item.lead,
            "abstractive": item.article.document.highlights or "",
        }
        started = time.process_time()
        source = read_item(item)
        seconds["source"] += time.process_time() - started
        for name, text in texts.items():
            started = time.process_time()
            measure(text, source, CONFIG, mean_log_prob=-1.0)
            seconds[name] += time.process_time() - started
    for name, spent in seconds.items():
        print(f"{name} {1e6 * spent / len(items):.0f} us/document")
    print(f"all {len(items) / sum(seconds.values()):.0f} documents/s")


def injections(
    items: Sequence[Item],
) -> Iterator[tuple[str, str, list[tuple[Item, str]]]]:
    """Where something is injected, the flag that it should raise, and the summaries
    that it was injected into.
    """
    draw = random.Random(1)

    def swap(
        pattern: str,
        propose: Callable[[str], str],
        fits: Callable[[Item, str], bool] = Item.lacks,
    ) -> list[tuple[Item, str]]:
        return [
            (item, text)
            for item in items
            if (text := inject(item, pattern, propose, fits, draw))
        ]

    digits = swap(
        r"\d+(?:,\d{3})*(?:\.\d+)?",
        lambda old: re.sub(r"\d", lambda _: str(draw.randint(1, 9)), old),
        lacks_number,
    )
    yield "in_digits", "unsupported_number", digits
    yield (
        "in_words",
        "unsupported_number",
        swap(
            rf"\b(?:{'|'.join(NUMBERS)})\b",
            lambda _: draw.choice(NUMBERS),
            lacks_number,
        ),
    )
    yield (
        "weekday",
        "unsupported_date",
        swap(rf"(?i)\b(?:{'|'.join(WEEKDAYS)})\b", lambda _: draw.choice(WEEKDAYS)),
    )
    yield (
        "month",
        "unsupported_date",
        swap(rf"(?i)\b(?:{'|'.join(MONTHS)})\b", lambda _: draw.choice(MONTHS)),
    )
    if names := names_of(items):
        yield (
            "within_a_sentence",
            "unsupported_name",
            swap(rf"{WITHIN}{NAME}", lambda _: draw.choice(names)),
        )
        yield (
            "first_in_a_sentence",
            "unsupported_name",
            swap(rf"(?m)^{NAME}", lambda _: draw.choice(names)),
        )


def inject(
    item: Item,
    pattern: str,
    propose: Callable[[str], str],
    fits: Callable[[Item, str], bool],
    draw: random.Random,
) -> str | None:
    """The lead of a document with one match replaced by something that the article does
    not hold; None where there is no match.
    """
    text = item.lead
    matches = [
        match
        for match in re.finditer(pattern, text)
        if match[0].lower() not in (*STOP_WORDS, "may", "march")
    ]
    if not matches:
        return None
    match = draw.choice(matches)
    for _ in range(TRIES):
        new = propose(match[0])
        if fits(item, new):
            return text[: match.start()] + new + text[match.end() :]
    return None


def lacks_number(item: Item, number: str) -> bool:
    """Whether the article holds a number neither in digits nor in words."""
    place = (
        NUMBERS.index(number)
        if number in NUMBERS
        else int(number) - 2
        if number.isdigit()
        else -1
    )
    forms = (
        [str(place + 2), NUMBERS[place], ORDINALS[place]]
        if 0 <= place < len(NUMBERS)
        else [number]
    )
    return number != "1" and all(map(item.lacks, forms))


def names_of(items: Sequence[Item]) -> list[str]:
    """Words that stand within sentences with a capital, and nowhere in the corpus
    without one.
    """
    lower = {
        word
        for item in items
        for word in re.findall(r"\b[a-z]+\b", item.article.document.article)
    } | {*WEEKDAYS, *MONTHS}
    found = {
        name for item in items for name in re.findall(rf"{WITHIN}{NAME}", item.lead)
    }
    return sorted(name for name in found if name.lower() not in lower)


if __name__ == "__main__":
    main()
