"""Lists a corpus as tasks, draws the documents of `--sample`, and reads tasks.

corpus        a b - c d e f g     - is not a document: empty or unreadable
--sample 3      b     d     g     the documents with the smallest hashes

A document counts if it has text and is in `--split`. The corpus decides which documents
are drawn, not the number of workers or the size of tasks.
"""

import hashlib
import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, groupby

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.model.progress.stages import say, stage
from precis.model.text.document import Document
from precis.pipelines.corpus.compression import codec_ending, unread_kind
from precis.pipelines.corpus.dead_letters import UNCOUNTED
from precis.pipelines.corpus.formats import OTHER_FORMAT
from precis.pipelines.corpus.listing import (
    combined_version,
    folder_pattern,
    groups_of,
    list_files,
    refuse_tables,
    unreadable_tasks,
)
from precis.pipelines.corpus.opening import UNREADABLE
from precis.pipelines.corpus.options import CorpusOptions, parse_addresses
from precis.pipelines.corpus.schemes import SCHEMES
from precis.pipelines.corpus.task import UNREADABLE_SCHEME, CorpusFile, FileError, Task
from precis.pipelines.corpus.task_reader import TaskReader, read_records

# Each task leaves files and a receipt, and the process that starts a job holds all
# tasks in memory. So their number is bounded, not their size: a million small files
# become some thousand tasks.
MOST_TASKS = 16_384
# Problems that may hide one record or thousands of them.
_PROBLEMS_OF_CONTENT = ("permission_denied", "read_error")
# A typical document size, to estimate the size of a limited corpus.
_DOCUMENT_BYTES = 16 << 10


def list_tasks(options: CorpusOptions) -> list[Task]:
    """Cuts the corpus into tasks, after a first look at its files.

    With `options.limit`, a single task reads the documents, one after another, and
    stops after the last. For `options.sample`, the corpus is read to draw documents.

    Raises:
      UsageError: nothing can be read, or the options do not fit the corpus.
    """
    tasks: list[Task] = []
    paths: set[str] = set()
    for scheme, where in parse_addresses(with_commits(options.corpus)):
        listed = _list_scheme(scheme, where, options)
        of_scheme = {path for task in listed for path in task.paths}
        if paths & of_scheme:
            raise UsageError(
                f"{min(paths & of_scheme)} belongs to two corpora; name it once"
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


def with_commits(corpus: str) -> str:
    """A value of `--corpus` with the present commits of the revisions on the hub."""
    addresses = parse_addresses(corpus)
    return ",".join(f"{scheme}:{files.at_commit(where)}" for scheme, where in addresses)


def _list_scheme(name: str, where: str, options: CorpusOptions) -> list[Task]:
    """The tasks of one of the run's corpora."""
    scheme = SCHEMES[name]
    if scheme.has_files and not scheme.is_table:
        pattern = folder_pattern(where)
        listed = list_files(pattern, name if pattern != where else "")
        where = pattern
        listed = [
            file._replace(problem=OTHER_FORMAT, detail=f"the file is {kind}")
            if not file.problem and (kind := unread_kind(file.path))
            else file
            for file in listed
        ]
        if all(file.problem == OTHER_FORMAT for file in listed):
            raise UsageError(f"{listed[0].path}: {listed[0].detail}")
        _note_copies(listed)
        if name == "parquet":
            refuse_tables(where, listed)
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


def _note_copies(source_files: Sequence[CorpusFile]) -> None:
    """Says which files are probably the same, once plain and once compressed."""
    paths = [file.path for file in source_files]
    compressed = {
        path.removesuffix(end): path for path in paths if (end := codec_ending(path))
    }
    for path in paths if compressed else ():
        other = compressed.get(path.removesuffix(codec_ending(path)), path)
        if other != path:
            say(
                f"precis: note: {path} and {other} are both read, but by their names "
                "they hold the same documents"
            )
            return


def pack_tasks(tasks: Sequence[Task], *, most: int = MOST_TASKS) -> list[Task]:
    """Joins consecutive tasks if there are more than `most`.

    Args:
      tasks: the tasks of a corpus, in order.
      most: the approximate maximum; tasks of different kinds are not joined.
    """
    if len(tasks) <= most:
        return list(tasks)
    total = sum(task.size_bytes for task in tasks)
    # Empty files have no bytes but take time, so tasks are counted too.
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
    """A task that reads other tasks, one after another."""
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
    """Reads the articles and dead letters of a task."""
    return TaskReader(task, options)


# A document that may be drawn: its digest; its task and record, whose order decides
# between equal digests; and its place.
_Candidate = tuple[int, int, int, str, str]


def draw_documents(tasks: Sequence[Task], options: CorpusOptions) -> list[Task]:
    """Makes tasks that read only the drawn documents, and count the others.

    Args:
      tasks: the tasks of the corpus, in order.
      options: how to read the corpus.

    Raises:
      DataError: a file has changed or cannot be read, so nothing can be drawn.
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
                    f"{failure}; --sample reads every file, so leave this file out, or "
                    "run the command again once it does not change any more"
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
      options: how to read the task.
      drawn: the candidates of earlier tasks, sorted.
      records: a counter to which the records of each file are added.
      lost: a list to which dead letters of lost files are added, always drawn.
    """
    reader = TaskReader(task, options)
    last = drawn[-1] if len(drawn) == options.sample else None
    for number, record in enumerate(read_records(task, options)):
        content = record.content
        place = content.source_file, content.source_position
        records[content.source_file] += getattr(content, "records", 1)
        if isinstance(content, Document):
            found = _digest(content, options.seed), task.number, number, *place
            # Few texts are read: only of documents that may be drawn.
            if (last is None or found < last) and reader.is_document(content):
                yield found
        elif f"{content.stage}/{content.reason}" in UNCOUNTED:
            lost.append((0, task.number, number, *place))


def _digest(document: Document, seed: int) -> int:
    """A number by which documents are drawn.

    Equal documents have different numbers, because the position counts. The folder of
    the corpus does not count.
    """
    name = document.document_id or document.article
    content = f"{seed}\n{document.source_position}\n{name}"
    digest = hashlib.blake2b(content.encode(errors="surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "big")
