"""Makes the sources and targets on which a network is trained, from an article.

Every target is made from the reference:

    highlights    Rain fell.⏎Nobody came.     the whole reference
    headline      Rain fell.                  its first line
    keyphrases    rain; nobody                the article's phrases that it contains
    sentences     Rain fell.                  each line; the source is the sentence that
                  Nobody came.                supports it
    cuts          Rain fell.                  complete lines that only leave out
                                              words of their sentence
"""

import re
from typing import NamedTuple

from precis.model.config import SENTENCE_PAIRS
from precis.model.extractive.alignment import align_lines
from precis.model.inference.composition import is_cut
from precis.model.keyphrases.references import reference_phrases
from precis.model.rouge import ROUGE_SCORE, reads, tokenize, variant_of
from precis.model.text.article import Article
from precis.model.text.normalization import normalise, one_line
from precis.pipelines.prepare.options import PrepareOptions

# CNN's label of later additions to a summary; no sentence shows what is new.
_UPDATE_LABEL = re.compile(r"^new ?: *", re.IGNORECASE | re.MULTILINE)
# Lines of the reference are left out if a smaller share of their words, without stop
# words, is in their sentence.
_MIN_SHARE = 0.6


class TrainingPair(NamedTuple):
    """The texts of a training example.

    Attributes:
      source: the text that the network reads, after the task prefix.
      target: the normalised text that it learns to write.
    """

    source: str
    target: str


def read_pairs(article: Article, options: PrepareOptions) -> list[TrainingPair] | str:
    """The training pairs of an article, or the reason why it has none."""
    highlights = normalise(article.document.highlights or "")
    if not highlights:
        return "without_highlights"
    # Otherwise oracle labels would depend on numbers and foreign names. Latin
    # highlights can be read in every language, which takes longer to detect.
    if options.oracle_sentences and not (
        variant_of(None, highlights) == ROUGE_SCORE
        or reads(highlights, article.language)
    ):
        return "without_readable_highlights"
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
    """Each line of the reference that a sentence supports, with that sentence.

    Lines longer than their sentence would teach the network to add content.
    """
    sentences = [one_line(sentence) for sentence in article.sentence_lines]
    if not sentences:
        return []
    pairs = []
    language = article.language
    reference = _UPDATE_LABEL.sub("", highlights)
    for aligned in align_lines(sentences, reference, language):
        line, sentence = aligned.line, sentences[aligned.place]
        is_said = aligned.share >= _MIN_SHARE and len(line) <= len(sentence)
        if is_said and options.target == "cuts":
            words, of_sentence = tokenize(line, language), tokenize(sentence, language)
            is_said = is_cut(line, words, sentence, of_sentence, language)
        if is_said:
            pairs.append(TrainingPair(options.task_prefix + sentence, line))
    return pairs
