"""`--estimate`: what a job would take.

estimate          runs the job over samples of its corpus
estimate_report   the lines that are printed; estimate_command prints them
"""
