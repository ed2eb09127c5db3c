"""The built-in corpus `sample:`, synthetic and offline.

A small network learns from it in minutes.

generator   lists, makes and reads the documents: `articles.jsonl` holds the
            hand-written ones, `stories.json` the kinds of story for all others
"""
