"""`stories:DIR`: raw CNN/DailyMail `.story` files, cleaned as TensorFlow Datasets
cleans them, so that both routes give one text.
"""

import posixpath
from collections.abc import Iterator

from precis.model.errors import UsageError
from precis.model.text.document import Document
from precis.pipelines.corpus.listing import (
    SourceFile,
    group_files,
    group_version,
    list_folder,
)
from precis.pipelines.corpus.task import Task, Unreadable
from precis.pipelines.corpus.text_files import read_text

_SUFFIX = ".story"
_MARK = "@highlight"
# A line that ends in one of these needs no full stop; the last two are the closing
# curly quotes.
_SENTENCE_ENDS = (".", "!", "?", "'", "`", '"', ")", "\u2019", "\u201d")


def list_tasks(folder: str, *, task_bytes: int) -> list[Task]:
    """Runs of files of about `task_bytes` each, from the folder and those below it.

    Raises:
      UsageError: there is no folder or no story in it, or two stories have one name.
    """
    found = list_folder(folder, _SUFFIX)
    _check_names(found)
    return [
        Task(
            0,
            "stories",
            tuple(file.path for file in group),
            version=group_version(group),
            size_bytes=sum(file.size_bytes for file in group),
        )
        for group in group_files(found, task_bytes)
    ]


def _check_names(found: list[SourceFile]) -> None:
    paths: dict[str, str] = {}
    for file in found:
        other = paths.setdefault(story_id(file.path), file.path)
        if other != file.path:
            raise UsageError(
                f"{other} and {file.path} have one name, and the name is the id; read their folders one at a time"
            )


def story_id(path: str) -> str:
    """The file's name without `.story`."""
    return posixpath.basename(path).removesuffix(_SUFFIX)


def read(task: Task) -> Iterator[Document | Unreadable]:
    """The documents of a task."""
    for path in task.paths:
        text = read_text(path)
        if isinstance(text, Unreadable):
            yield text
        else:
            article, highlights = parse_story(text)
            yield Document(story_id(path), "", article, highlights, {})


def parse_story(text: str) -> tuple[str, str | None]:
    """Article and highlights of a raw story; None where it marks no highlights.

        A man bit a dog      ->  article     A man bit a dog. It was "big".
        It was "big".            highlights  Man bites dog.

        @highlight

        Man bites dog

    Every line gets a full stop unless it ends a sentence. Lines of the article are
    joined by spaces, highlights stay lines.
    """
    article: list[str] = []
    highlights: list[str] = []
    is_highlight = False
    # Carriage returns vanish wherever they stand, as they do in the reader that TFDS
    # uses.
    for line in text.replace("\r", "").split("\n"):
        line = line.strip()
        if line.startswith(_MARK):
            is_highlight = True
        elif line:
            ended = (
                line if line.endswith(_SENTENCE_ENDS) or _MARK in line else f"{line}."
            )
            (highlights if is_highlight else article).append(ended)
    return " ".join(article), "\n".join(highlights) if highlights else None
