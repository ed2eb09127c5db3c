"""The commands that train: from records to a bundle. `precis.model.training` trains.

train             a network that writes, one that scores sentences, or a classifier of
                  phrases
train_summarizer  a selector and a writer of lines
recipes           named settings
"""
