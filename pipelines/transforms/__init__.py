"""Beam transforms for pipelines of the reader's own, offered as `precis.transforms`.

    read_corpus           `--corpus` syntax -> documents, dead letters
    summarize_documents   documents -> summary rows, dead letters
    write_summaries       summary rows -> Parquet files

The commands use the same functions, once per task instead of per element: a task is
read by `read_task`, summarized by `WindowSummarizer` and written with `summary_table`.
"""
