"""A job, its output folder and the process that does it, whatever the job does.

job               begins or resumes a job in a folder, and finishes it there
job_inputs        what a result depends on, and how that is recorded
output_state      what a job finds in its folder before it changes anything
output_lock       one process at a time owns a folder
result_files      which files a finished result has, whether they are whole
accounts          what became of every record
pool              several processes share the tasks of a job
job_progress      what is shown of a job while it runs; stage_state in words and JSON
interruption      what a job asks of a command that ends at a signal
"""
