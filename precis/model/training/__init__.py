"""Training, from records to a bundle.

loop            the loop over steps, for every network; it can be stopped and resumed
state           the state of a training, and how it is saved and restored
generator       the training of a network that writes
selector        the training of a selector
importance      the importance of words, learned with the scores of a selector

record_sets     opens and checks record sets
batches         the order of the documents, and their padded batches
initialization  the initial weights; word_vectors: files of vectors for embeddings
loss, optimizer, train_step     one step of a network that writes
strategy        the devices
config          the settings
"""
