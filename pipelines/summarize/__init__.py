"""The job `precis summarize`, one document, and the articles of other programs.

summarize             the job: its steps and its manifest
summarize_task        a task of the corpus to its part of the run
window_summarizer     articles to rows, in windows
summary_rows          the row of an article
extractive_summaries  sentences of the extractive methods
document_encoder      what a network reads of an article
search_processes      the processes that search
run_parts             a run, its parts and their counts
run_manifest          what is said of a run
equal_texts           which documents have equal texts, or a row in an earlier run
known_documents       rows that are taken over
earlier_runs          runs whose rows are taken over
retried_records       records that an earlier run has lost
run_on_workers        a run that its workers finish
one_document          the summary of one text
summary_settings      the settings that the rows depend on
"""
