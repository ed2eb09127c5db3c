"""Keyphrases of a document.

candidates   the word sequences of a document that may be keyphrases
features     the features of each candidate
classifier   the trained model and its bundle: a probability for each candidate
ranking      the best candidates, and the baseline by frequency
references   the keyphrases that a reference summary names, and the F1 of others
training     the training of the classifier
"""
