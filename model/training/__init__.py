"""Training, from records to a bundle.

Networks that write summaries:

    loop            train_network: the loop over steps, stopped and resumed exactly
    state           what the loop works on, and how it is saved and restored
    metrics         the figures of steps: checked, logged and shown
    export          the weights that are exported, and their bundle
    record_sets     the record sets that are read; mixture: their shares of an epoch
    shards          the files of a record set, checked
    input_batches   the order of the documents; batch_shapes: their padded batches
    initialization  the first weights; word_vectors: files of vectors for embeddings
    loss, schedule, optimizer, train_step     one step
    strategy        the devices
    validation      loss and ROUGE on held-out documents

Extractors, which score sentences:

    extractor           train_extractor: the loop over epochs
    extractor_state     what that loop works on
    extractor_articles  the articles, with vectors, features and labels
    extractor_step      batches, one step and the optimizer

Both use `config` (settings), `checkpoint` (the whole state in a folder), `loss_log`
(`losses.jsonl`) and `resume`, which saves and restores the two.
"""
