"""Checkpoints of Hugging Face transformers: read as networks, and written from them.

family           the names of fields and tensors of one architecture
encoder_decoder,
bert, rotary     the families, as data
generation       reads generation_config.json as search settings, and writes it
importer         reads a checkpoint as a network or an encoder
exporter         writes a network as a checkpoint

Importer and exporter read the same tables. A new family is a file of data and an entry
in `importer.FAMILIES`. `tokenization.imported` reads its tokenizer, and
`tokenization.exported` writes it. No code of a checkpoint is run, no pickle is read.
"""
