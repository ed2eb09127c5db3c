"""Everything that needs no Beam, in layers; a layer imports only from layers below it.

training      batches, loss, schedule, optimizer, strategy, checkpoints, loop
inference     batches, search processes, writers, selector, claim checker
keyphrases    candidates, features, classifier
bundle        a trained model as a folder; checkpoints of other projects
search        greedy and beam search, constraints, scores
network       layers, attention, KV cache, the networks
records       training examples, TFRecord framing, dataset.json
quality       warnings about summaries: facts without support, quality flags
extractive    terms, scoring methods, selection, oracle labels
tokenization  WordPiece, imported tokenizers, vocabulary learning
rouge         ROUGE scores; bootstrap: their confidence intervals
text          articles: normalization, boilerplate, sentences, words, stems
cache, logits: the cache of a search and operations on logits, for network and search
processes     processes that share tasks or searches; own_process, tensorflow_import
backend, config, files, isolation, errors
"""
