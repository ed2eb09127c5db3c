"""Which texts the built-in selector chooses from."""

import pytest

from precis.model.extractive.kinds import is_news_like

NEWS = [
    "The river rose by two metres on Monday.",
    "“We were lucky,” said the mayor: nobody was hurt.",
    "The bridge is closed !",
    "It will open again in May . ''",
]


def test_prose_of_sentences_is_news_like():
    assert is_news_like(NEWS)
    said = ["Judge Lee said: “No.”", "He added: “Never.”", "Police told CNN: no."]
    assert is_news_like([*NEWS, *said])
    # A few headings, items and speakers do not make another kind of it.
    assert is_news_like([*NEWS, *NEWS, "Mayor: I am glad.", "- Sandbags.", "In short"])


OTHER_KINDS = [
    [],
    NEWS[:3],
    ["Anna: Are you there?", "Yes.", "Tom B.: I am.", "#Person1#: Good."],
    ["Sam : Hi.", "Where are you?", "Home.", "I see.", "Sam : Hi.", "Sam : Hm."],
    ["Take:", "- two eggs.", "2. Stir them.", "Serve warm.", "(b) Enjoy."],
    ["so we went there", "the food was good", "we paid.", "that was it"],
]


@pytest.mark.parametrize("sentences", OTHER_KINDS)
def test_other_kinds_are_not(sentences):
    assert not is_news_like(sentences)
