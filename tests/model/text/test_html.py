"""The text of HTML."""

import pytest

from precis.model.text.html import decode, to_text

STORY = "Rain fell on Oslo on Monday, and the trams of the city stopped for an hour. "
PAGE = f"""<!DOCTYPE html><html><head><title>Rain</title><style>p {{}}</style></head>
<body><nav><ul><li><a href="/">Home</a></li><li>Sport</li></ul></nav>
<div class="share">Share this</div><article><p>{STORY * 3}</p>
<p>{STORY * 2}</p></article>
<footer>All rights reserved by the publisher of this page.</footer></body></html>"""


TEXTS = [
    (PAGE, f"{STORY * 3}".strip() + "\n\n" + f"{STORY * 2}".strip()),
    ("<html><body><p>Short.</p></body></html>", "Short."),
    ("<p>One.</p><p>Two.</p>", "One.\n\nTwo."),
    ("<h1>Rain</h1><div>It fell<br>and <i>fell</i></div>", "Rain\n\nIt fell\nand fell"),
    ("Fish &amp; chips<br>", "Fish & chips"),
    ("One.\nGoes on.\n\n<b>Two</b> &lt;p&gt;", "One. Goes on.\n\nTwo <p>"),
    ("One.\n\nAT&amp;T, a < b", "One.\n\nAT&T, a < b"),
]


@pytest.mark.parametrize(("source", "text"), TEXTS)
def test_text_of_html(source, text):
    assert to_text(source) == text


SLOW_PAGES = [
    ("<html><body>", "<div><p>Rain.", "nested too deeply"),
    ("<html><body>", "<b><i><u>", "nested too deeply"),
    ("<p ", "{}=1 b{}='a > b' ", "1,000 attributes or more"),
]


@pytest.mark.parametrize(("start", "part", "words"), SLOW_PAGES)
def test_a_page_that_would_take_minutes_is_refused(start, part, words):
    """A short form of the page is read; ten times the elements are refused at once."""
    few = start + "".join(part.format(f"a{n}", n) for n in range(400)) + ">Rain."
    assert "Rain." in to_text(few)
    many = start + "".join(part.format(f"a{n}", n) for n in range(10_000)) + ">Rain."
    with pytest.raises(ValueError, match=words):
        to_text(many)


def test_a_page_of_many_choices_is_read_without_them():
    """A parser takes a minute for so many."""
    choices = "<select>" + 60_000 * "<option>Oslo" + "</select>"
    assert to_text(f"<html><body>{choices}<p>Rain.<!-- {'<b>' * 9999} -->") == "Rain."


ENCODED = [
    ("\ufeffGrün".encode(), "iso-8859-1", "Grün"),
    ("Grün".encode("cp1252"), "iso-8859-1", "Grün"),
    ('<meta charset="shift_jis">雨が降った'.encode("shift_jis"), "", "雨が降った"),
    ("雨が降った。市電が止まった。".encode("iso2022_jp"), "iso-2022-jp", "雨が降った"),
    ("雨が降った。市電が止まった。".encode("euc_jp"), "", "雨が降った"),
    ("Grün".encode("utf-16"), "", "Grün"),
    ("Grün".encode("cp1252"), "no-such-name", "Grün"),
]


@pytest.mark.parametrize(("content", "encoding", "text"), ENCODED)
def test_a_page_is_decoded(content, encoding, text):
    assert text in decode(content, encoding)
