"""A job and its output folder, whatever the job does.

job               begins or resumes a job in a folder, and finishes it there
job_inputs        what a result depends on, and how that is recorded
output_state      what a job finds in its folder before it changes anything
output_lock       one process at a time owns a folder
result_files      which files a finished result has, whether they are whole
accounts          what became of every record
source_files      the counts of the source files, where they are many
failure_watch     ends a job in which every document fails
progress          what is done so far, across threads and processes
checksummed_json  JSON files that tell whether they are whole
build_time        the time that a result bears
"""
