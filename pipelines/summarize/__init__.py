"""The job `precis summarize`, one document, and the articles of other programs.

summarize             the job
run_steps             its steps: a task of the corpus becomes a part of the run
window_summarizer     articles to rows, in windows
summary_rows          the row of an article
extractive_summaries  sentences of the extractive methods
document_encoder      what a network reads of an article
search_processes      the processes that search
run_parts             a run, its parts and their counts, and its manifest
equal_texts           which documents have equal texts, or a row in an earlier run
known_documents       rows that are taken over
earlier_runs          runs whose rows are taken over
one_document          the summary of one text
options               the options of the command
summary_settings      the settings that the rows depend on
"""
