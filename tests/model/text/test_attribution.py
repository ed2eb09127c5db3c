"""Lines that keep or lose who says what they say, each made for its test."""

import pytest

from precis.model.quality.measures import compare, measure, read_source
from precis.model.text.article import Article

AROUND = "Rain fell on the coast of Norway. Trains ran late, and schools stayed open."


def is_flagged(sentence: str, *lines: str) -> bool:
    source = read_source(Article.from_text(f"{sentence} {AROUND}"))
    return "lost_attribution" in measure("\n".join(lines), source).flags


@pytest.mark.parametrize(
    ("sentence", "line"),
    [
        # Who says it stands behind the claim, before, or within it.
        ("The man, 35, shot a guard, police said on Monday.", "The man shot a guard."),
        ("two people died , officials told a newspaper .", "two people died ."),
        ("The bridge fell, said the mayor, John Smith.", "The bridge fell."),
        ("The mayor stole the money, her rivals claim.", "The mayor stole the money."),
        ("The bridge had cracks, according to a report.", "The bridge had cracks."),
        ("according to officials , the bridge fell .", "the bridge fell ."),
        ("The bridge, officials said, fell at dawn.", "The bridge fell at dawn."),
        ("The mayor -- rivals say -- stole the money.", "The mayor stole the money."),
        ("Police said Friday that two men robbed a bank.", "Two men robbed a bank."),
        ("The mayor said he will leave the town.", "The mayor will leave the town."),
        ("The mayor, a teacher, said the town was poor.", "The town was poor."),
        ("The bank warned it would cut 500 jobs.", "The bank would cut 500 jobs."),
        ("Critics believe the law harms farmers.", "The law harms farmers."),
        ("He fled after men told police that he shot a guard.", "He shot a guard."),
        ("The man, who police say shot a guard, left Oslo.", "The man shot a guard."),
        ("He left Oslo, saying he had lost his money.", "He had lost his money."),
        ("Some say the tax is fair, while others say it is not.", "The tax is fair."),
        ('"We will win the cup," the coach said.', '"We will win the cup."'),
        ("` we will win the cup , ' he told a paper .", "we will win the cup ."),
        ("Police allege Lee robbed a bank in Oslo.", "Lee robbed a bank in Oslo."),
        ("Police suspect Lee robbed a bank.", "Lee robbed a bank."),
        ("The bank claims Oslo owes it a fee.", "Oslo owes the bank a fee."),
        ("Police accused Lee of robbing a bank.", "Lee robbed a bank."),
        ("Lee robbed a bank, a court heard on Monday.", "Lee robbed a bank."),
        ("Lee wrote on a blog that Oslo owes him a fee.", "Oslo owes Lee a fee."),
        # It is alleged.
        ("He allegedly stole two cars in May.", "He stole two cars in May."),
        ("Anna Berg is accused of stealing cars.", "Anna Berg was stealing cars."),
        ("He is believed to have fled to Mexico.", "He has fled to Mexico."),
        ("The alleged shooter was held on Monday.", "The shooter was held on Monday."),
        # An adjective does not attribute what police said.
        (
            "The reported theft was a joke, police said.",
            "The reported theft was a joke.",
        ),
    ],
)
def test_a_claim_that_lost_who_says_it_has_the_flag(sentence, line):
    assert is_flagged(sentence, line)
    assert not is_flagged(sentence, sentence)


@pytest.mark.parametrize(
    ("sentence", "line"),
    [
        ("The man shot a guard, police said.", "Police say the man shot a guard."),
        ("The man shot a guard, police said.", "The man allegedly shot a guard."),
        ("Two men robbed a bank, police said.", "Police: Two men robbed a bank."),
        # What is left is not within the claim.
        ("The man, who said he was ill, shot a guard.", "The man shot a guard."),
        ("He left Oslo, saying he had lost his money.", "He left Oslo."),
        ("The alleged killer, John Smith, was held in Oslo.", "John Smith was held."),
        ("Smith was held, but his lawyer said he was ill.", "Smith was held."),
        (
            "He was accused of theft and spent a year in Oslo.",
            "He spent a year in Oslo.",
        ),
        ("The alleged thief lost his hat in Oslo.", "The alleged thief lost his hat."),
        ("He said he was ill, and two schools burned.", "Two schools burned."),
        # Verbs that claim nothing here.
        ("The team added two players from Oslo.", "Two players from Oslo joined it."),
        ("The judge told the jury to retire.", "The jury had to retire."),
        ("It is safe to say the mayor will win.", "The mayor will win."),
        ("The mayor said goodbye to Oslo and left home.", "The mayor left Oslo."),
        ("Lee admitted he had robbed a bank.", "Lee robbed a bank."),
        ("The man believed to be the oldest here died in May.", "The man died in May."),
        (
            "The flood claimed two lives and left Oslo dark.",
            "The flood left Oslo dark.",
        ),
        ("Lee, 30, claimed a two-shot lead in Oslo.", "Lee has the lead in Oslo."),
        ("The murder suspect left Oslo in a car.", "The man left Oslo in a car."),
        # Another sentence says so itself, or it is hardly of this one.
        ("Police said rain fell on the coast of Norway.", "Rain fell on the coast."),
        ("Police said a man shot a guard.", "A guard found three foxes and a man."),
    ],
)
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
