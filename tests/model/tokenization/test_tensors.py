"""The tokenizer as operations of TensorFlow gives what the tokenizer gives."""

import random
import unicodedata

import pytest
import tensorflow as tf

from precis.model.text.normalization import normalise
from precis.model.tokenization import tensors
from precis.model.tokenization.vocabulary import count_words, learn
from precis.model.tokenization.wordpiece import Tokenizer
from precis.pipelines.corpus.sample import generator

# White space, line breaks, invisible and combining characters, reserved characters, and
# letters with a lower case of their own or of no European script.
NASTY = (
    "ab▁␤ \n\r\t\0\x0b\x0c\x1c\x1f\x85\xa0\u2028\u200b\u3000\u0301e\xad.#[\u0e01\u0e33"
    "ดี🙂가\u1100\u1161漢שΣσİIJ\u0307\u0300"
)


def texts() -> list[str]:
    chance = random.Random(7)
    # Characters that this Python knows; other libraries know later ones.
    known = [c for c in map(chr, range(0x110000)) if unicodedata.category(c) != "Cn"]
    known = [c for c in known if not "\ud800" <= c <= "\udfff"]
    return [
        *(generator.document(n).article for n in range(20)),
        *("".join(chance.choices(NASTY, k=30)) for _ in range(2000)),
        *("".join(chance.choices(known, k=40)) for _ in range(1000)),
        *("".join(chance.choices(known[:4000], k=40)) for _ in range(1000)),
        *("", " ", "ab" * 40_000),
    ]


def strings(tensor) -> list[str]:
    return [text.decode() for text in tensor.numpy().tolist()]


@pytest.mark.parametrize("lower_case", [False, True])
def test_ids_and_texts_are_those_of_the_tokenizer(lower_case):
    raw = texts()
    expected = list(map(normalise, raw))
    assert strings(tensors.normalise(tf.constant(raw))) == expected
    counts = count_words(expected[:400], lower_case=lower_case)
    tokenizer = Tokenizer(learn(counts, size=1500), lower_case=lower_case)
    assert tokenizer.non_european
    ours = tensors.TensorTokenizer(tokenizer)
    rows = tokenizer.encode(expected)
    assert any(Tokenizer.unknown_id in row for row in rows)
    ids = ours.encode(tf.constant(expected)).to_list()
    assert ids == [row.tolist() for row in rows]
    chance = random.Random(3)
    known = [0, *range(2, tokenizer.vocabulary_size)]
    written = [chance.choices(known, k=12) for _ in range(500)]
    assert strings(ours.decode(tf.constant(written))) == tokenizer.decode(written)


def test_bytes_that_are_not_utf8_are_replaced():
    assert strings(tensors.normalise(tf.constant([b"a\xff b"]))) == ["a\ufffd b"]
