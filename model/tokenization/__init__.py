"""Tokenizers: `wordpiece` is the project's own and reversible, `vocabulary` learns its
pieces, `imported` runs those of checkpoints, which `definitions` and `sentencepiece`
read; `folder` saves and loads either kind.
"""
