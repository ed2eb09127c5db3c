"""`precis summarize`: corpus (+ bundle) -> Parquet with an extractive and an abstractive summary of every document.

One task is one Parquet file, written aside and renamed, so that a document is in the result once or not at all. Within a task documents are
read in windows; a window's documents are searched in the order of their lengths and written in the order of the corpus. While the last
batches of a window are searched, those of the next one wait already, so that no search process is idle.
"""

import dataclasses
import importlib.metadata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions
from apache_beam.utils.shared import Shared

from model import files
from model.bundle import read_decoding, read_manifest
from model.config import DecodingConfig, refuse_coverage
from model.decoding.figures import Figures, describe
from model.decoding.pool import Search, count_processes, refuse_within_import
from model.errors import DataError, UsageError
from model.extractive.methods import METHODS
from model.extractive.selection import extract
from model.quiet import import_tensorflow
from model.text import body, content_sha256, sentences, words
from pipelines import progress, tasks
from pipelines.corpus.document import Document, Task, Unreadable
from pipelines.corpus.source import CorpusOptions, list_tasks, read_task
from pipelines.failures import DeadLetter, check_failures, count_reasons, unreadable_letter
from pipelines.flags import option_names, read_flags
from pipelines.options import SUMMARIZE, SummarizeOptions, decode_id
from pipelines.runner import LOCAL_RUNNER, pipeline_options, run_pipeline
from pipelines.schema import SCHEMA_VERSION, SUMMARY_SCHEMA, summary_table, write_parquet
from pipelines.tasks import Job

if TYPE_CHECKING:
    from model.decoding.bulk import BulkSummarizer, Window

SUMMARIES_FOLDER, MANIFEST_FILE = "summaries", "manifest.json"
# Runners that work in this process unless --direct_running_mode multi_processing says otherwise.
LOCAL_RUNNERS = (LOCAL_RUNNER, "DirectRunner")


class _Begun(NamedTuple):
    """A window of documents whose search has begun; without a bundle there is none."""

    documents: list[tuple[Document, str]]
    source_tokens: list[int]
    search: "Window | None"


def summarize(*, beam_args: Sequence[str] = (), **flags: Any) -> dict[str, Any]:
    """Summarizes every document of a corpus.

    Args:
      beam_args: flags for Beam itself.
      **flags: the fields of `CorpusOptions`, `SummarizeOptions`, `DecodingConfig` and `FailureOptions`.

    Returns:
      The content of manifest.json.

    Raises:
      UsageError: a flag, a corpus or a bundle that cannot be; nothing was written.
      DataError: too many records failed.
    """
    refuse_within_import()
    # An imported network brings its own search: what no flag says, the bundle does, and what it does not say, the defaults do.
    own = read_decoding(flags["bundle"]) if flags.get("bundle") else {}
    corpus, options, decoding, failures = read_flags(SUMMARIZE, {**own, **flags})
    _check_methods(options)
    refuse_coverage(decoding)
    beam_options = pipeline_options(beam_args, own_flags=option_names(SUMMARIZE))
    model = _model_ids(options, decoding)
    found = list_tasks(corpus)
    inputs = _inputs(corpus, options, model, found)
    job = tasks.open_job(options.output, kind="summaries", inputs=inputs, tasks=len(found))
    if job is not None:
        if options.bundle:
            import_tensorflow()
            options = _without_processes_of_workers(options, beam_options)
        pipeline = beam.Pipeline(options=beam_options)
        build(pipeline, found, corpus=corpus, options=options, decoding=decoding, model=model, job=job)
        run_pipeline(pipeline, label="summarize", size=sum(task.size_bytes for task in found))
        manifest = files.read_json(files.join(options.output, MANIFEST_FILE))
        if not manifest["counts"]["read"]:
            raise DataError(
                f"{corpus.corpus} holds no document" + (f" of the split {corpus.split!r}; check --split" if corpus.split else "")
            )
        where = files.join(options.output, tasks.DEAD_LETTERS_FOLDER)
        check_failures(manifest["counts"], manifest["failures"], max_failed_share=failures.max_failed_share, dead_letters=where)
        tasks.finish_job(job)
    return files.read_json(files.join(options.output, MANIFEST_FILE))


def _check_methods(options: SummarizeOptions) -> None:
    if not options.methods:
        raise UsageError(f"--extractive names no method; known are {', '.join(sorted(METHODS))}")
    for name in options.methods:
        if name not in METHODS:
            raise UsageError(f"--extractive: there is no method {name!r}; known are {', '.join(sorted(METHODS))}")
    if len(set(options.methods)) < len(options.methods):
        raise UsageError(f"--extractive names a method twice: {options.extractive}; name each once")


def _model_ids(options: SummarizeOptions, decoding: DecodingConfig) -> dict[str, str | None]:
    """What names the model and the search in every row; None without a bundle."""
    if not options.bundle:
        return {"model_id": None, "decode_id": None}
    return {"model_id": read_manifest(options.bundle)["model_id"], "decode_id": decode_id(decoding, options.precision)}


def _without_processes_of_workers(options: SummarizeOptions, beam_options: PipelineOptions) -> SummarizeOptions:
    """The options for workers that Beam starts one a core: each of them would start one search process a core."""
    runner = beam_options.view_as(StandardOptions).runner
    is_here = runner in LOCAL_RUNNERS and beam_options.view_as(DirectOptions).direct_running_mode != "multi_processing"
    return options if options.search_processes or is_here else dataclasses.replace(options, search_processes=1)


def _inputs(corpus: CorpusOptions, options: SummarizeOptions, model: dict[str, str | None], found: Sequence[Task]) -> dict[str, Any]:
    """Everything the summaries depend on."""
    return {
        "schema": SCHEMA_VERSION,
        "corpus": dataclasses.asdict(corpus),
        "tasks": tasks.describe_tasks(found),
        "extractive": options.methods,
        "sentences": options.sentences,
        "window_documents": options.window_documents,  # A window is a row group.
        **model,
    }


def build(
    pipeline: beam.Pipeline,
    found: Sequence[Task],
    *,
    corpus: CorpusOptions,
    options: SummarizeOptions,
    decoding: DecodingConfig,
    model: dict[str, str | None],
    job: Job,
) -> None:
    """Adds the job to a pipeline: tasks -> Parquet parts and receipts -> manifest.json."""
    _ = (
        pipeline
        | "ListTasks" >> beam.Create(found)
        | "SummarizeTasks" >> beam.ParDo(SummarizeTask(corpus=corpus, options=options, decoding=decoding, model=model, job=job))
        | "GatherReceipts" >> beam.combiners.ToList()
        | "PublishManifest" >> beam.Map(publish_manifest, options, corpus, model, job)
    )


class SummarizeTask(beam.DoFn):
    """Turns one task into a Parquet part and yields its receipt."""

    def __init__(
        self, *, corpus: CorpusOptions, options: SummarizeOptions, decoding: DecodingConfig, model: dict[str, str | None], job: Job
    ) -> None:
        self._corpus, self._options, self._decoding, self._model, self._job = corpus, options, decoding, model, job
        self._shared = Shared()
        self._bulk: BulkSummarizer | None = None

    def setup(self) -> None:
        """Opens the bundle once per process."""
        if self._options.bundle:
            self._bulk = self._shared.acquire(self._open)
            self._bulk.pool.retain()

    def teardown(self) -> None:
        """Ends the search processes when no thread of this worker needs them any more."""
        if self._bulk is not None:
            self._bulk.pool.release()
            self._bulk = None

    def _open(self) -> "BulkSummarizer":
        from model.decoding.bulk import BulkSummarizer

        search = Search(self._options.bundle, str(self._model["model_id"]), self._options.precision, self._decoding)
        return BulkSummarizer(search, processes=count_processes(self._options.search_processes))

    def process(self, task: Task) -> Iterator[dict[str, Any]]:
        """Yields the receipt of a task that is done."""
        bar = progress.TaskProgress(task.size_bytes)
        yield tasks.run_task(self._job, task.number, lambda: self._summarize(task, bar))
        bar.finish()

    def _summarize(self, task: Task, bar: progress.TaskProgress) -> dict[str, Any]:
        counts: Counter[str] = Counter(read=0, written=0, failed=0, duplicates=0, skipped=0, truncated=0)
        letters: list[DeadLetter] = []
        name = files.join(SUMMARIES_FOLDER, tasks.part_name(task.number, self._job.tasks))
        windows = self._windows(task, counts, letters)
        figures = Figures()
        write_parquet(files.join(self._job.output, name), self._tables(windows, counts, figures, bar), SUMMARY_SCHEMA)
        counts["failed"] = sum(letter.records for letter in letters)
        counts["read"] += counts["failed"]
        return {
            "task": task.number,
            "counts": dict(counts),
            "files": [tasks.describe_file(self._job.output, name, rows=counts["written"])],
            "dead_letters": tasks.publish_dead_letters(self._job, task.number, letters),
            "failures": count_reasons(letters),
            "search": figures.sums,
        }

    def _windows(self, task: Task, counts: Counter[str], letters: list[DeadLetter]) -> Iterator[list[tuple[Document, str]]]:
        """The documents of a task that can be summarized, each with its body, some hundred at a time; the others become dead letters."""
        window: list[tuple[Document, str]] = []
        for document in read_task(task, self._corpus):
            if isinstance(document, Unreadable):
                letters.append(unreadable_letter(document))
            elif not (text := body(document.article, strip_boilerplate=self._corpus.strip_boilerplate)):
                letters.append(DeadLetter("read", "empty_article", "the article has no text", document.document_id))
            else:
                window.append((document, text))
                counts["read"] += 1
            if len(window) == self._options.window_documents:
                yield window
                window = []
        yield window

    def _tables(
        self, windows: Iterator[list[tuple[Document, str]]], counts: Counter[str], figures: Figures, bar: progress.TaskProgress
    ) -> Iterator[pa.Table]:
        for begun in _one_ahead(self._begin(windows)):
            rows = self._rows(begun)
            counts["written"] += len(rows)
            counts["truncated"] += sum(row["truncated"] or False for row in rows)
            figures.add(begun.search.searched if begun.search else [])
            yield summary_table(rows)
            bar.advance(len(rows), sum(len(document.article) for document, _ in begun.documents))

    def _begin(self, windows: Iterator[list[tuple[Document, str]]]) -> Iterator[_Begun]:
        """Begins to search each window.

        Its first window, the largest, says for a whole task where it is searched: so that depends on the task alone, and after an
        interruption it is done in the same way.
        """
        in_processes = None
        for window in windows:
            if self._bulk is None:
                yield _Begun(window, [], None)
                continue
            sources = self._bulk.tokenizer.encode([text for _, text in window])
            if in_processes is None:
                in_processes = self._bulk.pays_for_processes(sources)
            yield _Begun(window, [len(source) for source in sources], self._bulk.begin(sources, in_processes=in_processes))

    def _rows(self, begun: _Begun) -> list[dict[str, Any]]:
        """Summary rows, in the order of the documents."""
        same = {**self._model, "run_id": self._job.run_id, "schema_version": SCHEMA_VERSION, "created_at": self._job.created_at}
        # Made before the summaries are waited for.
        own = [{**self._document_columns(document), **self._extractive_columns(document)} for document, _ in begun.documents]
        return [{**columns, **others, **same} for columns, others in zip(own, self._abstractive_columns(begun), strict=True)]

    def _document_columns(self, document: Document) -> dict[str, Any]:
        return {
            "document_id": document.document_id,
            "split": document.split,
            "content_sha256": content_sha256(document.article),
            "article_words": len(words(document.article)),
            "reference_summary": document.highlights,
        }

    def _extractive_columns(self, document: Document) -> dict[str, Any]:
        found = sentences(document.article, strip_boilerplate=self._corpus.strip_boilerplate)
        chosen = {method: extract(found, method=method, count=self._options.sentences) for method in self._options.methods}
        first = self._options.methods[0]
        return {
            "extractive_method": first,
            # A sentence is one line of a summary, whatever line breaks it had in the article.
            "extractive_summary": "\n".join(" ".join(one.sentence.text.split()) for one in chosen[first]),
            "extractive": [
                {"method": method, "rank": one.rank, "score": one.score, **one.sentence._asdict()}
                for method in chosen
                for one in chosen[method]
            ],
        }

    def _abstractive_columns(self, begun: _Begun) -> list[dict[str, Any]]:
        """The columns that need a network, null without one."""
        if self._bulk is None or begun.search is None:
            names = ("source_tokens", "seen_tokens", "truncated", "abstractive_summary", "abstractive")
            return [dict.fromkeys(names) for _ in begun.documents]
        limit = self._bulk.max_source_tokens
        return [
            {
                "source_tokens": tokens,
                "seen_tokens": min(tokens, limit),
                "truncated": tokens > limit,
                "abstractive_summary": ranked[0].text,
                "abstractive": [{"rank": rank, **summary._asdict()} for rank, summary in enumerate(ranked, start=1)],
            }
            for tokens, ranked in zip(begun.source_tokens, begun.search.summaries(), strict=True)
        ]


def _one_ahead(items: Iterable[_Begun]) -> Iterator[_Begun]:
    """Yields each item when the next one has been made."""
    before = None
    for item in items:
        if before is not None:
            yield before
        before = item
    if before is not None:
        yield before


def publish_manifest(
    receipts: list[dict[str, Any]], options: SummarizeOptions, corpus: CorpusOptions, model: dict[str, str | None], job: Job
) -> None:
    """Writes manifest.json from the receipts of all tasks."""
    receipts = sorted(receipts, key=lambda receipt: receipt["task"])
    manifest = {
        "kind": "summaries",
        "schema_version": SCHEMA_VERSION,
        "precis_version": importlib.metadata.version("precis"),
        "run_id": job.run_id,
        "fingerprint": job.fingerprint,
        "created_at": job.created_at.isoformat(),
        "corpus": corpus.corpus,
        "split": corpus.split,
        "bundle": options.bundle or None,
        **model,
        "extractive": list(options.methods),
        "counts": tasks.sum_counts(receipt["counts"] for receipt in receipts),
        "failures": tasks.sum_counts(receipt["failures"] for receipt in receipts),
        "search": describe(tasks.sum_counts([Figures().sums, *(receipt["search"] for receipt in receipts)])) if options.bundle else None,
        "files": [file for receipt in receipts for file in receipt["files"]],
        "dead_letters": [file for receipt in receipts for file in receipt["dead_letters"]],
    }
    files.write_json(files.join(options.output, MANIFEST_FILE), manifest)
