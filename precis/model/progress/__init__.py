"""The progress of a job: counted here, shown by a listener.

counters  counts of all threads and processes of this machine, in memory-mapped files
stages    the stages of a job, which a display may show
"""
