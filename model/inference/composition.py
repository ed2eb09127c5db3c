"""A summary from sentences that were written one by one.

Each of the best sentences of a document was rewritten, with several results. The
summary takes at most one of them for each sentence, or the sentence as it stands: those
that together have the highest expected ROUGE (`extractive.expected`), less what speaks
against each line. They come in the order of the document.

    sentence 2    it as it stands, or "Troops seized the bridge.", or ...
    sentence 5    it as it stands, or "Nobody was hurt.", or ...
    summary       Troops seized the bridge.
                  Nobody was hurt.
"""

import itertools
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from precis.model.extractive.expected import (
    ExpectedReference,
    Option,
    choose_options,
)
from precis.model.extractive.ngrams import Gram
from precis.model.inference.line_checks import is_complete, keeps_words
from precis.model.inference.summarizer import Summary, join_summaries
from precis.model.rouge import tokenize
from precis.model.text.normalization import one_line
from precis.model.text.sentences import Sentence

# Chosen on 800 training articles that no network had read. A line is worth less, in
# F1, by this share of what its score is below that of the best way to write it,
_SCORE_WEIGHT = 0.2
# or by this where it stands as in the article: it can nearly always be said shorter.
_UNWRITTEN_COST = 0.1
# It is worth more by this share of its pairs of words that the article does not have.
_NOVELTY_WEIGHT = 0.4
# What a summary costs that is as long as its reference is expected to be.
_LENGTH_COST = 0.05
# The probability of a written word that the article does not have to stand in the
# reference; and the factor of the less likely word of a pair for a pair of that kind.
_NOVEL_WORD = 0.3
_NOVEL_PAIR = 0.8
_RARE_WORD = 0.05


class RewrittenSentence(NamedTuple):
    """A sentence of a document and the ways to write it.

    Attributes:
      sentence: as it stands.
      ways: what the network wrote of it, best first.
    """

    sentence: Sentence
    ways: Sequence[Summary]


class _Line(NamedTuple):
    """A line that a summary may have.

    Attributes:
      sentence: that it is written of.
      text: the line.
      words: as ROUGE reads them.
      way: what the network wrote; None for the sentence as it stands.
      cost: what speaks against it.
    """

    sentence: Sentence
    text: str
    words: list[str]
    way: Summary | None
    cost: float


def compose_summary(
    rewritten: Sequence[RewrittenSentence],
    expected: ExpectedReference,
    *,
    most: int,
) -> list[Summary]:
    """Composes the summary of a document.

    Args:
      rewritten: the sentences that it may speak of, in document order.
      expected: what is expected of its reference: its words and pairs are all those of
          the document.
      most: lines that it has at most.

    Returns:
      One summary, or none without a sentence. Its score and its mean log-probability
      are the means over the lines that the network wrote.
    """
    lines = [line for each in rewritten for line in _lines(each, expected.pairs)]
    options = [
        Option(line.sentence.start, line.words, cost=line.cost) for line in lines
    ]
    with_novel = _with_novel(expected, lines)
    places = choose_options(options, with_novel, most=most, length_cost=_LENGTH_COST)
    chosen = [lines[place] for place in places]
    if not chosen:
        return []
    text = "\n".join(line.text for line in chosen)
    ways = [line.way for line in chosen if line.way is not None]
    support = tuple((line.sentence.start, line.sentence.end) for line in chosen)
    return [join_summaries(text, ways, support)]


def _lines(rewritten: RewrittenSentence, pairs: Collection[Gram]) -> list[_Line]:
    """The lines that may stand for a sentence, itself last.

    Args:
      rewritten: the sentence.
      pairs: of words, all those of the document.
    """
    sentence = rewritten.sentence
    source = one_line(sentence.text)  # in the normal form of what is written of it
    source_words = tokenize(source)
    lines = []
    best_score = max((way.score for way in rewritten.ways), default=0.0)
    for way in rewritten.ways:
        text = one_line(way.text)
        words = tokenize(text)
        if not (
            way.is_finished
            and is_complete(text, source)
            and keeps_words(words, source_words)
        ):
            continue
        novel = sum(pair not in pairs for pair in itertools.pairwise(words))
        cost = _SCORE_WEIGHT * (best_score - way.score)
        cost -= _NOVELTY_WEIGHT * novel / max(len(words), 1)
        lines.append(_Line(sentence, text, words, way, cost))
    unwritten_cost = _UNWRITTEN_COST if lines else 0.0
    return [*lines, _Line(sentence, source, source_words, None, unwritten_cost)]


def _with_novel(
    expected: ExpectedReference, lines: Iterable[_Line]
) -> ExpectedReference:
    """What is expected of a reference, with the words and pairs that were written and
    that the document does not have.
    """
    words, pairs = dict(expected.words), dict(expected.pairs)
    for line in lines:
        for word in line.words:
            words.setdefault(word, _NOVEL_WORD)
        for pair in itertools.pairwise(line.words):
            if pair not in expected.pairs:
                rarer = min(max(words[word], _RARE_WORD) for word in pair)
                pairs[pair] = _NOVEL_PAIR * rarer
    return expected._replace(words=words, pairs=pairs)
