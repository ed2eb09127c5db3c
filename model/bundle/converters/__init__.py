"""Converters: checkpoints of other projects as networks and encoders of this one.

checkpoint                reads a checkpoint in the layout of Hugging Face
architecture              what an architecture has to say about its checkpoints
bart, bert, pegasus, t5   one file per architecture
generation                generation_config.json as search settings
tensors                   the tensors in the files of a checkpoint
weights                   assigns tensors to the weights of a network

The tokenizer of a checkpoint is read by `tokenization.checkpoint_files`. No converter
runs code from a checkpoint or reads a pickle.
"""
