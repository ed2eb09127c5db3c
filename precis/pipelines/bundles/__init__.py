"""Commands that take a bundle, or make one, without a corpus.

import_checkpoint  a checkpoint of another project to a bundle
export             a bundle to a checkpoint of transformers
attention          a bundle and a text to a picture
"""
