"""`precis summarize`: a corpus becomes a run.

summarize             the job; run_steps has its four steps, run_on_workers finishes it
                      where nobody waits for it
summarize_task        the step `infer`: a task of the corpus to its pieces
task_rows             what is new goes to the summarizer, what is not is written
window_summarizer     windows of documents (document_windows) to rows
summary_rows          the columns of a document: extractive_summaries, long_documents,
                      sentence_writing, abstractive_columns,
                      keyphrase_columns
window_words          the words of the articles of a window, read together
compared_quality      measures of the other methods and of the reference
scoring_models        the models that score sentences and phrases
publish_parts         the step `publish`: pieces to parts; part_plans, duplicate_rows
earlier_runs          --reuse; retried_records is --retry_failures
run_manifest          the manifest of a run
summary_settings      what of the flags the rows depend on
summarize_text        one document without a corpus
"""
