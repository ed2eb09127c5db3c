"""Search: finds the most likely summaries of a batch of documents.

beam.py         beam search and greedy search, in segments of a few steps
hypotheses.py   the live and the finished hypotheses of a beam, and their ranking
constraints.py  which token may come next
copy_constraint.py  numbers and names are written only as the source has them
scores.py       the length penalty and the best next tokens
config.py       the settings
special.py      the special tokens of a tokenizer or a bundle

A search uses only `encode`, `start` and `step` of a network, and handles the network's
cache with the functions of `model.cache`.
"""
