"""The texts that a network can learn to write, all of them made from the reference.

highlights    Rain fell.⏎Nobody came.     the whole reference
headline      Rain fell.                  its first line
keyphrases    rain; nobody                the phrases of the article that it names
sentences     Rain fell.                  each line, of the sentence that supports it
              Nobody came.
"""

from collections.abc import Callable, Mapping

from precis.model.keyphrases.references import reference_phrases
from precis.model.records.dataset import SENTENCE_PAIRS
from precis.model.text.article import Article

PHRASE_SEPARATOR = "; "


def _highlights(article: Article, highlights: str) -> str:
    return highlights


def _headline(article: Article, highlights: str) -> str:
    return highlights.partition("\n")[0]


def _keyphrases(article: Article, highlights: str) -> str:
    return PHRASE_SEPARATOR.join(
        reference_phrases(article.sentence_lines, highlights).values()
    )


# By name: a function of the article and its normalised reference, one sentence a line.
# Of `SENTENCE_PAIRS` a document has several.
TARGETS: Mapping[str, Callable[[Article, str], str]] = {
    "highlights": _highlights,
    "headline": _headline,
    "keyphrases": _keyphrases,
}
TARGET_NAMES = (*TARGETS, SENTENCE_PAIRS)
