"""`paragraphs:GLOB`: text files, one document a paragraph.

The example of docs/CONTRIBUTING.md for a format of corpora. As a format of precis it
would be `paragraphs.py` in `pipelines/corpus/`.
"""

from precis.model.text.document import Document
from precis.pipelines.corpus.listing import range_task
from precis.pipelines.corpus.opening import open_source
from precis.pipelines.corpus.records import undecodable
from precis.pipelines.corpus.task import Place, ReadRecord


def list_tasks(place, options):
    """A task for each file."""
    return [range_task(file, 0, -1, file.size_bytes, options.fields) for file in place]


def read(task, options):
    """The paragraphs of a file as records."""
    with open_source(task.paths[0]) as file:
        content = file.read()
    start = 0
    for paragraph in content.split(b"\n\n"):
        place = Place(task.paths[0], f"byte {start}")
        start += len(paragraph) + 2
        try:
            text = paragraph.decode(options.encoding).strip()
            record = Document("", "", text, None, {}, *place)
        except UnicodeDecodeError as error:
            record = undecodable(error, "the paragraph", place)
        yield ReadRecord(record, min(start / len(content), 1), paragraph)
