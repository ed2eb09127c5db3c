#!/bin/sh
# sumy's tokenizer for Thai leaves out most Thai words.
#
# One would guess that Tokenizer("thai") gives the words of PyThaiNLP, which sumy 0.13.0
# asks for them, without punctuation and numbers. But sumy then keeps only words of
# letters, [^\W\d_] in a pattern of Python's `re`, and vowel signs above or below a
# letter and tone marks are not letters there (category Mn). With PyThaiNLP 5.4.0:
#
#     รัฐบาลสร้างสะพานใหม่   PyThaiNLP   รัฐบาล สร้าง สะพาน ใหม่
#                            sumy        สะพาน
#     แม่น้ำท่วมหมู่บ้าน     sumy        nothing
#
# Nothing is said, and sentences without a word left score nothing. Hindi and Tamil words
# and vocalised Arabic would be left out in the same way.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet sumy==0.13.0 pythainlp==5.4.0
"$folder/venv/bin/python" - <<'PYTHON'
from pythainlp.tokenize import word_tokenize
from sumy.nlp.tokenizers import Tokenizer

for text, kept in (("รัฐบาลสร้างสะพานใหม่", ("สะพาน",)), ("แม่น้ำท่วมหมู่บ้าน", ())):
    words, found = word_tokenize(text), Tokenizer("thai").to_words(text)
    print("PyThaiNLP", *words, "| sumy", *found)
    assert len(words) >= 3 and found == kept
PYTHON
