"""Text to token ids and back.

source              encodes sources, which it cuts at a network's length, and targets
folder              saves and loads one or two tokenizers of either kind
wordpiece           the tokenizer of this project, WordPiece without loss
vocabulary          counts words and learns the vocabulary of `wordpiece`
imported            the tokenizer of a checkpoint, run by the `tokenizers` library
exported            writes a tokenizer as files that transformers reads
"""
