"""Commands that read or make a bundle, without a corpus.

import_checkpoint  makes a bundle from a checkpoint of another project
export             makes a checkpoint of transformers, or a SavedModel, from a bundle
attention          draws the attention of a bundle's network on a text
"""
