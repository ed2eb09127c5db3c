#!/bin/sh
# ICU finds other words in a Thai text that was brought into NFKC.
#
# One would guess that NFKC, which tokenizers and search engines apply before they look
# for words, changes nothing in a text that is in NFC and has no wide or compatibility
# forms to the eye, and that a segmenter takes equivalent texts alike. But the vowel SARA
# AM (U+0E33) of everyday words has a compatibility decomposition into U+0E4D U+0E32, and
# the words of ICU's dictionary are written with U+0E33. With icu4py 1.2.0 (ICU 78):
#
#     รัฐบาลกำลังทำงาน   as typed, NFC   รัฐบาล กำลัง ทำงาน
#                        NFKC            รัฐ บาล กํา ลัง ทํา งาน
#
# So words are found before NFKC, or U+0E33 (in Lao U+0EB3) is left as it is.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet icu4py==1.2.0
"$folder/venv/bin/python" - <<'PYTHON'
import unicodedata

from icu4py.breakers import WordBreaker

text = "รัฐบาลกำลังทำงาน"
words = {
    form: list(WordBreaker(unicodedata.normalize(form, text), "th"))
    for form in ("NFC", "NFKC")
}
for form, found in words.items():
    print(form, *found)
assert unicodedata.normalize("NFC", text) == text
assert words["NFC"] == ["รัฐบาล", "กำลัง", "ทำงาน"]
assert len(words["NFKC"]) == 6 and words["NFKC"][:2] == ["รัฐ", "บาล"]
PYTHON
