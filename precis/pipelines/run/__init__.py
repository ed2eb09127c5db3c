"""A job, its output folder and the process that does it, whatever the job does.

job               runs a job in a folder, or goes on with it, and what it depends on
options           options of several jobs, and options from values by name
output_lock       one process at a time owns a folder
result_files      which files a finished result has, whether they are whole
accounts          what became of every record
key_tables        Parquet files of a job, and the database that joins keys
job_progress      what is shown of a job while it runs
interruption      how a command ends at a signal
"""
