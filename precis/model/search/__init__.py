"""Search: finds the most likely summaries of a batch of documents.

beam.py         beam search and greedy search, in segments of a few steps
hypotheses.py   the live and the finished hypotheses of a beam, and their ranking
constraints.py  which token may come next
supported.py    numbers and names that only the source may bring
scores.py       the length penalty, the scores of next tokens, the best of them
config.py       the settings
special.py      the special tokens of a tokenizer or a bundle

A search knows a network by its `encode`, `start` and `step` alone, and handles its
cache with the functions of `model.cache`.
"""
