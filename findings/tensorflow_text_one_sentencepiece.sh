#!/bin/sh
# Two SentencepieceTokenizers of a SavedModel are one after it is loaded.
#
# One would guess that a SavedModel with two tokenizers of tensorflow-text, say of
# articles and of summaries, gives the ids that it gave before it was saved. But their
# resources are shared by the names of their nodes, and these are equal unless each
# tokenizer got a `name`. With tensorflow-text 2.21.1:
#
#                        before it is saved    loaded
#     without names      rain 0, rain 2        rain 0, rain 0 (or 2, 2)
#     with names         rain 0, rain 2        rain 0, rain 2
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tensorflow-text==2.21.1
cat >"$folder/two.py" <<'PYTHON'
import sys

import tensorflow as tf
import tensorflow_text


def model(*pieces: str) -> bytes:
    """A sentencepiece.ModelProto, field by field; all scores are -1."""
    parts = [b"\x0a%c%s\x15\0\0\x80\xbf" % (len(p), p) for p in map(str.encode, pieces)]
    parts.append(b"\x0a\x05<unk>\x18\2")
    return b"".join(b"\x0a%c%s" % (len(part), part) for part in parts)


def ids(outputs):
    return [outputs[name].numpy().tolist() for name in ("a", "b")]


text = tf.constant(["rain"])
for names in ((None, None), ("a", "b")):
    models = model("▁rain"), model("x", "y", "▁rain")
    module = tf.Module()
    module.parts = first, second = [
        tensorflow_text.SentencepieceTokenizer(each, name=name)
        for each, name in zip(models, names)
    ]
    run = tf.function(
        lambda t: {"a": first.tokenize(t).values, "b": second.tokenize(t).values},
        input_signature=[tf.TensorSpec([None], tf.string, name="t")],
    )
    folder = f"{sys.argv[1]}/{names[0]}"
    tf.saved_model.save(module, folder, {"serving_default": run})
    loaded = tf.saved_model.load(folder).signatures["serving_default"]
    print(names, ids(run(text)), ids(loaded(t=text)))
    assert ids(run(text)) == [[0], [2]]
    assert (ids(loaded(t=text)) == [[0], [2]]) == (names[0] is not None)
PYTHON
"$folder/venv/bin/python" "$folder/two.py" "$folder" 2>/dev/null
