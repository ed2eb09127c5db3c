"""Composes a summary from sentences that the writer has rewritten one by one.

For each of the best sentences of a document, the writer gives several rewrites. For a
line of the summary there is a choice: one of the rewrites, the sentence unchanged, the
sentence without some of its clauses (`clause_cuts`), or nothing. The lines chosen
together maximise the expected ROUGE (`extractive.expected`) minus the cost of each
line. They keep the order of the document.

    sentence 2    unchanged, or "Troops seized the bridge.", or ...
    sentence 5    unchanged, or "Nobody was hurt.", or ...
    summary       Troops seized the bridge.
                  Nobody was hurt.

Rules on words check that a line is complete and faithful to its sentence. A small
network often stops within a clause, joins the beginning of one clause to the end of
another, or changes a word. Most of the rules are for English only, see `is_cut`.

    sentence   On Monday, troops seized the old bridge when the mayor left his town.
    faithful   Troops seized the bridge.            `when` begins another clause
    cut        Troops seized the old.               `bridge` is missing
    cut        Bridge when the mayor left.          begins after `old`
    cut        The mayor's old bridge.              no verb
    cut        Troops seized old bridge.            `the` is missing
    joined     Troops left his town.                too many words between the first two
    changed    Rebels seized the old bridge.        no `rebels` in the sentence
    claimed    The bridge was safe.                 of `police said the bridge was safe`
"""

import itertools
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from precis.model.extractive.expected import Option, choose_options
from precis.model.extractive.references import ExpectedReference
from precis.model.inference.line_confidence import CUT_CONFIDENCE, line_confidence
from precis.model.inference.summarizer import LineOrigin, Summary, join_summaries
from precis.model.quality.flags import MIN_TAKEN_CONFIDENCE
from precis.model.rouge import tokenize
from precis.model.text.clause_cuts import cut_sentence, is_half, qualifiers
from precis.model.text.language import ENGLISH, is_english
from precis.model.text.length_limit import (
    NO_LENGTH_LIMIT,
    LengthLimit,
    is_closed,
    line_size,
)
from precis.model.text.normalization import one_line
from precis.model.text.sentence_confidence import has_verb, sentence_confidence
from precis.model.text.sentences import Sentence
from precis.model.text.stop_words import STOP_WORDS
from precis.model.text.words import words as words_of

# Costs are in F1, tuned on 800 held-out training articles.
# Cost of a rewrite, per unit of score below the best rewrite of the sentence.
_SCORE_WEIGHT = 0.2
# Cost of an unchanged sentence if there is another way to write it.
_UNWRITTEN_COST = 0.05
# Gain of a rewrite, times the share of its word pairs that are not in the article.
_NOVELTY_WEIGHT = 0.4
# Cost of a line, times the probability that it is wrong; tuned on 600 other articles.
_DOUBT_COST = 0.1
# Cost of a summary as long as its reference is expected to be.
_LENGTH_COST = 0.05
# The probability that the reference has a written word which the article does not have.
_NOVEL_WORD = 0.3
# A new pair of words has the probability of its less likely word, but at least
# _RARE_WORD, times this factor.
_NOVEL_PAIR = 0.8
_RARE_WORD = 0.05

_SPACED_MARK = re.compile(r" ([.,;:!?](?= |$))")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_MIN_WORDS = 4
# A line that ends in one of these words was cut off.
_OPEN_ENDS = STOP_WORDS - {"it", "them", "him", "her", "me", "us", "you"}
_PUNCTUATION = frozenset('.,;:?!"”“()[]–—…`')
_DETERMINERS = frozenset({"a", "an", "the"})
_ALL_DETERMINERS = _DETERMINERS | {"his", "her", "its", "their"}
# A line may end where the sentence goes on with one of these words,
_NEW_CLAUSES = frozenset(
    "after although amid among and as at because before but by despite during "
    "following for from if in into nor on or over since so though through under "
    "unless until when where which while who whom whose with without".split()
)
# and begin after one of these.
_OPENINGS = frozenset(
    "although and because but if or said say saying says since so that though when "
    "where while yet".split()
)
# A clause that begins with one of these needs a comma and a main clause.
_SUBORDINATE = frozenset(
    "after although as because before if once since though unless until what when "
    "whenever where while who whoever".split()
)
# The most words of a sentence that a line may skip between two of its words.
_MAX_SKIPPED = 5
# Words that a line may have even if its sentence does not.
_FREE = frozenset().union(*map(tokenize, [*STOP_WORDS, "say says said"]))


class RewrittenSentence(NamedTuple):
    """A sentence of a document and its rewrites.

    Attributes:
      sentence: the unchanged sentence.
      ways: the network's rewrites, best first.
    """

    sentence: Sentence
    ways: Sequence[Summary]


class _Line(NamedTuple):
    """A possible line of a summary.

    Attributes:
      sentence: the sentence that the line comes from.
      text: the line.
      words: its words, as ROUGE tokenizes them.
      way: the network's rewrite; None for the sentence itself, whole or cut.
      cost: the F1 that is subtracted for the line.
      confidence: the probability that the line is right.
    """

    sentence: Sentence
    text: str
    words: list[str]
    way: Summary | None
    cost: float
    confidence: float


def compose_summary(
    rewritten: Sequence[RewrittenSentence],
    expected: ExpectedReference,
    *,
    most: int,
    limit: LengthLimit = NO_LENGTH_LIMIT,
    language: str | None = ENGLISH,
) -> list[Summary]:
    """Composes the summary of a document.

    Args:
      rewritten: the sentences to choose from, in document order.
      expected: the expected reference: probabilities for all words and pairs of words
          of the document.
      most: the maximum number of lines.
      limit: the length limit.
      language: the language of the document.

    Returns:
      One summary, or none if no line is within the limit. Its score and mean
      log-probability are the means over the lines that the network wrote.
    """
    lines = [line for each in rewritten for line in _lines(each, expected, language)]
    expected = _expected_of_lines(expected, lines)
    options = [
        Option(
            line.sentence.start,
            expected.number(line.words),
            line_size(line.text),
            line.cost,
        )
        for line in lines
    ]
    places = choose_options(
        options,
        expected,
        most=most,
        limit=limit,
        length_cost=_LENGTH_COST,
    )
    chosen = [lines[place] for place in places]
    if not chosen:
        return []
    text = "\n".join(line.text for line in chosen)
    ways = [line.way for line in chosen if line.way is not None]
    origins = tuple(LineOrigin(*line.sentence[:2], line.confidence) for line in chosen)
    return [join_summaries(text, ways, origins)]


def _lines(
    rewritten: RewrittenSentence, expected: ExpectedReference, language: str | None
) -> list[_Line]:
    """The possible lines for a sentence, the unchanged sentence last.

    Args:
      rewritten: the sentence and its rewrites.
      expected, language: as in `compose_summary`.
    """
    sentence = rewritten.sentence
    source = one_line(sentence.text)  # normalised as the rewrites are
    source_words = tokenize(source, language)
    has_rules = is_english(language)
    telling = sentence_confidence if has_rules else lambda _: 1.0
    source_confidence = telling(source)
    lines = []
    best_score = max((way.score for way in rewritten.ways), default=0.0)
    for way in rewritten.ways:
        text = _spaced_as(source, one_line(way.text))
        words = tokenize(text, language)
        is_allowed = not has_rules or is_cut(text, words, source, source_words)
        if not (way.is_finished and is_allowed and words):
            continue
        cost = _SCORE_WEIGHT * (best_score - way.score)
        if words == source_words:
            lines.append(_Line(sentence, source, words, None, cost, source_confidence))
            continue
        confidence = line_confidence(
            way.min_log_prob, telling(text), words, source_words
        )
        if confidence < MIN_TAKEN_CONFIDENCE:
            continue
        of_pairs = expected.of_pairs(itertools.pairwise(words), math.nan)
        novel = sum(map(math.isnan, of_pairs))
        cost -= _NOVELTY_WEIGHT * novel / max(len(words), 1)
        cost += _DOUBT_COST * (1.0 - confidence)
        lines.append(_Line(sentence, text, words, way, cost, confidence))
    if has_rules:
        for text in cut_sentence(source):
            confidence = min(sentence_confidence(text), source_confidence)
            confidence *= CUT_CONFIDENCE
            if confidence < MIN_TAKEN_CONFIDENCE:
                continue
            cost = _DOUBT_COST * (1.0 - confidence)
            words = tokenize(text, language)
            lines.append(_Line(sentence, text, words, None, cost, confidence))
    cost = _UNWRITTEN_COST if lines else 0.0
    return [
        *lines,
        _Line(sentence, source, source_words, None, cost, source_confidence),
    ]


def _spaced_as(sentence: str, line: str) -> str:
    """The line without spaces before punctuation, unless its sentence has them: a
    network trained on both kinds of text writes either.
    """
    return line if _SPACED_MARK.search(sentence) else _SPACED_MARK.sub(r"\1", line)


def _expected_of_lines(
    expected: ExpectedReference, lines: Sequence[_Line]
) -> ExpectedReference:
    """The expected reference with the words and pairs of the lines; those that the
    document lacks have a low probability.
    """
    written = dict.fromkeys(word for line in lines for word in line.words)
    words = dict(zip(written, expected.of_words(written, _NOVEL_WORD), strict=True))
    grams = (itertools.pairwise(line.words) for line in lines)
    pairs = dict.fromkeys(itertools.chain.from_iterable(grams), 0.0)
    for pair, known in zip(pairs, expected.of_pairs(pairs, math.nan), strict=True):
        rarer = min(max(words[word], _RARE_WORD) for word in pair)
        pairs[pair] = _NOVEL_PAIR * rarer if math.isnan(known) else known
    return ExpectedReference.of(words, pairs, expected.length)


def is_cut(
    line: str,
    words: Sequence[str],
    sentence: str,
    sentence_words: Sequence[str],
    language: str | None = ENGLISH,
) -> bool:
    """Whether a line is a complete shortening of its sentence: `is_complete` and
    `keeps_words` hold, and both have the same qualifying and attributing words. In
    other languages than English, whether it has four words and only leaves out others.

    Args:
      line, sentence: the texts.
      words, sentence_words: their words, as ROUGE tokenizes them in English.
      language: the language of the sentence.
    """
    if not is_english(language):
        # ROUGE may compare single characters.
        words, sentence_words = words_of(line), words_of(sentence)
        is_part = len(words) >= _MIN_WORDS and {*words} <= {*sentence_words}
        return is_part and keeps_words(words, sentence_words)
    return (
        is_complete(line, sentence)
        and keeps_words(words, sentence_words)
        and qualifiers(line) == qualifiers(sentence)
    )


def is_complete(line: str, sentence: str) -> bool:
    """Whether a line has four words, begins and ends at clause boundaries, and loses no
    verb, closing quotation mark or half of a pair such as `not only ... but`.
    """
    written, source = _tokens(line), _tokens(sentence)
    words = [token for token in written if token.isalnum()]
    if len(words) < _MIN_WORDS or words[-1] in _OPEN_ENDS:
        return False
    if words[0] in _SUBORDINATE and "," not in written and "?" not in written:
        return False
    if not has_verb(line) and has_verb(sentence):
        return False
    if is_half(line) and not is_half(sentence):
        return False
    if is_closed(sentence) and not is_closed(line):
        return False
    return _is_allowed(source, words[-1], words[-2], -1) and _is_allowed(
        source, words[0], words[1], 1
    )


def keeps_words(written: Sequence[str], source: Sequence[str]) -> bool:
    """Whether a line has only words of its sentence and function words, and keeps the
    order of the sentence.

    Of two neighbouring words of the line that the sentence has, the second must follow
    the first in the sentence, with at most `_MAX_SKIPPED` words between them. If the
    word before the second is `a`, `an` or `the`, it may be left out only after another
    determiner.

    Args:
      written: the words of the line, as ROUGE tokenizes them.
      source: the words of the sentence.
    """
    known = frozenset(source)
    if not frozenset(written) <= known | _FREE:
        return False
    places: dict[str, list[int]] = {}
    for place, word in enumerate(source):
        places.setdefault(word, []).append(place)

    def may_join(left: int, right: int) -> bool:
        loses_article = right - left > 1 and source[right - 1] in _DETERMINERS
        return 0 < right - left <= 1 + _MAX_SKIPPED and not (
            loses_article and source[left] not in _ALL_DETERMINERS
        )

    return all(
        any(
            itertools.starmap(
                may_join, itertools.product(places[first], places[second])
            )
        )
        for first, second in itertools.pairwise(written)
        if first in places and second in places
    )


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.casefold().replace("’", "'"))


def _is_allowed(source: list[str], word: str, neighbour: str, side: int) -> bool:
    """Whether a line may end (side -1) or begin (side 1) with a word of its sentence.

    Args:
      source: the tokens of the sentence.
      word: the last or first word of the line.
      neighbour: the word next to it in the line; it tells which of several equal words
          of the sentence is meant.
      side: the side of the neighbour: -1 before the word, 1 after it.
    """
    places = [place for place, token in enumerate(source) if token == word]
    near = [
        place
        for place in places
        if 0 <= place + side < len(source) and source[place + side] == neighbour
    ]
    check = _may_end if side < 0 else _may_begin
    return not places or any(check(source, place) for place in near or places)


def _may_end(source: list[str], place: int) -> bool:
    if place + 1 == len(source):
        return True
    token = source[place + 1]
    if token == "'":  # closes a quotation, or opens `'s`
        return place + 2 == len(source) or source[place + 2] != "s"
    return token in _PUNCTUATION or token in _NEW_CLAUSES


def _may_begin(source: list[str], place: int) -> bool:
    if place == 0:
        return True
    token = source[place - 1]
    return token in _PUNCTUATION or token in _OPENINGS
