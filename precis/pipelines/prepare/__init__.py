"""`precis prepare`: turns a corpus into a vocabulary and shards of training records.

prepare             the job
vocabulary_pass     the first pass: words -> vocabulary, content hashes -> duplicates
encoding_pass       the second pass: turns training pairs into shards, one per split
training_pairs      makes sources and targets of an article
pair_files          training pairs between the two passes
"""
