"""`sample:[COUNT]`: the built-in corpus of hand-written and generated documents.

Each document depends only on its index. The hand-written ones are in `articles.jsonl`.
The others follow `stories.json`, where a kind of story is read from top to bottom:

    "town": "<town>"                   a value: a method of `Draw`, or a word of a list
    "crews": "<count 40-190>"          a method with its arguments
    "firm": "<company> {trade}"        a draw and a value from above
    "place": ["bakery", "hotel"]       one item of a list
    "song, encore": ["River", "Road"]  different items of a list
    "variant": [{...}, {...}]          the lines of one of several groups
    "asides": ["It cost {cost}."]      sentences for one part of the story

The parts of a story: one of the `openings`; one of the `leads`, near the top; all
`facts`, in any order and each in one of several wordings; some `asides`; one of the
`endings` or none; and the `highlights`. A layout is a list of sentences by the first
letters of their parts, with `|` before a new paragraph. All draws are made, also for
sentences that are not used.

All people, places and figures are invented. A word of `names` occurs once per document,
a word of `words` may be repeated.
"""

import functools
import hashlib
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import resources
from operator import methodcaller
from typing import Any, TypeVar

from precis.model.errors import UsageError
from precis.model.text.document import Document
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import ReadRecord, Task

# Changes with any document, so that no job resumes with other documents.
VERSION = "1"

# A name with one of: what draws its value, the text of its value, the sentences of a
# part, a list of values to shuffle, or groups of steps.
Step = tuple[str, Any]

_PARTS = ("openings", "leads", "facts", "asides", "endings", "highlights")
DEFAULT_DOCUMENTS = 6000
_BYTES_PER_DOCUMENT = 900
# The assumed size of a document, so that a default task has a thousand documents: the
# built-in corpus is for small machines.
_TASK_BYTES_PER_DOCUMENT = 16 << 10
# How to write a number between two bounds.
_NUMBERS = {"count": "{:,}", "percent": "{} per cent", "thousands": "${:,},000"}
_MINUTES = ("", "", ".15", ".20", ".30", ".40", ".50")

Item = TypeVar("Item")
Words = Mapping[str, Sequence[str]]


class Draw:
    """A stream of random choices for one document.

    Only `random.Random.random` is used, because only its numbers are guaranteed to be
    the same in every version of Python.

    Attributes:
      values: the values that the document has drawn so far, by name.
    """

    def __init__(self, seed: str, names: Words, words: Words) -> None:
        self.values: dict[str, str | int] = {}
        self._names = names
        self._words = words
        self._random = random.Random(seed).random
        self._used: set[str] = set()

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + int(self._random() * (high - low + 1))

    def one(self, items: Sequence[Item]) -> Item:
        """Draws one of the items."""
        return items[int(self._random() * len(items))]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """The items in a random order (Fisher and Yates)."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = int(self._random() * (last + 1))
            order[last], order[other] = order[other], order[last]
        return order

    def value(self, kind: str, *bounds: Any) -> str | int:
        """The value of a draw such as `count 40-190`, whose bounds are 40 and 190.

        The kind is a method, a number format, a list of words, which may be repeated,
        or a list of names, which are not.
        """
        if kind in _NUMBERS:
            form = _NUMBERS[kind].format
            return self._fresh(lambda: form(self.between(*bounds)))
        if kind in self._words:
            return self.one(self._words[kind])
        if kind in self._names:
            return self._fresh(lambda: self.one(self._names[kind]))
        value: str | int = getattr(self, kind)(*bounds)
        return value

    def _fresh(self, make: Callable[[], str]) -> str:
        """Draws a string that this document has not drawn before."""
        while (drawn := make()) in self._used:
            pass
        self._used.add(drawn)
        return drawn

    def person(self) -> str:
        """A given name and a family name."""
        return f"{self.value('first_name')} {self.value('last_name')}"

    def town(self) -> str:
        """An invented town; one in eight has a word before its name."""
        town = self._fresh(lambda: self.one(self._names["town_name"]))
        return town if self.between(0, 7) else f"{self.value('before_town')} {town}"

    def street(self) -> str:
        """A street with the name of an invented town."""
        return f"{self.town()} {self.value('road')}"

    def company(self) -> str:
        """A company with the name of one or two families."""
        partner = "" if self.between(0, 3) else f"{self.value('last_name')} & "
        return f"{partner}{self.value('last_name')}"

    def date(self) -> str:
        """A day of a month, such as `March 14`."""
        return self._fresh(lambda: f"{self.value('month')} {self.between(1, 28)}")

    def year(self) -> str:
        """A year of the last century."""
        return self._fresh(lambda: f"{self.between(1904, 1999)}")

    def hour(self) -> str:
        """A time of day, such as `4am` or `9.40pm`."""
        minutes = self.one(_MINUTES)
        return self._fresh(
            lambda: f"{self.between(1, 11)}{minutes}{self.one(('am', 'pm'))}"
        )

    def millions(self, low: int, high: int) -> str:
        """A large sum, such as `$3.5 million`."""
        return self._fresh(
            lambda: f"${self.between(low, high)}.{self.between(1, 9)} million"
        )

    def rest(self, name: str, low: int, high: int) -> int:
        """100 minus the value `name`, minus a number from `low` to `high`."""
        return 100 - int(self.values[name]) - self.between(low, high)


def list_tasks(where: str, options: CorpusOptions) -> list[Task]:
    """Cuts the corpus into tasks.

    Args:
      where: the number of documents; empty for the default.
      options: the options, for `task_bytes`.

    Raises:
      UsageError: the number is not a positive whole number.
    """
    if where and not (where.isascii() and where.isdecimal() and int(where) > 0):
        raise UsageError(
            f"sample:{where}: {where!r} is not a positive whole number of documents; "
            "write sample: or, for example, sample:20000"
        )
    documents = int(where) if where else DEFAULT_DOCUMENTS
    task_documents = max(1, options.task_bytes // _TASK_BYTES_PER_DOCUMENT)
    tasks = []
    for start in range(0, documents, task_documents):
        stop = min(start + task_documents, documents)
        size = (stop - start) * _BYTES_PER_DOCUMENT
        tasks.append(Task(start=start, stop=stop, version=VERSION, size_bytes=size))
    return tasks


def read(task: Task, options: CorpusOptions) -> Iterator[ReadRecord]:
    """Reads the documents of a task, in order."""
    del options
    for index in range(task.start, task.stop):
        made = document(index)._replace(
            source_file="sample:", source_position=f"record {index}"
        )
        yield ReadRecord(made, (index + 1 - task.start) / (task.stop - task.start))


def document(index: int) -> Document:
    """The document at an index of the endless corpus."""
    written = hand_written()
    return written[index] if index < len(written) else _generated(index)


@functools.cache
def hand_written() -> list[Document]:
    """The hand-written documents, which come first."""
    records = [json.loads(line) for line in _text("articles.jsonl").strip().split("\n")]
    return [
        _document(index, record["article"], record["highlights"], "hand-written")
        for index, record in enumerate(records)
    ]


def _text(name: str) -> str:
    folder = resources.files("precis.pipelines.corpus.sample")
    return folder.joinpath(name).read_text(encoding="utf-8")


@functools.cache
def stories() -> dict[str, Any]:
    """The content of `stories.json`, prepared for drawing documents."""
    # Each draw becomes a value whose name ends in the position of the draw, and is
    # therefore unique.
    text = re.sub(
        "<(.*?)>", lambda draw: f"{{{draw[1]} {draw.start()}}}", _text("stories.json")
    )
    data = json.loads(text)
    for name, words in data["names"].items():
        if isinstance(words, dict):
            data["names"][name] = [a + b for a in words["begin"] for b in words["end"]]
    data["kinds"] = [(kind, _steps(each)) for kind, each in data["kinds"].items()]
    return data


def _steps(entries: dict[str, Any]) -> list[Step]:
    """The steps of a kind of story; draws within a text come before the text."""
    steps: list[Step] = []
    for name, value in entries.items():
        if isinstance(value[0], dict):
            steps.append((name, [_steps(group) for group in value]))
            continue
        for key in re.findall(r"{([^}]+ \d+)}", json.dumps(value)):
            kind, *bounds = key.rsplit(" ", 1)[0].replace("-", " ").split()
            arguments = (int(each) if each.isdigit() else each for each in bounds)
            steps.append((key, methodcaller("value", kind, *arguments)))
        # Most values are only a draw and need no text, which saves time.
        if steps and value == f"{{{steps[-1][0]}}}":
            steps[-1] = (name, steps[-1][1])
        elif isinstance(value, list) and name not in _PARTS and ", " not in name:
            steps.append((name, methodcaller("one", value)))
        else:
            steps.append((name, value))
    return steps


def _generated(index: int) -> Document:
    draw = Draw(f"sample-{index}", stories()["names"], stories()["words"])
    kind, steps = draw.one(stories()["kinds"])
    story: dict[str, list] = {part: [] for part in _PARTS}
    _take(steps, draw, story)
    article = _compose(draw, story).format_map(draw.values)
    highlights = "\n".join(story["highlights"]).format_map(draw.values)
    return _document(index, article, highlights, kind)


def _take(steps: list[Step], draw: Draw, story: dict[str, list]) -> None:
    values = draw.values
    for name, value in steps:
        if callable(value):
            values[name] = value(draw)  # pyright: ignore[reportArgumentType]  # A value.
        elif name in story:
            story[name] += value
        elif isinstance(value, str):
            values[name] = value.format_map(values)
        elif ", " in name:
            values.update(zip(name.split(", "), draw.shuffled(value), strict=False))
        else:
            _take(draw.one(value), draw, story)


def _compose(draw: Draw, story: dict[str, list]) -> str:
    """Writes the article: paragraphs of sentences, with an empty line between them."""
    sentences = {
        "o": [draw.one(story["openings"])],
        "l": [draw.one(story["leads"])],
        "f": [draw.one(wordings) for wordings in draw.shuffled(story["facts"])],
        "a": draw.shuffled(story["asides"]),
        "e": [draw.one(story["endings"])],
    }
    layouts = stories()["layouts"][str(len(story["facts"]))]
    return "\n\n".join(
        " ".join(sentences[letter].pop() for letter in paragraph)
        for paragraph in draw.one(layouts).split("|")
    )


def _document(index: int, article: str, highlights: str, kind: str) -> Document:
    """Makes a document; 90 per cent of the ids are train, 5 validation and 5 test."""
    document_id = f"sample-{index:06d}"
    digest = hashlib.sha256(document_id.encode()).digest()
    bucket = int.from_bytes(digest[:8], "big") % 100
    split = "train" if bucket < 90 else "validation" if bucket < 95 else "test"
    return Document(document_id, split, article, highlights, {"kind": kind})
