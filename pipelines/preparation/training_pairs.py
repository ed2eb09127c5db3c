"""From an article to the two texts of a training example, or the reason for none."""

from typing import NamedTuple

from precis.model.text.article import Article
from precis.model.text.normalization import normalise
from precis.pipelines.options.prepare import PrepareOptions
from precis.pipelines.options.targets import TARGETS


class TrainingPair(NamedTuple):
    """The texts of a training example.

    Attributes:
      source: the text that the network reads, behind the task prefix.
      target: the text that it learns to write, normalised.
    """

    source: str
    target: str


class Skipped(NamedTuple):
    """Why a document is no training example, as in `without_highlights`."""

    reason: str


def read_pair(article: Article, options: PrepareOptions) -> TrainingPair | Skipped:
    """The texts of an article, or the reason it has none to learn from."""
    highlights = normalise(article.document.highlights or "")
    if not highlights:
        return Skipped("without_highlights")
    target = TARGETS[options.target](article, highlights)
    if not target:
        return Skipped(f"without_{options.target}")
    return TrainingPair(options.task_prefix + article.body, target)
