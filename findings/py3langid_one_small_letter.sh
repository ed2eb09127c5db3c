#!/bin/sh
# py3langid names another language for a text in capitals as soon as one letter is small.
#
# One would guess that case matters little or not at all, as a text all in capitals is
# named rightly and surely. With py3langid 0.4.0 a text is folded only if str.isupper is
# true of all of it. The model knows next to nothing of capitals, so that one small
# letter in a headline or a legal notice (McDONALD, GmbH, iPHONE) decides:
#
#     ... VOTED FOR A NEW BRIDGE, MAYOR MCDONALD SAID     en, probability 0.99
#     ... VOTED FOR A NEW BRIDGE, MAYOR McDONALD SAID     pl, probability 0.02
#     ... IN EINER SITZUNG DER GMBH                       de, probability 1.00
#     ... IN EINER SITZUNG DER GmbH                       et, probability 0.03
#
# So text that is mostly in capitals is folded first.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet py3langid==0.4.0
"$folder/venv/bin/python" - <<'PYTHON'
from py3langid.langid import MODEL_FILE, LanguageIdentifier

identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
council = "THE COUNCIL OF THE CITY MET ON MONDAY AND VOTED FOR A NEW BRIDGE, MAYOR "
company = (
    "DIE STADT BAUT EINE NEUE BRÜCKE ÜBER DEN FLUSS, SAGTE DER BÜRGERMEISTER AM MONTAG "
    "IN EINER SITZUNG DER "
)
for right, capitals, one_small in (
    ("en", f"{council}MCDONALD SAID", f"{council}McDONALD SAID"),
    ("de", f"{company}GMBH", f"{company}GmbH"),
):
    named = [identifier.classify(text) for text in (capitals, one_small)]
    print(*(f"{language} {probability:.2f}" for language, probability in named))
    assert named[0][0] == right and named[0][1] > 0.9
    assert named[1][0] != right and named[1][1] < 0.1
PYTHON
