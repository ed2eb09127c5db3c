"""The command that runs the others: from a corpus to a finished summarizer.

train_summarizer  runs the steps, each by the function of its command
step_flags        the flags of each step
"""
