"""`precis run`: the steps of a file, one after another, each a command.

job_file      the YAML file, with its variables put in
steps         its steps, checked as command lines of their commands
receipts      which steps are finished, by what they read and wrote
step_process  a step as a process, and how a signal ends it
run_steps     all of it, in order
run_command   the command `precis run`: what it prints
"""
