#!/bin/sh
# sentencex told the language of a text cuts names that it keeps whole when told a
# language that it does not know.
#
# One would guess that the code of the text's language gives sentences at least as good
# as a code without rules. With sentencex 1.0.32 a code without rules falls back to the
# abbreviations of English, which hold single letters and `Dr.`. Languages with a list of
# their own have it in place of the English one. The lists of French, Spanish,
# Portuguese, Polish and Czech lack single letters, so that an initial at the beginning
# of a sentence, and in French also later, ends a sentence; French even lacks `Dr.`:
#
#     pl   J. Kowalski wygrał.            J. | Kowalski wygrał.
#     es   J. Silva ganó.                 J. | Silva ganó.
#     fr   Il a vu J. Martin hier.        Il a vu J. | Martin hier.
#     fr   Hier le Dr. Martin est venu.   Hier le Dr. | Martin est venu.
#     xx   each of them                   one sentence
#
# So English abbreviations and initials are looked for too.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet sentencex==1.0.32
"$folder/venv/bin/python" - <<'PYTHON'
from sentencex import segment

for language, text in (
    ("pl", "J. Kowalski wygrał."),
    ("es", "J. Silva ganó."),
    ("pt", "J. Silva venceu."),
    ("cs", "J. Novák zvítězil."),
    ("fr", "Il a vu J. Martin hier."),
    ("fr", "Hier le Dr. Martin est venu."),
):
    cut, whole = list(segment(language, text)), list(segment("xx", text))
    print(language, "|".join(cut))
    assert len(cut) == 2 and whole == [text], (cut, whole)
PYTHON
