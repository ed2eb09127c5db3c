"""Keyphrases of a document.

candidates   the word sequences of a document that may be keyphrases, and their ranking
features     the features of each candidate
classifier   the trained model and its bundle: a probability for each candidate
references   the keyphrases that a reference names, and the F1 of predicted keyphrases
training     the training of the classifier
"""
