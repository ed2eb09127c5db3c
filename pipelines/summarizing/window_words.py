"""The words of the articles of a window, read together.

The words of one article cost 0.3 ms, those of 256 articles 0.1 ms each.
"""

from collections.abc import Sequence

from precis.model.extractive.config import BASELINES
from precis.model.extractive.terms import keep_terms
from precis.model.isolation import Failure, isolate
from precis.model.text.article import Article
from precis.model.text.chunks import join_words, split_chunks
from precis.pipelines.summarizing.extractive_summaries import EXTRACT


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
    needs_terms = not set(methods).issubset(BASELINES)

    def read(group: Sequence[Article]) -> list[None]:
        pieces = [article.pieces for article in group]
        sentences = [piece for of_article in pieces for piece in of_article[:-1]]
        chunks = split_chunks([*sentences, *(heads[-1] for heads in pieces)])
        if needs_terms:
            keep_terms(
                [[sentence.text for sentence in each.sentences] for each in group],
                chunks,
            )
        words = join_words(chunks)
        heads = iter(words[len(sentences) :])
        start = 0
        for article in group:
            end = start + len(article.sentences)
            article.keep_words([*words[start:end], next(heads)])
            start = end
        return [None] * len(group)

    return isolate(articles, read, stage=EXTRACT)
