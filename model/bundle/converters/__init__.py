"""Checkpoints of other projects, in the layout of Hugging Face, as networks, searches
and tokenizers of this one.

`checkpoint` reads a folder, with `tensors`, `weights` (where each of them belongs),
`generation` (how to search) and one module an architecture, which says what the tensors
are called; `keras_preset` makes such a checkpoint of a preset of keras-hub. `tokenizer`
is what cuts the text, from the files that `definitions` and `sentencepiece` read.
Nothing here runs code from a checkpoint or reads a pickle.
"""
