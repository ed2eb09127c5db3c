"""Text: cleaned, cut into sentences and words, and kept as an article.

document       a document as its source holds it
article        a document with all that is derived from its text
normalization  the normal form of a text
language       the language of a text
boilerplate    the dateline before a story, and sentences about the web page
wrapping       lines of wrapped paragraphs
sentences      sentences with their offsets
clause_cuts    sentences without the clauses that they can do without
answer         the summary in what a language model wrote
words          words of a text, and of many texts at once
porter         stems
stop_words     English stop words
"""
