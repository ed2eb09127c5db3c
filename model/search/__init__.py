"""Search: finds the most likely summaries of a batch of documents.

beam.py         beam search
greedy.py       greedy search
state.py        the state of a beam search: live and finished hypotheses
candidates.py   the best continuations of the live hypotheses
finished.py     the finished hypotheses, and the final ranking
compaction.py   segments of steps, and dropping finished documents between them
constraints.py  which token may come next
supported.py    numbers and names that only the source may bring
scores.py       the length penalty, the scores of next tokens
top_k.py        the best tokens of a large vocabulary
contract.py     what a search needs of a network, and what it returns
config.py       the settings
special.py      the special tokens of a tokenizer or a bundle

A search knows a network by its `encode`, `start` and `step` alone, and handles its
cache with the functions of `model.cache`.
"""
