#!/bin/sh
# The lower case of TensorFlow, tf.strings.lower(..., "utf-8"), depends on LC_ALL.
#
# One would guess that an operation of a graph gives the same on every machine, and that
# lower case is Unicode's default, as str.lower and the operation without an encoding
# give it. But ICU takes the language of the environment, even if the machine does not
# have its locale. So a saved model with a tokenizer in lower case gives other token ids
# on a server that is set to Turkish or Lithuanian. With TensorFlow 2.21.0:
#
#                    TITLE    İ (U+0130)     J + U+0301
#     LC_ALL=C       title    i + U+0307     j + U+0301
#     LC_ALL=tr_TR   tıtle    i              j + U+0301
#     LC_ALL=lt_LT   title    i + U+0307     j + U+0307 U+0301
#
# The capitals I J Ì Í Ĩ Į İ are replaced before, or tensorflow_text.case_fold_utf8 is
# used, which knows no languages but folds more (ß to ss).
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tensorflow-cpu==2.21.0
cat >"$folder/lower.py" <<'PYTHON'
import sys

import tensorflow as tf

found = tf.strings.lower(["TITLE", "\u0130", "J\u0301"], encoding="utf-8")
texts = [text.decode() for text in found.numpy()]
print(sys.argv[1], *map(ascii, texts))
expected = {
    "C": ["title", "i\u0307", "j\u0301"],
    "tr_TR.UTF-8": ["t\u0131tle", "i", "j\u0301"],
    "lt_LT.UTF-8": ["title", "i\u0307", "j\u0307\u0301"],
}
assert texts == expected[sys.argv[1]], texts
assert tf.strings.lower("TITLE").numpy() == b"title"
PYTHON
for language in C tr_TR.UTF-8 lt_LT.UTF-8; do
    LC_ALL=$language "$folder/venv/bin/python" "$folder/lower.py" "$language" 2>/dev/null
done
