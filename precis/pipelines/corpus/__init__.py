"""Corpora: reading documents from files and data sets.

schemes      the table of formats; each has a row and a module
options      the flags of a corpus, and the syntax `scheme:where`
corpus       lists a corpus as tasks, and draws the documents of --sample
task_reader  reads a task as articles and dead letters
task         tasks, their fields, and dead letters
dead_letters writes, reads and counts dead letters

The formats: jsonl, csv_files, parquet, text_files, warc, tfds_sets, sample.generator.
Each has two functions: `list_tasks` cuts a corpus into tasks, `read` yields the records
of a task. They share:

listing      finds files; opening: opens them, notices changes, writes their names
lines        the lines of a byte range; compression: reads gzip, bzip2, xz and zstd
records      turns a record into a document; kept_fields: --keep_fields
formats      recognizes files of other formats
"""
