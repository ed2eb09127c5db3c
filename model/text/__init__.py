"""Text: cleaned, cut into sentences and words, and kept as an article.

document        a document as its source holds it
article         a document with all that is derived from its text
body_parts      the body of an article cut at its sentences
normalization   the normal form of a text
boilerplate     agency, dateline and byline before a story
page_sentences  sentences about the web page, such as "Scroll down for video"
sentences       sentences with their offsets
words           words
chunks          the words of many texts at once
porter          stems
stop_words      English stop words
"""
