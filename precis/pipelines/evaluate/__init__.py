"""`precis evaluate`: ROUGE and measures of every system of a run.

evaluate            the job
group_references    joins the references of groups with their rows
scoring             computes scores and measures of every system from rows
evaluation_table    means, intervals and differences, and their tables
"""
