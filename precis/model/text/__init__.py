"""Text: cleaning, sentences, words, and the article that holds them.

document       a document as read from a corpus
article        a document with the values derived from its text
normalization  the normal form of a text
language       the language of a text
boilerplate    the dateline before a story, and sentences about the web page
wrapping       lines of wrapped paragraphs
sentences      sentences with their offsets
sentence_ends  the ends of sentences in languages other than English
clause_cuts    sentences shortened by leaving out clauses
answer         the summary in the output of a language model
words          words of a text, and of many texts at once
chunks         chunks of many texts between spaces, numbered
porter         English stems
stems          stems of other languages
stop_words     stop words of languages
"""
