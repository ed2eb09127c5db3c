"""The words of the articles of a window, read together, which takes a third of the time
of reading those of each.
"""

import itertools
from collections.abc import Sequence

from precis.model.extractive.config import BASELINES
from precis.model.extractive.terms import keep_terms
from precis.model.isolation import Failure, isolate
from precis.model.text.article import Article
from precis.model.text.chunks import join_words, split_chunks
from precis.pipelines.summarize.extractive_summaries import EXTRACT, NEURAL


def read_words(
    articles: Sequence[Article], methods: Sequence[str]
) -> list[Failure | None]:
    """Reads what the methods and the measures need of the words of articles.

    Args:
      articles: at most READ_TOGETHER documents.
      methods: names of the extractive methods.

    Returns:
      For each article None, or why its words cannot be read.
    """
    needs_terms = not set(methods).issubset({*BASELINES, NEURAL})

    def read(group: Sequence[Article]) -> list[None]:
        pieces = [article.pieces for article in group]
        sentences = [text for article_pieces in pieces for text in article_pieces[:-1]]
        heads = [article_pieces[-1] for article_pieces in pieces]
        chunks = split_chunks(sentences + heads)
        if needs_terms:
            keep_terms(
                [
                    [sentence.text for sentence in article.sentences]
                    for article in group
                ],
                chunks,
            )
        words = join_words(chunks)
        sentence_words = iter(words)
        head_words = words[len(sentences) :]
        for article, head in zip(group, head_words, strict=True):
            body = itertools.islice(sentence_words, len(article.sentences))
            article.keep_words([*body, head])
        return [None] * len(group)

    return isolate(articles, read, stage=EXTRACT)
