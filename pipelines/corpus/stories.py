"""`stories:DIR`: raw CNN/DailyMail `.story` files.

They are cleaned as TensorFlow Datasets cleans them, so that `stories:` and `tfds:` give
equal texts.
"""

import posixpath
from collections.abc import Iterator

from precis.model.errors import UsageError
from precis.model.text.document import Document
from precis.pipelines.corpus.listing import SourceFile, group_tasks
from precis.pipelines.corpus.task import ReadRecord, Task, Unreadable
from precis.pipelines.corpus.text_files import read_files, whole_file

SUFFIX = ".story"
_MARK = "@highlight"
# A line that ends in one of these needs no full stop; the last two are the closing
# curly quotes.
_SENTENCE_ENDS = (".", "!", "?", "'", "`", '"', ")", "\u2019", "\u201d")


def list_tasks(source_files: list[SourceFile], *, task_bytes: int) -> list[Task]:
    """Runs of files of about `task_bytes` each.

    Raises:
      UsageError: two stories have one name.
    """
    _check_names(source_files)
    return group_tasks("stories", source_files, task_bytes)


def _check_names(source_files: list[SourceFile]) -> None:
    paths: dict[str, str] = {}
    for file in source_files:
        other = paths.setdefault(story_id(file.path), file.path)
        if other != file.path:
            raise UsageError(
                f"{other} and {file.path} have one name, and the name is the id; "
                "read their folders one at a time"
            )


def story_id(path: str) -> str:
    """The file's name without `.story`."""
    return posixpath.basename(path).removesuffix(SUFFIX)


def read(task: Task, max_record_bytes: int) -> Iterator[ReadRecord]:
    """The records of a task."""
    for path, text, share, raw in read_files(task, max_record_bytes):
        if isinstance(text, Unreadable):
            yield ReadRecord(text, share, raw)
        else:
            story = parse_story(text)
            document = Document(story_id(path), "", *story, {}, *whole_file(path))
            yield ReadRecord(document, share, raw)


def parse_story(text: str) -> tuple[str, str | None]:
    """The article of a raw story and its highlights, None if it marks none.

        A man bit a dog      ->  article     A man bit a dog. It was "big".
        It was "big".            highlights  Man bites dog.

        @highlight

        Man bites dog

    A full stop is added to each line that does not end a sentence. Lines of the article
    are joined by spaces, highlights stay lines.
    """
    article: list[str] = []
    highlights: list[str] = []
    is_highlight = False
    # Carriage returns are removed everywhere, as the reader of TFDS does.
    for line in text.replace("\r", "").split("\n"):
        line = line.strip()
        if line.startswith(_MARK):
            is_highlight = True
        elif line:
            if not line.endswith(_SENTENCE_ENDS) and _MARK not in line:
                line += "."
            (highlights if is_highlight else article).append(line)
    return " ".join(article), "\n".join(highlights) if highlights else None
