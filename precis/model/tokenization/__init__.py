"""Text to token ids and back.

source              encodes sources, cut at a network's length, and targets
folder              saves and loads one or two tokenizers of either kind
wordpiece           the tokenizer of precis, a lossless WordPiece
vocabulary          counts words and learns the vocabulary of `wordpiece`
imported            the tokenizer of a checkpoint, run by the `tokenizers` library
prompts             the prompts of a language model
tensors             `wordpiece` as operations of TensorFlow
exported            writes a tokenizer as files that transformers reads
"""
