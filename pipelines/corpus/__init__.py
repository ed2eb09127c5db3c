"""Corpora: where documents come from.

options      the flags of a corpus, and the syntax `scheme:where`
source       lists a corpus as tasks and reads a task as articles
task_reader  reads a task; selecting: what --limit and --sample take
splits       the split of a document that its source assigns to none
task         tasks, their fields, and records that cannot be read
clean        --clean; failures: how many records may be lost

Each scheme has a module with two functions: `list_tasks` looks at the files of a corpus
and cuts them into tasks; `read` yields the documents and unreadable records of a task.

jsonl, csv_files, parquet, text_files, stories, tfds_sets, sample.source

Several schemes share these modules:

listing       finds files and cuts them into tasks
lines         the lines of a byte range, plain or gzip
records       a record of the user's files as a document
dead_letters  records that could not be processed, each with the reason
tfds_prepare  data sets of TensorFlow Datasets that are not prepared yet
"""
