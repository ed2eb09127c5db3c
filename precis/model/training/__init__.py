"""Training, from records to a bundle.

loop            the loop over steps, stopped and resumed exactly, for every network
state           what it works on, and how that is saved and restored
generator       networks that write: batches, step, validation and bundle
selector       networks that score sentences, in the same way
importance      the importance of words, learned with the scores of a selector

record_sets     the record sets that are read, checked
batches         the order of the documents, and their padded batches
initialization  the first weights; word_vectors: files of vectors for embeddings
loss, optimizer, train_step     one step of a network that writes
strategy        the devices
config          the settings
"""
