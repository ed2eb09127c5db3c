"""Everything that needs no Beam, in layers; imports go downwards only.

training      batches, loss, schedule, optimizer, strategy, checkpoints, loop
inference     batches, worker processes, summarizer, selector, export
keyphrases    candidates, features, classifier
bundle        a trained model as a folder; checkpoints of other projects
search        greedy and beam search, constraints, scores
network       layers, attention, KV cache, the networks
records       training examples, TFRecord framing, dataset.json
quality       how far a summary can be trusted, and which text is shown
extractive    terms, scoring methods, selection, oracle labels
tokenization  WordPiece, imported tokenizers, vocabulary learning
rouge         ROUGE scores; bootstrap, their intervals
text          articles: normalization, boilerplate, sentences, words, stems
cache, logits: the cache of a search and operations on logits, below network and search
processes     those that share tasks or searches; own_process, tensorflow_import
backend, config, files, isolation, errors
"""
