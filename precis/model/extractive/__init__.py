"""Extractive summaries: sentences of the article, unchanged except in headlines.

terms       the content words of a document, as numbers and sparse counts
methods     all methods by name: sentences -> one score per sentence; baselines, and
            scores from word frequencies or topics
graph       scores from the graph of similar sentences
features    the input features of the selector
kinds       the kinds of text that a selector of English news may choose from
selection   scores -> the sentences of the summary
headlines   a sentence shortened to one line
ngrams      the words and pairs of words of a document, numbered
importance  the probability that the reference has a word or pair
references  the reference of a document as the selector expects it
expected    the summary with the highest expected ROUGE
groups      the summary of several documents
alignment   the sentence that supports a line of the reference
oracle      the sentences that match the reference best
config      the configuration of the selection
threads     linear algebra in a single thread
"""
