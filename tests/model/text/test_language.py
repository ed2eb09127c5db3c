"""Tests of the language of a text, and of its sentences."""

import pytest
from support import read_table

from precis.model.errors import UsageError
from precis.model.text.article import Article
from precis.model.text.document import TextSettings
from precis.model.text.language import check_language, is_english, language_of

ENGLISH = "The rain fell on the coast of the island, and they said that it was cold. "
NAMES = "Wojciech Szczęsny, Łukasz Piszczek, Jakub Błaszczykowski, Kamil Grosicki. " * 7
GERMAN = (
    "Am 3. Mai kam Dr. Weber nach Berlin. Die Regierung hat den Bau der Brücke bis zum "
    "5. Juni verschoben. J. Groß sagte: Das kostet 4,5 Mio. Euro."
)
FRENCH = "Le ministre, M. Dupont, a dit lundi que le pont sera fini en mai. Il pleut."
POLISH = "Wczoraj przyszedł J. Kowalski do domu. Padał deszcz."
DUTCH = (
    "Hij was in de stad en had over het werk van de man in de krant gelezen. Het is zo "
    "dat we in die tijd als kind in een dorp woonden, en daar was er van alles te doen."
)
CROATIAN = (
    "Vlada je odlučila da će se gradnja mosta nastaviti u proljeće, rekao je ministar. "
    "Stanovnici su tjednima čekali pomoć, a općina je platila popravak škole."
)


TEXTS = [
    ("the rain fell on the coast of the island , and it was cold . " * 2, "en"),
    # A list of names stands before the text; a few words of English behind it.
    (NAMES + ENGLISH * 4, "en"),
    (GERMAN * 4 + ENGLISH, "de"),
    ("Council leaders approved new bridge repairs despite rising costs.", "en"),
    (GERMAN, "de"),
    (FRENCH, "fr"),
    (POLISH, "pl"),
    (DUTCH, "nl"),
    ("Рада схвалила будівництво мосту, і роботи почнуться навесні.", "uk"),
    ("市議会は橋の修理を承認した。工事は春に始まる。市長は喜んだ。" * 2, "ja"),
    # Mostly capitals, with small letters.
    ("NEW BRIDGE OPENED NEAR RIVER, MAYOR TELLS RESIDENTS OF THE TOWn", "en"),
    ("DIE REGIERUNG HAT AM MONTAG IN BERLIN NEUE ZAHLEN VORGELEGt", "de"),
    ("ПРАВИТЕЛЬСТВО ОБЪЯВИЛО О НОВЫХ МЕРАХ ПОДДЕРЖКИ ЭКОНОМИКи", "ru"),
    ("市議会は月曜日に橋の修理を承認した。", "ja"),
    ("市议会星期一批准了修桥的计划。", "zh"),
    ("สภาเทศบาลอนุมัติแผนซ่อมสะพาน", "th"),
    ("Rain fell.", None),
    ("Der Regen fiel.", None),
    ("1 2 3 45 6,789 1000 12 18 27 0.5 33 4 10 99 6 7 8", None),
]


@pytest.mark.parametrize(("text", "expected"), TEXTS)
def test_a_text_has_a_language_unless_it_is_short_or_unclear(text, expected):
    assert language_of(text) == expected
    assert Article.from_text(text).is_english == (expected in ("en", None))


def test_a_language_that_is_given_is_the_language():
    article = Article.from_text(GERMAN, TextSettings(language="en"))
    renamed = article.with_id_and_split("a", "train")
    assert article.language == renamed.language == "en" and article.is_english
    # As in English, a sentence may end after a number.
    assert article.sentence_texts[0] == "Am 3."


@pytest.mark.parametrize(("given", "way_out"), read_table("refusals")["language"])
def test_a_language_is_given_by_its_shortest_code(given, way_out):
    with pytest.raises(UsageError) as refused:
        check_language(given)
    assert str(refused.value) == (
        "`language=` must be a code of ISO 639 in small letters, such as de, nb or zh, "
        f"not {given!r}; {way_out}"
    )
    for code in ("de", "nb", "zh", "yue", "ceb", "", None):
        check_language(code)


def test_close_relatives_are_not_taken_for_english():
    assert not is_english(language_of(CROATIAN))


def test_sentences_end_as_in_their_language():
    german = ["Am 3. Mai kam Dr. Weber nach Berlin."]
    german.append("Die Regierung hat den Bau der Brücke bis zum 5. Juni verschoben.")
    german.append("J. Groß sagte: Das kostet 4,5 Mio. Euro.")
    assert Article.from_text(GERMAN).sentence_texts == german
    polish = ["Wczoraj przyszedł J. Kowalski do domu.", "Padał deszcz."]
    assert Article.from_text(POLISH).sentence_texts == polish
