"""The command that runs the others: from a corpus to a finished summarizer.

train_summarizer  runs the steps, each by the function of its command
step_flags        the flags of each step
left_steps        what of them is left to do
step_times        how long that takes on this machine, from a trial
"""
