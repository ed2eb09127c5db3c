"""The built-in corpus `sample:`, synthetic and offline: enough for a small network to
learn from in minutes.

`source` is the scheme, `generator` makes the documents, `articles.jsonl` holds the
hand-written ones. `story` lays an article out; `disasters`, `crime`, `politics`,
`business`, `leisure` and `science` each hold kinds of story; `names` draws people,
places and figures, all of them invented.
"""
