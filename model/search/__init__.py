"""Search: `beam` keeps the best hypotheses, `greedy` the single most likely token;
`rules` says which token may come next, `top_k` finds the best tokens, `config` holds
the settings.

A search is a pure function over a shaped state; it knows a network only by its `start`
and `step`.
"""
