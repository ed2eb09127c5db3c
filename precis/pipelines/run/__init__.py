"""Jobs, their output folders and the processes that run them, for all kinds of jobs.

job               starts, resumes and finishes a job, and records its inputs
options           options that several jobs share, and options by name
output_lock       lets only one process at a time own a folder
result_files      the files of a finished result
accounts          the outcome of every record
key_tables        Parquet files of keys, and the database that joins them
job_progress      shows the progress of a job
interruption      ends a command at a signal
"""
