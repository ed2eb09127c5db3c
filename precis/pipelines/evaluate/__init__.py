"""`precis evaluate`: ROUGE and measures of every system of a run and of the references.

evaluate            the job
group_references    the references of groups, beside their rows
scoring             rows to the scores and measures of every system
evaluation_table    means, intervals, differences, and the tables of them
"""
