"""Search: `beam` keeps the best hypotheses, `greedy` the single most likely token,
`summarizer` turns texts into ranked summaries.

A search is a pure function over a shaped state; it knows a network only by its `start`
and `step`.
"""
