"""What a command prints beside its result.

progress_line  what is done of a job, in one line
last_lines     what a command made, where it lies, and what takes it next
program        how precis was called
"""
