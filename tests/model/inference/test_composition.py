"""A summary that is put together from rewritten sentences."""

import itertools
import math

import pytest
from support import read_table

from precis.model.extractive.references import ExpectedReference
from precis.model.inference.composition import (
    RewrittenSentence,
    compose_summary,
    is_complete,
    is_cut,
    keeps_words,
)
from precis.model.inference.line_confidence import CUT_CONFIDENCE, line_confidence
from precis.model.inference.summarizer import Summary
from precis.model.rouge import tokenize
from precis.model.text.length_limit import LengthLimit
from precis.model.text.sentence_confidence import sentence_confidence
from precis.model.text.sentences import Sentence

EXPECTED = ExpectedReference.of(
    {
        **dict.fromkeys(("troop", "seiz", "bridg", "villag"), 0.9),
        **{"nobodi": 0.6, "hurt": 0.6, "dawn": 0.1, "was": 0.3},
    },
    {("troop", "seiz"): 0.8, ("was", "hurt"): 0.8},
    7.0,
)


WHOLE = "Dawn was cold and dark, troops seized the old bridge and two villages."
LINE = "Troops seized the bridge and two villages."


def sentence(start, text):
    return Sentence(start, start + len(text), text)


def way(text, log_prob=-0.5, margin=None, min_log_prob=0.0):
    return Summary(text, 2 * log_prob, log_prob, margin, min_log_prob)


def composed(whole, ways, expected=EXPECTED, **options):
    """The summary of one sentence, from character 7 on, and its ways."""
    rewritten = [RewrittenSentence(sentence(7, whole), ways)]
    (summary,) = compose_summary(rewritten, expected, most=1, **options)
    return summary


def test_each_sentence_gives_at_most_one_line_in_the_order_of_the_document():
    first = sentence(10, WHOLE)
    second = sentence(90, "Nobody was hurt.")
    ways = way(LINE, -0.4, 0.25), way("At dawn troops seized.")
    rewritten = [
        RewrittenSentence(first, list(ways)),
        RewrittenSentence(second, [way("Was it so?", -3.0)]),
    ]
    (summary,) = compose_summary(rewritten, EXPECTED, most=3)
    assert summary.text == f"{LINE}\nNobody was hurt."
    assert [each[:2] for each in summary.origins] == [(10, 80), (90, 106)]
    # The second line stands as it was, so the first alone has a probability.
    assert summary.mean_log_prob == pytest.approx(-0.4)
    assert (summary.score, summary.margin) == pytest.approx((-0.8, 0.25))
    (summary,) = compose_summary(rewritten, EXPECTED, most=1)
    assert [each[:2] for each in summary.origins] == [(10, 80)]


LIMITS = [
    (LengthLimit(words=10), f"{LINE}\nNobody was hurt."),
    (LengthLimit(words=9), LINE),
    (LengthLimit(words=3), "Nobody was hurt."),
    (LengthLimit(chars=59), f"{LINE}\nNobody was hurt."),
    (LengthLimit(chars=58), LINE),
]


@pytest.mark.parametrize(("limit", "text"), LIMITS)
def test_lines_are_chosen_within_a_limit(limit, text):
    first = sentence(10, WHOLE)
    rewritten = [
        RewrittenSentence(first, [way(LINE, -0.4)]),
        RewrittenSentence(sentence(90, "Nobody was hurt."), []),
    ]
    (summary,) = compose_summary(rewritten, EXPECTED, most=3, limit=limit)
    assert summary.text == text
    assert len(summary.origins) == len(text.split("\n"))
    assert (
        compose_summary(rewritten, EXPECTED, most=3, limit=LengthLimit(words=2)) == []
    )


def test_a_line_is_less_likely_right_the_more_speaks_against_it():
    text = "The fraternity says it would expel the three students."
    sentence, line = tokenize(text.replace("says", "said")), tokenize(text)
    telling = sentence_confidence(text)
    # By hand: `says` stands beside two words, and the line ends as the sentence does.
    logit = 2.96 - 0.55 - 2 * 0.45 + 2.31 * telling - 0.43 - 0.98 * math.log(9)
    found = line_confidence(-1.0, telling, line, sentence)
    assert found == pytest.approx(1 / (1 + math.exp(-logit)))
    # Before its end, with a relative clause.
    logit = 2.96 - 0.55 - 0.45 + 2.31 * 0.5 - 0.54
    found = line_confidence(-1.0, 0.5, [*sentence[:2], "that"], sentence)
    assert found == pytest.approx(1 / (1 + math.exp(0.98 * math.log(9) - logit)))
    confidences = [
        line_confidence(-0.1, telling, sentence[:-1], sentence),
        line_confidence(-1.0, telling, sentence[:-1], sentence),
        line_confidence(-1.0, telling, sentence[:-1][::-1], sentence),
        line_confidence(-9.0, telling, sentence[:-1][::-1], sentence),
    ]
    assert confidences == sorted(confidences, reverse=True)
    assert line_confidence(-1e9, telling, line, sentence) == pytest.approx(0.0)
    assert 0.95 > confidences[0] > 0.85 > 0.05 > confidences[-1] > 0


def test_lines_that_are_likely_to_be_wrong_are_not_taken():
    whole = "Dawn was cold and dark, troops have seized the bridge and two villages."
    best = "Troops have seized the bridge and two villages."
    other = "Dawn was cold and dark."
    found = []
    for of_best, of_other in ((-0.1, -1.0), (-0.9, -9.0), (-2.0, -2.0)):
        ways = [way(best, min_log_prob=of_best), way(other, min_log_prob=of_other)]
        summary = composed(whole, ways)
        found.append((summary.text, summary.origins[0].confidence))
    (text, sure), (same, unsure), likely_wrong = found
    assert text == same == best and sure > unsure >= 0.78
    assert likely_wrong == (whole, sentence_confidence(whole))


def test_what_the_network_leaves_as_it_was_is_the_sentence_itself():
    whole = "Troops seized the old bridge."
    summary = composed(whole, [way(whole.replace(".", " ."))])
    assert summary.text == whole
    assert summary.origins[0].confidence == sentence_confidence(whole)


SPACES = read_table("composition")["spaces"]


@pytest.mark.parametrize(("whole", "written", "text"), SPACES)
def test_a_line_has_the_spaces_of_its_sentence(whole, written, text):
    assert composed(whole, [way(written)], language="de").text == text


INCOMPLETE = read_table("composition")["incomplete"]


@pytest.mark.parametrize(("article", "ways", "expected"), INCOMPLETE)
def test_only_a_line_that_is_complete_is_chosen(article, ways, expected):
    assert composed(article, list(map(way, ways))).text == expected
    assert compose_summary([], EXPECTED, most=3) == []


def test_a_sentence_may_lose_its_clauses():
    whole = "Troops, who came at dawn, have seized the old bridge and two villages."
    summary = composed(whole, [])
    assert summary.text == "Troops have seized the old bridge and two villages."
    confidence = CUT_CONFIDENCE * sentence_confidence(summary.text)
    assert summary.origins == ((7, 7 + len(whole), confidence),)
    assert composed(whole, [], language="de").text == whole


def test_rules_for_english_apply_to_no_other_language():
    whole = "Dawn was cold, troops have seized the bridge at Mor."
    ways = [way(" "), way("Troops have seized the bridge at Mor ganz.")]
    assert composed(whole, ways, language="en").text == whole
    summary = composed(whole, ways, language="de")
    assert summary.text == ways[1].text
    assert summary.origins[0].confidence == pytest.approx(0.93, abs=0.01)


def test_of_equally_likely_lines_the_one_with_new_pairs_is_chosen():
    whole = "Troops came to the old bridge at dawn on Monday in the last week."
    came, words = "Troops came to the old bridge", tokenize(whole)
    weights = {**dict.fromkeys(words, 0.01), "dawn": 0.5, "monday": 0.5}
    pairs = dict.fromkeys(itertools.pairwise(words), 0.01)
    expected = ExpectedReference.of(weights, pairs, 5.0)
    ways = [way(f"{came} on Monday."), way(f"{came} at dawn.")]
    # A much better score outweighs it.
    others = [ways[1], ways[0]._replace(score=-6.0)]
    for given, chosen in ((ways, "on Monday."), (others, "at dawn.")):
        assert composed(whole, given, expected).text == f"{came} {chosen}"


# Which lines are faithful to the sentence that they were written of.
SENTENCE = (
    "On Monday, government troops seized the old bridge when the mayor, who was "
    "asleep, left his town, police said."
)


@pytest.mark.parametrize(("line", "expected"), read_table("composition")["lines"])
def test_a_line_is_complete_where_a_clause_ends(line, expected):
    assert is_complete(line, SENTENCE) is expected


def test_a_possessive_is_not_the_end_of_a_line():
    sentence = "The team's leader won the race leader's jersey."
    assert is_complete("The team 's leader won the jersey.", sentence)
    assert not is_complete("The leader won the race leader.", sentence)


def test_a_line_keeps_its_first_article_and_both_halves_of_a_pair():
    sentence = "The old team lost not only the race, but its leader too."
    assert is_complete("The team lost the race.", sentence)
    assert not is_complete("Old team lost the race.", sentence)
    assert not is_complete("The old team lost not only the race.", sentence)
    sentence = 'The mayor said "we have left the town, for good" on Monday.'
    assert is_complete('The mayor said "we have left the town" on Monday.', sentence)
    assert not is_complete('The mayor said "we have left the town.', sentence)


OTHER_WORDS = [
    ("Government troops seized the old bridge.", SENTENCE, True),
    (SENTENCE, SENTENCE, True),
    ("Rebels seized the old bridge.", SENTENCE, False),
    ("The old bridge seized government troops.", SENTENCE, False),
    ("Government troops left his town.", SENTENCE, False),
    ("Troops seized old bridge.", SENTENCE, False),  # its article is lost
    ("The mayor left town.", "The mayor left his old town.", True),
]


@pytest.mark.parametrize(("line", "sentence", "expected"), OTHER_WORDS)
def test_other_words_and_another_order_are_refused(line, sentence, expected):
    assert keeps_words(tokenize(line), tokenize(sentence)) is expected


CUTS = read_table("composition")["cuts"]


@pytest.mark.parametrize(("language", "line", "sentence", "expected"), CUTS)
def test_a_cut_in_another_language_only_leaves_out_words(
    language, line, sentence, expected
):
    words = tokenize(line, language), tokenize(sentence, language)
    assert is_cut(line, words[0], sentence, words[1], language) is expected


@pytest.mark.parametrize(("end", "expected"), read_table("composition")["ends"])
def test_a_line_keeps_what_attributes_limits_or_is_news(end, expected):
    line, sentence = "Troops left the town.", f"But troops left the town{end}"
    assert is_cut(line, tokenize(line), sentence, tokenize(sentence)) is expected
    # And adds nothing of that kind.
    said = "Troops left the town, they said."
    expected = end in (", police said.", ", allegedly.", ", a court heard.")
    assert is_cut(said, tokenize(said), sentence, tokenize(sentence)) is expected
