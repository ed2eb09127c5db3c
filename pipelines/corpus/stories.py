"""`stories:DIR`: raw CNN/DailyMail `.story` files.

They are cleaned as TensorFlow Datasets cleans them, so that `stories:` and `tfds:` give
equal texts.
"""

import posixpath
from collections.abc import Iterator, Sequence

from precis.model.errors import UsageError
from precis.model.text.document import Document
from precis.pipelines.corpus import text_files
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import ReadRecord, SourceFile, Task

_MARK = "@highlight"
# A line that ends in one of these needs no full stop; the last two are the closing
# curly quotes.
_SENTENCE_ENDS = (".", "!", "?", "'", "`", '"', ")", "\u2019", "\u201d")


def list_tasks(source: Sequence[SourceFile], options: CorpusOptions) -> list[Task]:
    """Runs of files of about `task_bytes` each.

    Raises:
      UsageError: two stories have one name.
    """
    paths: dict[str, str] = {}
    for file in source:
        other = paths.setdefault(_story_id(file.path), file.path)
        if other != file.path:
            raise UsageError(
                f"{other} and {file.path} have one name, and the name is the id; "
                "read their folders one at a time"
            )
    return text_files.list_tasks(source, options)


def _story_id(path: str) -> str:
    """The file's name without `.story`."""
    return posixpath.basename(path).removesuffix(".story")


def read(task: Task, options: CorpusOptions) -> Iterator[ReadRecord]:
    """The records of a task."""
    for record in text_files.read(task, options):
        content = record.content
        if isinstance(content, Document):
            article, highlights = parse_story(content.article)
            content = content._replace(
                document_id=_story_id(content.source_file),
                article=article,
                highlights=highlights,
            )
        yield record._replace(content=content)


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
