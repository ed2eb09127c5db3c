"""Commands that take a bundle, or make one, without a corpus.

import_checkpoint  a checkpoint of another project to a bundle
export             a bundle to a SavedModel, or with huggingface to a checkpoint
huggingface        a bundle to a checkpoint of transformers
export_folder      the folder of an export: aside, checksums, manifest
card               a bundle and an evaluation to a model card
attention          a bundle and a text to a picture
"""
