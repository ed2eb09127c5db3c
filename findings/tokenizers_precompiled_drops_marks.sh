#!/bin/sh
# The `tokenizers` library drops the tones of Vietnamese in NFD, which SentencePiece keeps.
#
# One would guess that the normalizer `Precompiled` of a tokenizer.json (T5, mT5, PEGASUS)
# maps characters as the SentencePiece model it was converted from, which takes the
# longest entry. It takes the shortest entry at the start of each grapheme of up to 5
# bytes, and leaves out the rest of the grapheme. With tokenizers 0.23.3 and sentencepiece
# 0.2.1, both with the map nmt_nfkc:
#
#     e U+0302 U+0301 (ế in NFD, as from a file of macOS)   SentencePiece ế, tokenizers ê
#     ｅ U+0301                                              SentencePiece é, tokenizers e
#
# So texts are brought into NFC before they are tokenized.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tokenizers==0.23.3 sentencepiece==0.2.1 \
    protobuf==6.33.6
"$folder/venv/bin/python" - <<'PYTHON'
import io

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import normalizers

written = io.BytesIO()
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(["rain fell on the town"] * 9),
    model_writer=written,
    vocab_size=20,
    hard_vocab_limit=False,
    normalization_rule_name="nmt_nfkc",
    minloglevel=2,
)
proto = sentencepiece_model_pb2.ModelProto.FromString(written.getvalue())
theirs = sentencepiece.SentencePieceNormalizer(rule_name="nmt_nfkc")
ours = normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)
for text, expected in (("e\u0302\u0301", "ế ê"), ("ｅ\u0301", "é e")):
    found = f"{theirs.normalize(text)} {ours.normalize_str(text)}"
    print(ascii(text), found)
    assert found == expected
PYTHON
