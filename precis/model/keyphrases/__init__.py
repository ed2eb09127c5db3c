"""Keyphrases of a document.

candidates   the word sequences of a document that may be keyphrases, and the best ones
features     the features of each candidate
classifier   the trained model and its bundle: a probability for each candidate
references   the keyphrases that a reference summary names, and the F1 of others
training     the training of the classifier
"""
