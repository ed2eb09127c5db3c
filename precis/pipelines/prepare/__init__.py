"""`precis prepare`: a corpus becomes a vocabulary and shards of records.

prepare             the job
vocabulary_pass     the first pass: words -> vocabulary, content hashes -> duplicates
encoding_pass       the second pass: each task becomes shards, one a split
training_pairs      the texts that a network reads and learns to write, of an article
"""
