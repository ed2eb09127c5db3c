"""Checkpoints of other projects, in the layout of Hugging Face, as networks, searches and tokenizers of this one.

`checkpoint` reads a folder, with `tensors` (the weights), `generation` (how to search) and one module an architecture, which says what the
tensors are called; `tokenizer` is what cuts the text. Nothing here runs code from a checkpoint or reads a pickle.
"""
