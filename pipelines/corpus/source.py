"""Lists a corpus as tasks, and reads a task as articles."""

from precis.model.errors import UsageError
from precis.pipelines.corpus import csv_files, jsonl, stories
from precis.pipelines.corpus.listing import (
    group_tasks,
    list_files,
    list_folder,
    unreadable_tasks,
)
from precis.pipelines.corpus.options import CorpusOptions, parse_address
from precis.pipelines.corpus.packing import pack_tasks
from precis.pipelines.corpus.sample import source as sample
from precis.pipelines.corpus.selecting import select_documents
from precis.pipelines.corpus.task import SourceFile, Task
from precis.pipelines.corpus.task_reader import TaskReader

# A built-in document counts as this much, so that a task of the default size has a
# thousand documents: the built-in corpus is made for small machines.
_SAMPLE_DOCUMENT_BYTES = 16 << 10
_SCHEMES_OF_DOCUMENTS = ("text", "stories")  # one document a file


def list_tasks(options: CorpusOptions) -> list[Task]:
    """Cuts the corpus into tasks, after a look at its files.

    With `options.limit` and `options.sample` documents are read to select them.

    Raises:
      UsageError: nothing is there to read, or not what the options say.
    """
    tasks = _list_scheme(options)
    if not tasks:
        raise UsageError(f"{options.corpus} holds no documents; its files are empty")
    tasks = [
        task._replace(number=number) for number, task in enumerate(pack_tasks(tasks))
    ]
    return select_documents(tasks, options)


def _list_scheme(options: CorpusOptions) -> list[Task]:
    """The tasks of the corpus, listed by its scheme.

    Here and below, the modules of Parquet and TFDS are imported where they are needed:
    their packages are slow to import, and not every installation has them.
    """
    scheme, where = parse_address(options.corpus)
    if scheme == "tfds":
        return _list_tfds(where, options)
    if scheme == "sample":
        task_documents = max(1, options.task_bytes // _SAMPLE_DOCUMENT_BYTES)
        return sample.list_tasks(where, task_documents=task_documents)
    if scheme == "stories":
        source_files = list_folder(where, stories.SUFFIX)
    else:
        source_files = list_files(where)
    readable = [file for file in source_files if not file.problem]
    unreadable = [file for file in source_files if file.problem]
    return [
        *_list_files(scheme, readable, options),
        *unreadable_tasks(
            unreadable, holds_one_document=scheme in _SCHEMES_OF_DOCUMENTS
        ),
    ]


def _list_files(
    scheme: str, source_files: list[SourceFile], options: CorpusOptions
) -> list[Task]:
    """The tasks that read files."""
    if scheme == "text":
        return group_tasks("text", source_files, options.task_bytes)
    if scheme == "stories":
        return stories.list_tasks(source_files, task_bytes=options.task_bytes)
    if scheme == "parquet":
        from precis.pipelines.corpus import parquet

        return parquet.list_tasks(
            source_files,
            fields=options.fields,
            needed=options.required_fields,
            task_bytes=options.task_bytes,
        )
    module = jsonl if scheme == "jsonl" else csv_files
    return module.list_tasks(
        source_files,
        fields=options.fields,
        needed=options.required_fields,
        task_bytes=options.task_bytes,
        max_record_bytes=options.max_record_bytes,
    )


def _list_tfds(where: str, options: CorpusOptions) -> list[Task]:
    from precis.pipelines.corpus import tfds_prepare, tfds_sets

    if options.stories_dir:
        tfds_prepare.prepare_from_stories(
            options.stories_dir, options.urls_dir, options.data_dir
        )
    return tfds_sets.list_tasks(
        where,
        fields=options.fields,
        needed=options.required_fields,
        split=options.split,
        data_dir=options.data_dir,
        task_bytes=options.task_bytes,
    )


def read_task(task: Task, options: CorpusOptions) -> TaskReader:
    """The articles, empty articles and unreadable records of a task."""
    return TaskReader(task, options)
