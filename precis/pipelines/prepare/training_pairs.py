"""The sources and the targets that a network is trained on, of an article.

Every target is made from the reference:

    highlights    Rain fell.⏎Nobody came.     the whole reference
    headline      Rain fell.                  its first line
    keyphrases    rain; nobody                the phrases of the article that it names
    sentences     Rain fell.                  each line, of the sentence that supports
                  Nobody came.                it
    cuts          Rain fell.                  those that are complete and only leave out
                                              words of their sentence
"""

import re
from typing import NamedTuple

from precis.model.extractive.alignment import align_lines
from precis.model.inference.composition import is_cut
from precis.model.keyphrases.references import reference_phrases
from precis.model.records.dataset import SENTENCE_PAIRS
from precis.model.rouge import reads, tokenize
from precis.model.text.article import Article
from precis.model.text.normalization import normalise, one_line
from precis.pipelines.prepare.options import PrepareOptions

# CNN marks so what it added to a summary later. No sentence tells what is new.
_UPDATE_LABEL = re.compile(r"^new ?: *", re.IGNORECASE | re.MULTILINE)
# Lines of the highlights are left out if their sentence has a smaller share of their
# words, without stop words.
_MIN_SHARE = 0.6


class TrainingPair(NamedTuple):
    """The texts of a training example.

    Attributes:
      source: the text that the network reads, behind the task prefix.
      target: the text that it learns to write, normalised.
    """

    source: str
    target: str


def read_pairs(article: Article, options: PrepareOptions) -> list[TrainingPair] | str:
    """The texts of an article, or why it has none to learn from."""
    highlights = normalise(article.document.highlights or "")
    if not highlights:
        return "without_highlights"
    # Oracle labels would follow from numbers and foreign names.
    if options.oracle_sentences and not reads(highlights):
        return "without_latin_highlights"
    if options.target in SENTENCE_PAIRS:
        pairs = _sentence_pairs(article, highlights, options)
        return pairs or "without_supported_sentences"
    target = highlights
    if options.target == "headline":
        target = highlights.partition("\n")[0]
    elif options.target == "keyphrases":
        phrases = reference_phrases(article.sentence_lines, highlights)
        target = "; ".join(phrases.values())
    if not target:
        return f"without_{options.target}"
    return [TrainingPair(options.task_prefix + article.body, target)]


def _sentence_pairs(
    article: Article, highlights: str, options: PrepareOptions
) -> list[TrainingPair]:
    """Each line of the highlights that a sentence supports, and that sentence.

    A line that is longer than its sentence would teach to add to it.
    """
    sentences = [one_line(sentence) for sentence in article.sentence_lines]
    if not sentences:
        return []
    pairs = []
    for aligned in align_lines(sentences, _UPDATE_LABEL.sub("", highlights)):
        line, sentence = aligned.line, sentences[aligned.place]
        is_said = aligned.share >= _MIN_SHARE and len(line) <= len(sentence)
        if is_said and options.target == "cuts":
            is_said = is_cut(line, tokenize(line), sentence, tokenize(sentence))
        if is_said:
            pairs.append(TrainingPair(options.task_prefix + sentence, line))
    return pairs
