#!/bin/sh
# stopwordsiso has Lithuanian and Urdu stop words in letters that are not of the language.
#
# One would guess that a list named `lt` or `ur` removes the commonest words of a text,
# or at least that a wrong one is short or empty. With stopwordsiso 0.7.1 both lists look
# full (474 and 517 words) and are in valid UTF-8, but were decoded with a wrong table:
#
#     lt   code page 1257 read as 1252:  ðis for šis, ið for iš, uþ for už; no word has
#          š, ž, č, ė, ų or any other letter of Lithuanian that is not of ASCII
#     ur   one letter for another: اضتعوبل for استعمال; of the words میں سے کا کو نے اس
#          کر جو وہ بھی, in nearly every Urdu sentence, none is in the list
#
# The Lithuanian list can be read back: word.encode("cp1252").decode("cp1257").
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet stopwordsiso==0.7.1
"$folder/venv/bin/python" - <<'PYTHON'
from stopwordsiso import stopwords

lithuanian, urdu = stopwords("lt"), stopwords("ur")
print("words", len(lithuanian), len(urdu))
letters = {letter for word in lithuanian for letter in word}
print("letters not of ASCII", *sorted(each for each in letters if not each.isascii()))
assert not letters & set("ąčęėįšųūž")
for wrong, right in (("ðis", "šis"), ("ið", "iš"), ("uþ", "už")):
    assert wrong in lithuanian and right not in lithuanian
    assert wrong.encode("cp1252").decode("cp1257") == right
found = urdu & set("میں سے کا کو نے اس کر جو وہ بھی".split())
print("common Urdu words in the list", *found or ["none"])
assert not found
assert "اضتعوبل" in urdu and "استعمال" not in urdu
PYTHON
