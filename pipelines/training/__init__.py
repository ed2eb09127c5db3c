"""The commands that train: from records to a bundle. `precis.model.training` trains.

train             a network that writes
train_extractor   a network that scores sentences
train_keyphrases  a classifier of phrases
"""
