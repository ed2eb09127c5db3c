"""The job `precis summarize`, one document, and the articles of other programs.

summarize             the job and its steps: a task of the corpus becomes an output file
window_summarizer     articles to rows, in windows
summary_rows          the row of an article
extractive_summaries  sentences of the extractive methods
document_encoder      what a network reads of an article
run_output            the output files of a run, their counts, and its manifest
known_documents       documents with equal texts or an earlier row, which is taken over
groups                sentences of all rows by group; a summary of each group
earlier_runs          runs whose rows are taken over
texts                 the summaries of one text, and of a data frame
options               the options of the command
summary_settings      the settings that the rows depend on
"""
