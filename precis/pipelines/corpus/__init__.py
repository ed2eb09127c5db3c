"""Corpora: where documents come from.

schemes      the table of formats, one row and one module each
options      the flags of a corpus, and the syntax `scheme:where`
corpus       lists a corpus as tasks, and draws the documents of --sample
task_reader  reads a task as articles and dead letters
task         tasks, their fields, documents that cannot be read
dead_letters writes and reads dead letters, and says how many records may be lost

The formats: jsonl, csv_files, parquet, text_files, tfds_sets, sample.generator. Each
has two functions: `list_tasks` cuts a corpus into tasks, `read` yields the records of a
task. They share:

listing      finds files; opening: opens them, notices changes, writes their names
lines        the lines of a byte range; compression: of gzip, bzip2, xz and zstd
records      a record of the user's files as a document; kept_fields: --keep_fields
formats      what a file is that is none of these
"""
