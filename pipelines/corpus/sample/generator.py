"""The documents of the built-in corpus: hand-written documents, then generated ones.

Each document depends on its index alone. The hand-written ones are in `articles.jsonl`.
The others follow `stories.json`, where a kind of story is read from top to bottom:

    "town": "<town>"                   a value: a method of `Draw`, or a word of a list
    "crews": "<count 40-190>"          a method with its arguments
    "firm": "<company> {trade}"        a draw and a value from above
    "place": ["bakery", "hotel"]       one of a list
    "song, encore": ["River", "Road"]  different ones of a list
    "variant": [{...}, {...}]          the lines of one of several groups
    "asides": ["It cost {cost}."]      sentences for one part of the story

The parts of a story: one of the `openings`; one of the `leads`, which stand near the
top; all `facts`, in any order and each in one of several wordings; some `asides`; one
of the `endings` or none; and the `highlights`. A layout is a list of sentences by the
first letters of their parts, with `|` before a new paragraph. Every draw is made, also
those of sentences that are not used.

Words of `names` come once in a document, words of `words` may come again.
"""

import functools
import hashlib
import json
import re
from collections.abc import Callable
from importlib import resources
from operator import methodcaller
from typing import Any

from precis.model.text.document import Document
from precis.pipelines.corpus.sample.names import Draw

# Changes whenever any document does, so that no job resumes work on other documents.
VERSION = "1"

# A name with what draws its value, the text of its value, the sentences of a part, a
# list of values to shuffle, or groups of steps.
Step = tuple[str, Any]

_PARTS = ("openings", "leads", "facts", "asides", "endings", "highlights")


def document(index: int) -> Document:
    """The document at a position of the endless corpus."""
    written = hand_written()
    return written[index] if index < len(written) else _generated(index)


@functools.cache
def hand_written() -> list[Document]:
    """The hand-written documents, the first of the corpus."""
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
    """What `stories.json` holds, prepared for the drawing of documents."""
    # Each draw becomes a value whose name ends in the position of the draw, and so is
    # unique.
    text = re.sub(
        "<(.*?)>", lambda draw: f"{{{draw[1]} {draw.start()}}}", _text("stories.json")
    )
    data = json.loads(text)
    for name, words in data["names"].items():
        if isinstance(words, dict):
            data["names"][name] = [a + b for a in words["begin"] for b in words["end"]]
    data["kinds"] = [
        (kind, _steps(entries, data)) for kind, entries in data["kinds"].items()
    ]
    return data


def _steps(entries: dict[str, Any], data: dict[str, Any]) -> list[Step]:
    """The lines of a kind of story, each draw within a text before that text."""
    steps: list[Step] = []
    for name, value in entries.items():
        if isinstance(value[0], dict):
            steps.append((name, [_steps(group, data) for group in value]))
            continue
        for key in re.findall(r"{([^}]+ \d+)}", json.dumps(value)):
            steps.append((key, _draw(key.rsplit(" ", 1)[0], data)))
        # Most values are a draw alone and need no text, which saves time.
        if steps and value == f"{{{steps[-1][0]}}}":
            steps[-1] = (name, steps[-1][1])
        elif isinstance(value, list) and name not in _PARTS and ", " not in name:
            steps.append((name, methodcaller("one", value)))
        else:
            steps.append((name, value))
    return steps


def _draw(text: str, data: dict[str, Any]) -> Callable[[Draw], str | int]:
    """What makes a draw as `count 40-190`: a method of `Draw` or a list of words."""
    name, *arguments = text.replace("-", " ").split()
    if name in data["words"]:
        return methodcaller("one", data["words"][name])
    if not hasattr(Draw, name):
        return methodcaller("name", name)
    return methodcaller(name, *(int(a) if a.isdigit() else a for a in arguments))


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
            values[name] = value(draw)
        elif name in story:
            story[name] += value
        elif isinstance(value, str):
            values[name] = value.format_map(values)
        elif ", " in name:
            values.update(zip(name.split(", "), draw.shuffled(value), strict=False))
        else:
            _take(draw.one(value), draw, story)


def _compose(draw: Draw, story: dict[str, list]) -> str:
    """The article: paragraphs of sentences with an empty line between them."""
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
    """A document; of the ids, 90 per cent are train, 5 validation and 5 test."""
    document_id = f"sample-{index:06d}"
    digest = hashlib.sha256(document_id.encode()).digest()
    bucket = int.from_bytes(digest[:8], "big") % 100
    split = "train" if bucket < 90 else "validation" if bucket < 95 else "test"
    return Document(document_id, split, article, highlights, {"kind": kind})
