"""What a command prints beside its result.

job_progress       listens to the stages of a command and has them shown
progress_state     what is said of a stage: its total, rate and time left
progress_text      the same in words, and as JSON
progress_painters  plain lines, JSON lines, nothing
live_painter       the display of a terminal, which is renewed in place
last_lines         what a command made, where it lies, and what takes it next
program            how precis was called
"""
