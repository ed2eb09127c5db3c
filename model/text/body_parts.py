"""The body of an article cut at the borders of its sentences, without losing anything.

article.body   "Rain fell. It was cold. Nobody came. --"
body_parts     "Rain fell."  " It was cold."  " Nobody came. --"
"""

import itertools

from precis.model.text.article import Article
from precis.model.text.normalization import one_line


def body_parts(article: Article) -> list[str]:
    """The parts of `article.body`, which joined are the body.

    A part is a sentence with the space before it, and with the marks without words
    behind it. Sentences are offsets into the text as it was read. Where normalising a
    part gives other text than the body has there, because characters of two sentences
    compose, the rest of the body is one part.
    """
    text = article.document.article
    body = article.body
    starts = [sentence.start for sentence in article.sentences]
    bounds = [article.story_start, *starts[1:], len(text)]
    parts = []
    begin = 0
    for start, end in itertools.pairwise(bounds):
        line = one_line(text[start:end])
        place = begin + body.startswith(" ", begin)
        if not line:
            continue
        if not body.startswith(line, place):
            break
        parts.append(body[begin : place + len(line)])
        begin = place + len(line)
    if begin < len(body):
        parts.append(body[begin:])
    return parts
