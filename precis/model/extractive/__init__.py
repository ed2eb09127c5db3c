"""Extractive summaries: sentences of the article, unchanged but for headlines.

terms       the content words of a document, as numbers and sparse counts
methods     every method by name: sentences -> one score per sentence; those that score
            by the frequencies of words or by topics
graph       scores from the graph of similar sentences
features    the input features of selector
selection   scores -> the sentences of the summary
headlines   a sentence shortened to one line
ngrams      the words and pairs of words of a document, numbered
importance  how likely each of them stands in the reference
expected    the summary with the highest expected ROUGE
groups      the summary of several documents
alignment   which sentence says what a line of the reference says
oracle      the sentences that come closest to a reference summary
config      the configuration of the selection
threads     linear algebra in a single thread
"""
