"""What `precis prepare` is run on, what it wrote, and how it is made to break off."""

import datetime
import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import tensorflow as tf

from precis.model.records.example import read_labelled
from precis.model.text.article import Article
from precis.model.text.normalization import normalise
from precis.model.tokenization import vocabulary
from precis.model.tokenization.folder import TokenizerPair, save_tokenizers
from precis.model.tokenization.wordpiece import Tokenizer
from precis.pipelines.corpus.corpus import list_tasks
from precis.pipelines.corpus.dead_letters import DeadLetterWriter
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.engines.tasks import publish_report
from precis.pipelines.prepare.encoding_pass import EncodeWorker
from precis.pipelines.prepare.options import PrepareOptions
from precis.pipelines.prepare.vocabulary_pass import (
    DUPLICATES_FILE,
    ScanWorker,
    join_scanned,
)
from precis.pipelines.run.accounts import sum_file_counts, total_counts
from precis.pipelines.run.job import Job
from precis.pipelines.run.progress import TaskProgress
from support.command_line import write_jsonl
from support.corpus_records import story

SMALL = {"vocabulary_size": 600, "max_source_tokens": 40, "max_target_tokens": 10}
STORIES = [story(index) for index in range(8)]
BODIES = {line["id"]: Article.from_text(line["article"]).body for line in STORIES}
HIGHLIGHTS = {line["id"]: normalise(line["highlights"]) for line in STORIES}


def learn_tokenizer():
    """A tokenizer of `STORIES`."""
    words = vocabulary.count_words([*BODIES.values(), *HIGHLIGHTS.values()])
    return Tokenizer(vocabulary.learn(words, size=600))


def spaced(index):
    """The article of a story with other white space."""
    return "  " + story(index)["article"].replace(" ", "  ", 3) + "\n"


# In the order of the corpus: each line and what becomes of it.
LINES = [
    *[(story(index), "written") for index in range(20)],
    ("{broken", "failed"),
    (story(20), "written"),
    (story(90, article=spaced(20)), "duplicates"),  # of the line before
    (story(91, article=spaced(3)), "duplicates"),  # of one in another task
    (story(92, article="(CNN) -- "), "without_text"),
    (story(93, article=" \n"), "without_text"),
    (story(94, highlights=" \n "), "without_highlights"),
    ({"id": "d95", "article": "Rain fell. Nobody came."}, "without_highlights"),
    # The same text, but this time with highlights.
    (story(96, article="Rain  fell. Nobody came."), "written"),
    (b'{"id": "d97", "article": "caf\xe9", "highlights": "x"}', "failed"),
    ("[1, 2]", "failed"),
    ({"id": "d98", "highlights": "x"}, "failed"),
    ({"id": "d99", "article": 7, "highlights": "x"}, "failed"),
    *[(story(index), "written") for index in range(21, 60)],
    (story(89, article=story(3)["article"]), "duplicates"),
]
FATES = [fate for _, fate in LINES]


def split_by_hash(document_id):
    """The split of a document by the seed 17, where two shares are 0.2."""
    digest = hashlib.sha256(f"17:{document_id}".encode()).hexdigest()
    place = int(digest[:16], 16) / 2**64
    return "validation" if place < 0.2 else "test" if place < 0.4 else "train"


def one_task(folder: Path, lines, **corpus: Any):
    """The options of a corpus of some lines, and its only task."""
    path = write_jsonl(folder / "c.jsonl", lines)
    shares = {"validation_share": 0, "test_share": 0}
    options = CorpusOptions(corpus=path, **{**shares, **corpus})
    (task,) = list_tasks(options)
    return options, task


def encode(
    folder: Path,
    lines,
    tokenizers: TokenizerPair,
    *,
    corpus: dict[str, Any] | None = None,
    **options: Any,
) -> dict[str, int]:
    """Reads and encodes lines as one task, without Beam; returns its counts.

    Args:
      folder: for the corpus and the records.
      lines: of the corpus.
      tokenizers: for sources and targets.
      corpus: options of the corpus.
      **options: fields of `PrepareOptions`.
    """
    corpus_options, task = one_task(folder, lines, **(corpus or {}))
    output = str(folder)
    job = records_job(output, 1)
    save_tokenizers(output, tokenizers)
    path = Path(job.output, DUPLICATES_FILE)
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"place": pa.array([], pa.int64())}), path)
    pair = {"tokenizer": tokenizers.target, "source_tokenizer": tokenizers.source}
    given = {name: output for name in pair if not isinstance(pair[name], Tokenizer)}
    prepare_options = PrepareOptions(output=output, **{**SMALL, **given, **options})
    reports = []
    for worker in (
        ScanWorker(corpus_options, prepare_options, job),
        EncodeWorker(corpus_options, prepare_options, job),
    ):
        worker.load()
        dead_letters = DeadLetterWriter("", task=0, run_id="")
        result = worker.run(task, TaskProgress(task.size_bytes), dead_letters)
        reports.append(publish_report(0, result, dead_letters, None))
        # The corpus is read only once.
        Path(folder, "c.jsonl").unlink(missing_ok=True)
    counts = total_counts(sum_file_counts(report.file_counts for report in reports))
    return {**reports[0].counts, **counts}


def records_job(output: str, tasks: int) -> Job:
    """A job of `precis prepare`."""
    now = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
    return Job(output, "records", "f" * 64, "f" * 16, now, tasks)


def scan_corpus(tasks, corpus: CorpusOptions, options: PrepareOptions) -> None:
    """The first pass over some tasks, without Beam."""
    job = records_job(options.output, len(tasks))
    scan = ScanWorker(corpus, options, job)
    dead_letters = DeadLetterWriter("", task=0, run_id="")
    for task in tasks:
        scan.run(task, TaskProgress(task.size_bytes), dead_letters)
    join_scanned(job, options)


def learn_vocabulary(
    folder: Path, lines, *, corpus: dict[str, Any] | None = None, **options: Any
) -> list[str]:
    """The pieces that the first pass learns of lines as one task, without Beam."""
    corpus_options, task = one_task(folder, lines, **(corpus or {}))
    prepare_options = PrepareOptions(output=str(folder), **{**SMALL, **options})
    scan_corpus([task], corpus_options, prepare_options)
    return (folder / "tokenizer/vocab.txt").read_text().splitlines()


def examples(folder):
    """The records of each split as TensorFlow reads them."""
    by_split = {}
    for path in sorted(Path(folder).glob("*.tfrecord")):
        for serialised in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            feature = tf.train.Example.FromString(serialised).features.feature
            by_split.setdefault(path.name.split("-")[0], []).append(
                {
                    "id": feature["document_id"].bytes_list.value[0].decode(),
                    "source": list(feature["source"].int64_list.value),
                    "target": list(feature["target"].int64_list.value),
                    "source_tokens": feature["source_tokens"].int64_list.value[0],
                    "highlights": feature["highlights"].bytes_list.value[0].decode(),
                }
            )
    return by_split


def all_examples(folder):
    return [example for split in examples(folder).values() for example in split]


def labels(folder):
    """The labelled articles of a folder by document id."""
    ids = [example["id"] for example in all_examples(folder)]
    paths = sorted(Path(folder).glob("*.tfrecord"))
    rows = [row for path in paths for row in read_labelled(str(path))]
    return dict(zip(ids, rows, strict=True))


def info(folder):
    return json.loads((Path(folder) / "dataset.json").read_bytes())
