"""The built-in corpus `sample:`, synthetic and offline.

A small network learns from it in minutes.

source      lists and reads the scheme `sample:`
generator   makes the documents; `articles.jsonl` holds the hand-written ones
story       the material of an article, and how an article is composed of it
disasters, crime, politics, services, business, leisure, science
            the kinds of story
names       draws people, places and figures, all of them invented
"""
