"""The job `precis summarize`, and summaries of single texts and data frames.

summarize             the job and its steps, from task to output file
batch_rounds          has the requests of a run answered in batches
window_summarizer     turns articles into rows, in windows
summary_rows          the row of an article
extractive_summaries  chooses the sentences of the extractive methods
document_encoder      encodes articles for a network
run_output            the output files of a run, their counts, and its manifest
known_documents       documents with an equal text or an earlier row, which is reused
groups                the sentences of all rows by group, and a summary of each group
earlier_runs          finds runs whose rows can be reused
texts                 summarizes one text, or a data frame
options               the options of the command
summary_settings      the settings that the rows depend on
"""
