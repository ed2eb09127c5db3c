"""`precis doctor`: what would stop a command, before anything is spent on it.

doctor         runs the checks, which have a file for each subject; doctor_command
               prints what they find
findings       a finding, as a line and as JSON
request        the command that is checked, with its flags read
packages       Python, the packages of the extras that the command needs
machine        cores, memory, limits of containers
accelerator    devices of TensorFlow; accelerator_process looks in a process of its own
place          write access to the output, room on its disk
output         who owns the output, which job lies in it
object_stores  packages, credentials and buckets of gs:// and s3://
engine         the runner of Beam: whether it answers, and its version
models         bundles and records that the command reads
sample         the corpus is listed, ten of its documents are read
trial          ten documents through the job's own pipeline; trial_process runs it
fresh_process  runs a check in a process of its own
"""
