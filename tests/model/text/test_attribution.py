"""Lines that keep or lose who says what they say, each made for its test."""

import pytest
from support import read_table

from precis.model.quality.measures import compare, measure, read_source
from precis.model.text.article import Article

CLAIMS = read_table("attributions")


AROUND = "Rain fell on the coast of Norway. Trains ran late, and schools stayed open."


def is_flagged(sentence: str, *lines: str) -> bool:
    source = read_source(Article.from_text(f"{sentence} {AROUND}"))
    return "lost_attribution" in measure("\n".join(lines), source).flags


@pytest.mark.parametrize(("sentence", "line"), CLAIMS["lost"])
def test_a_claim_that_lost_who_says_it_has_the_flag(sentence, line):
    assert is_flagged(sentence, line)
    assert not is_flagged(sentence, sentence)


@pytest.mark.parametrize(("sentence", "line"), CLAIMS["kept"])
def test_a_line_that_keeps_it_or_makes_no_claim_has_no_flag(sentence, line):
    assert not is_flagged(sentence, line)


def test_a_line_may_leave_it_to_the_line_before_of_the_same_sentence():
    sentence = "The man shot a guard and fled to Mexico, police said."
    fled, shot = "The man fled to Mexico.", "Police said the man shot a guard."
    assert not is_flagged(sentence, shot, fled)
    assert is_flagged(sentence, fled, shot)
    assert is_flagged(sentence, "Rain fell on the coast of Norway.", fled)


def test_references_and_other_languages_are_not_judged():
    sentence, line = "Police said the man shot a guard.", "The man shot a guard."
    source = read_source(Article.from_text(f"{sentence} {AROUND}"))
    assert "lost_attribution" not in compare(line, source).flags
    german = "Die Polizei said, der Mann habe am Montag in Berlin eine Bank überfallen."
    source = read_source(Article.from_text(german))
    line = "Der Mann habe in Berlin eine Bank überfallen."
    assert "lost_attribution" not in measure(line, source).flags
