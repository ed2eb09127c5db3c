"""Exporters: networks of this project as checkpoints of transformers.

architecture   which BART, PEGASUS or T5 a network equals, and its config.json
generation     a search as generation_config.json
weights        the weights of a network as the tensors of a checkpoint

The tokenizer is written by `tokenization.exported`. The names of fields and tensors are
those that `converters` reads: a configuration is exported only if reading it gives the
same computation again.
"""
