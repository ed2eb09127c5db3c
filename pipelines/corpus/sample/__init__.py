"""The built-in corpus `sample:`, synthetic and offline.

A small network learns from it in minutes.

source      lists and reads the scheme `sample:`
generator   makes the documents: `articles.jsonl` holds the hand-written ones,
            `stories.json` the kinds of story for all others
names       draws people, places and figures, all of them invented
"""
