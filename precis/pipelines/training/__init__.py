"""The commands that train bundles from records, with `precis.model.training`.

train             trains a writer, a selector or a classifier of phrases
                  (one command for each)
train_summarizer  trains a selector and a writer of lines
recipes           named settings
"""
