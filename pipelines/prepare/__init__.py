"""`precis prepare`: a corpus becomes a vocabulary and shards of records.

prepare             the job
vocabulary_pass     the first pass: words and content hashes; vocabulary_buckets
encoding_pass       the second pass: each task becomes shards, one a split
training_pairs      from an article to the two texts of a training example
chosen_sources      the sentences that a method chooses of long articles
generator_result    what a generator returns at its end
"""
