"""Lists a corpus as tasks, draws the documents of `--sample`, and reads a task.

corpus        a b - c d e f g     - is no document: it is empty or cannot be read
--sample 3      b     d     g     the smallest hashes of all

A document counts if it has a text and is of `--split`. Which documents are drawn
depends on the corpus alone, and neither on workers nor on the size of the tasks.
"""

import hashlib
import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, groupby

from precis.model.errors import DataError, UsageError
from precis.model.progress.stages import stage
from precis.model.text.document import Document
from precis.pipelines.corpus.dead_letters import UNCOUNTED
from precis.pipelines.corpus.listing import (
    combined_version,
    groups_of,
    list_files,
    unreadable_tasks,
)
from precis.pipelines.corpus.opening import UNREADABLE
from precis.pipelines.corpus.options import CorpusOptions, parse_addresses
from precis.pipelines.corpus.schemes import SCHEMES
from precis.pipelines.corpus.task import UNREADABLE_SCHEME, FileError, Task
from precis.pipelines.corpus.task_reader import TaskReader, read_records

# Each task leaves files and a receipt, and the process that starts a job knows them
# all. So their number is bounded, and not their size: a million small files become some
# thousand tasks.
MOST_TASKS = 16_384
# What these problems hide in a file of records may be one or thousands of them.
_PROBLEMS_OF_CONTENT = ("permission_denied", "read_error")
# About what a document has, for the size of a limited corpus.
_DOCUMENT_BYTES = 16 << 10


def list_tasks(options: CorpusOptions) -> list[Task]:
    """Cuts the corpus into tasks, after a look at its files.

    With `options.limit` one task reads the documents one after another, and ends with
    the last one. For `options.sample` the corpus is read to draw documents.

    Raises:
      UsageError: nothing is there to read, or not what the options say.
    """
    tasks: list[Task] = []
    paths: set[str] = set()
    for scheme, where in parse_addresses(options.corpus):
        listed = _list_scheme(scheme, where, options)
        of_scheme = {path for task in listed for path in task.paths}
        if paths & of_scheme:
            raise UsageError(
                f"{min(paths & of_scheme)} is a file of two corpora; name it once"
            )
        paths |= of_scheme
        tasks += listed
    if not tasks:
        raise UsageError(f"{options.corpus} holds no documents; its files are empty")
    if options.limit:
        task = join_tasks(tasks)
        size_bytes = min(task.size_bytes, options.limit * _DOCUMENT_BYTES)
        return [task._replace(number=0, size_bytes=size_bytes)]
    packed = enumerate(pack_tasks(tasks))
    tasks = [task._replace(number=number) for number, task in packed]
    return draw_documents(tasks, options) if options.sample else tasks


def _list_scheme(name: str, where: str, options: CorpusOptions) -> list[Task]:
    """The tasks of one corpus of the run."""
    scheme = SCHEMES[name]
    if scheme.has_files:
        listed = list_files(where)
        readable = [file for file in listed if not file.problem]
        lost = [
            file._replace(problem=UNREADABLE)
            if file.problem in _PROBLEMS_OF_CONTENT and not scheme.holds_one_document
            else file
            for file in listed
            if file.problem
        ]
        tasks = scheme.load().list_tasks(readable, options) + unreadable_tasks(lost)
    else:
        tasks = scheme.load().list_tasks(where, options)
    return [task._replace(scheme=task.scheme or name, where=where) for task in tasks]


def pack_tasks(tasks: Sequence[Task], *, most: int = MOST_TASKS) -> list[Task]:
    """Tasks of consecutive ones, where there are more than `most`.

    Args:
      tasks: of a corpus, in order.
      most: about how many there may be; those of another kind begin a further one.
    """
    if len(tasks) <= most:
        return list(tasks)
    total = sum(task.size_bytes for task in tasks)
    # An empty file costs no bytes and some time, so tasks are counted too.
    weight = total // len(tasks) + 1
    target = -(-(total + weight * len(tasks)) // most)
    kinds = groupby(
        tasks, lambda task: (task.where, task.scheme, task.split, task.fields)
    )
    return [
        join_tasks(group)
        for _, of_kind in kinds
        for group in groups_of(of_kind, lambda task: task.size_bytes + weight, target)
    ]


def join_tasks(pieces: Sequence[Task]) -> Task:
    """The task that reads other ones, one after another."""
    first = pieces[0]
    if len(pieces) == 1:
        return first
    is_unreadable = all(piece.scheme == UNREADABLE_SCHEME for piece in pieces)
    return first._replace(
        number=0,
        files=tuple(dict.fromkeys(file for piece in pieces for file in piece.files)),
        start=0,
        stop=-1,
        version=combined_version(
            f"{piece.version}:{piece.start}:{piece.stop}" for piece in pieces
        ),
        size_bytes=sum(piece.size_bytes for piece in pieces),
        pieces=() if is_unreadable else tuple(pieces),
    )


def read_task(task: Task, options: CorpusOptions) -> TaskReader:
    """The articles and dead letters of a task."""
    return TaskReader(task, options)


# A document that may be drawn: its digest; the task and the record, whose order decides
# between equal digests; and its place.
_Candidate = tuple[int, int, int, str, str]


def draw_documents(tasks: Sequence[Task], options: CorpusOptions) -> list[Task]:
    """The tasks that read the drawn documents alone, and count the others.

    Args:
      tasks: of the corpus, in order.
      options: how it is read.

    Raises:
      DataError: a file changed or cannot be read, so that no document can be drawn.
    """
    drawn: list[_Candidate] = []
    lost: list[_Candidate] = []
    records: dict[int, Counter[str]] = {}
    with stage("select", total=len(tasks), unit="tasks") as selecting:
        for task in tasks:
            records[task.number] = Counter()
            try:
                found = _candidates(task, options, drawn, records[task.number], lost)
                drawn = heapq.nsmallest(options.sample, chain(drawn, found))
            except FileError as failure:
                raise DataError(
                    f"{failure}; --sample draws from every file, so let this one rest "
                    "or leave it out, and run the command again"
                ) from failure
            selecting.advance()
    positions: dict[int, dict[str, list[str]]] = {task.number: {} for task in tasks}
    for _, number, _, path, position in drawn + lost:
        positions[number].setdefault(path, []).append(position)
    selected = []
    for task in tasks:
        only = {path: sorted(each) for path, each in positions[task.number].items()}
        taken = Counter({path: len(each) for path, each in only.items()})
        left_out = dict(records[task.number] - taken)
        selected.append(task._replace(only=only, left_out=left_out))
    return selected


def _candidates(
    task: Task,
    options: CorpusOptions,
    drawn: Sequence[_Candidate],
    records: Counter[str],
    lost: list[_Candidate],
) -> Iterator[_Candidate]:
    """The documents of a task that may be in the sample.

    Args:
      task: the task.
      options: how it is read.
      drawn: those of earlier tasks, sorted.
      records: counts the records of each file.
      lost: takes the dead letters of files that are lost, which are always drawn.
    """
    reader = TaskReader(task, options)
    last = drawn[-1] if len(drawn) == options.sample else None
    for number, record in enumerate(read_records(task, options)):
        content = record.content
        place = content.source_file, content.source_position
        records[content.source_file] += getattr(content, "records", 1)
        if isinstance(content, Document):
            found = _digest(content, options.seed), task.number, number, *place
            # The text of few documents is looked at: of those that may be taken.
            if (last is None or found < last) and reader.is_document(content):
                yield found
        elif f"{content.stage}/{content.reason}" in UNCOUNTED:
            lost.append((0, task.number, number, *place))


def _digest(document: Document, seed: int) -> int:
    """A number that decides whether a document is drawn.

    Of equal documents each has a number of its own, by its position. The folder of the
    corpus is no part of it.
    """
    name = document.document_id or document.article
    content = f"{seed}\n{document.source_position}\n{name}"
    digest = hashlib.blake2b(content.encode(errors="surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "big")
