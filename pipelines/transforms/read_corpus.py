"""`ReadCorpus`: the documents of a corpus, and its records that are none."""

from collections.abc import Iterator
from typing import Any, Literal

import apache_beam as beam

from precis.model.text.document import Document
from precis.pipelines.corpus.dead_letters import file_failure_letter
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import list_tasks, read_task
from precis.pipelines.corpus.task import DeadLetter, FileFailure, Task
from precis.pipelines.flags.flags import read_flags

DOCUMENTS = "documents"
DEAD_LETTERS: Literal["dead_letters"] = "dead_letters"
TaggedLetter = beam.pvalue.TaggedOutput[Literal["dead_letters"], DeadLetter]


class ReadCorpus(beam.PTransform):
    """Reads the documents of a corpus, each with an id and a split.

        corpus = pipeline | ReadCorpus(corpus="jsonl:news/*.jsonl", id_field="url")
        articles = corpus.documents | beam.Map(lambda document: document.article)
        lost = corpus.dead_letters | beam.Map(lambda letter: letter.reason)

    The outputs are `documents`, a PCollection of `Document`, and `dead_letters`, a
    PCollection of `DeadLetter`. The corpus is looked at when the pipeline is built, and
    read by its workers.
    """

    def __init__(self, corpus: str, **options: Any) -> None:
        """Stores its arguments.

        Args:
          corpus: as `--corpus` of `precis summarize`.
          **options: the other fields of `CorpusOptions`, such as `article_field`.
        """
        super().__init__()
        self._corpus = corpus
        self._corpus_options = options

    def expand(self, root: beam.pvalue.PBegin) -> Any:
        """Lists the tasks of the corpus and adds their reading.

        Raises:
          UsageError: nothing is there to read, or not what the options say.
        """
        (options,) = read_flags(
            [CorpusOptions], {"corpus": self._corpus, **self._corpus_options}
        )
        return (
            root
            | "ListTasks" >> beam.Create(list_tasks(options))
            | "ReadTasks"
            >> beam.FlatMap(read_documents, options).with_outputs(
                DEAD_LETTERS, main=DOCUMENTS
            )
        )


def read_documents(
    task: Task, options: CorpusOptions
) -> Iterator[Document | TaggedLetter]:
    """The documents of a task, and the dead letters between them.

    Where a file of the task changes while it is read, or cannot be read to its end, a
    dead letter with the reason `file_changed` or `file_unreadable` is the last element.
    The documents before it were sent on already; they may be of both contents.
    """
    try:
        for record in read_task(task, options):
            if isinstance(record, DeadLetter):
                yield TaggedLetter(DEAD_LETTERS, record)
            else:
                yield record.document
    except FileFailure as failure:
        yield TaggedLetter(DEAD_LETTERS, file_failure_letter(failure))
