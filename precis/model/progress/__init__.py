"""What is done of a job while it runs: counted here, shown by whoever listens.

counters  counts of all threads and processes of this machine, in memory-mapped files
stages    the stages of a job, which a display may show
"""
