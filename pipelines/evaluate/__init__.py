"""`precis evaluate`: ROUGE and measures of every system of a run and of the references.

evaluate            the job
scoring             rows to the scores of every system; score_task is one task of it
measures            how novel, repetitive and long the summaries are, and their flags
evaluation_figures  means, intervals, differences
evaluation_table    the same as tables; measure_table is the one of the measures
shown_documents     --show: drawn_rows draws, source_articles reads the corpus again
"""
