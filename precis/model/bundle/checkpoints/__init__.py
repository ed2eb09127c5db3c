"""Checkpoints of Hugging Face transformers: read as networks, and written from them.

family           what the checkpoints of one architecture look like
encoder_decoder,
bert, rotary     the families: names of fields and tensors, as data
generation       generation_config.json as a search, and a search as that file
importer         a checkpoint as a network or an encoder
exporter         a network as a checkpoint

Importer and exporter read the same tables. A new family is a file of data and its entry
in `importer.FAMILIES`. Its tokenizer is read by `tokenization.imported` and
written by `tokenization.exported`. No code of a checkpoint is run, no pickle is read.
"""
