"""Sentences without the clauses that they can do without."""

import pytest

from precis.model.text.clause_cuts import cut_sentence


@pytest.mark.parametrize(
    ("sentence", "cut"),
    [
        (
            "But the mayor left the old town early.",
            "The mayor left the old town early.",
        ),
        (
            "however , the mayor left the old town early .",
            "the mayor left the old town early .",
        ),
        (
            "But on Monday, officials left the town with their files.",
            "Officials left the town with their files.",
        ),
        (
            "The mayor (pictured) has left the old town early.",
            "The mayor has left the old town early.",
        ),
        (
            "the mayor , 61 , left the old town early .",
            "the mayor left the old town early .",
        ),
        (
            "The mayor, who has two sons, left the old town early.",
            "The mayor left the old town early.",
        ),
        (
            "The mayor, a teacher of mathematics, left the old town early.",
            "The mayor left the old town early.",
        ),
        (
            "The mayor -- a teacher of two sons -- has left the old town.",
            "The mayor has left the old town.",
        ),
        (
            "The mayor left the old town, where he was born.",
            "The mayor left the old town.",
        ),
        (
            "but the mayor left the old town on saturday , police said in may .",
            "the mayor left the old town on saturday , police said in may .",
        ),
        (
            "The mayor left the old town with all his files last Saturday.",
            "The mayor left the old town with all his files.",
        ),
    ],
)
def test_what_is_left_is_a_sentence(sentence, cut):
    assert cut in cut_sentence(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "The mayor left the old town.",
        "",
        # A list, and a place: no verb goes on behind the comma.
        "The mayor, a teacher, and an actor left the old town early.",
        "It stands in the town, which is in Ohio, Florida and Maine, today.",
        # The main clause would be left out, or half of a quotation.
        "When the mayor left the old town, a teacher came.",
        '"We left the old town, because nobody had asked us to."',
        "According to the mayor, most of the old town has left.",
        "The mayor said the old town was the best, and his wife.",
        "So if the mayor left the old town nobody would know.",
        "The mayor left, he said.",  # too short
        "The leader of the opposition, who is 61, lives in the old town.",
        "The mayor had shortness of breath, wheezing and an old pain.",
        "Nobody said that the mayor had left the old town.",
        "It is not only the home of the mayor, but the home of his dog.",
        "It was not the mayor of the old town, but Anna.",
        "So far the mayor of the old town has not left.",
        "Yet another mayor has left the old town early.",
        "The old town hall is open from Monday to Friday.",
        "In Syria, Iraq and Iran, mayors have left the old towns.",
        "The mayor has allowed 20 actors, including a teacher, to hold a meeting.",
        "why the mayor left the old town , which is in ohio , is known .",
        "The mayor left the old town late Friday or early Saturday.",
        "On Friday the mayor was in Ohio, and he left the old town on Saturday.",
        "The mayor has left for a game with Sheffield Wednesday.",
        # What limits it or is the news, a list and a main clause.
        "The mayor left the old town, but the town did not care.",
        "The mayor left the old town, although nobody had asked him.",
        "The mayor, who had not been asked, left the old town early.",
        "The mayor lives in the old town with his wife, who was shot in May.",
        "The town has 20 actors on its payroll, including a teacher.",
        "According to a paper, the two men, now 61, were asked to leave.",
        "The mayor (left) and his wife (right) were asked to leave.",
        "It was the mayor, not his old dog, who has left the town.",
        "That was the verdict of the old town, which has seen it all.",
        "There are bandits in the old town, the latest coming Monday.",
        "The mayor (left) of the old town with his two old dogs.",
        # Who claims it.
        "Police said Monday that two people left the old town.",
        "two people left the old town , police told a newspaper .",
        "Two people left the old town, said the police of Ohio.",
        "Two people left the old town, according to a report by the police.",
        "Two people, officials say, left the old town with all its files.",
        "The mayor, who allegedly took the files, left the old town.",
        "Supporters say the town is safe, while others say it is not.",
        "However, experts warned, the mayor left the old town in May.",
    ],
)
def test_a_sentence_that_needs_its_parts_stays_whole(sentence):
    assert cut_sentence(sentence) == []


def test_a_clause_keeps_the_one_that_it_needs():
    sentence = "Last week, when the mayor left the old town, a teacher came."
    assert cut_sentence(sentence) == [
        "When the mayor left the old town, a teacher came."
    ]


def test_parts_are_left_out_together_and_each_text_comes_once():
    sentence = "But the mayor, 61, left the old town in May, police said."
    assert sorted(cut_sentence(sentence)) == [
        "But the mayor left the old town in May, police said.",
        "The mayor left the old town in May, police said.",
        "The mayor, 61, left the old town in May, police said.",
    ]
    # The number of them is bounded, and the time that it takes.
    assert len(cut_sentence("But the mayor left" + ", as it was (so), " * 5_000)) < 50
