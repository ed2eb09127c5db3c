"""`precis evaluate`: ROUGE of every system of a run against the references.

evaluate            the job
scoring             rows to the scores of every system; score_task is one task of it
evaluation_figures  means, intervals, differences
evaluation_table    the same as a table
"""
