"""Tokenizers as operations of TensorFlow give what the tokenizers give."""

import random
import unicodedata

import pytest
import tensorflow as tf
from support.small_checkpoint import VOCABULARY, write_sentencepiece

from precis.model.text.normalization import normalise
from precis.model.tokenization import tensors
from precis.model.tokenization.imported import read_tokenizer
from precis.model.tokenization.unigram import UnigramTensors
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
        *("", " ", "ab" * 4_000),
    ]


def strings(tensor) -> list[str]:
    return [text.decode() for text in tensor.numpy().tolist()]


@pytest.mark.parametrize("lower_case", [False, True])
def test_ids_and_texts_are_those_of_the_tokenizer(lower_case):
    raw = [*texts(), "ab" * 40_000]  # longer than a word may be
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


# Entries of a map of characters with marks, in clusters of up to 5 bytes and of more;
# tokens in a text.
CLUSTERS = [
    *("e\u0302\u0301", "\ufb01\u0301", "ｅ\u0301", "\uff76\uff9e", "\u1100\u1161"),
    *("\u0340", "™", "²\u0323", "\u0600e", "\U0001f468\u200d\U0001f3fb", "\ufe0f"),
    *("</s>", "<extra_id_1>", "<unk_3>", "<n>", "<unk>", "＜/s＞", "<", "  ", "\r\n"),
    *("0", "00", "000", "-", "\ufdd0", "\ufdd1</s>", " ", "\n"),
]


@pytest.mark.parametrize("kind", ["t5", "pegasus"])
def test_imported_ids_and_texts_are_those_of_the_tokenizers_library(kind, tmp_path):
    chance = random.Random(5)
    news = [generator.document(n).article for n in range(60)]
    # Equal scores, as of "0" + "00" and "00" + "0".
    known = [*news, "000 00 0 ---- -- - a b ▁", "tiếng Việt ế ガラス 東京 가나다"]
    write_sentencepiece(tmp_path, kind, [each.replace("\n", " ") for each in known])
    tokenizer = read_tokenizer(str(tmp_path), {"vocab_size": VOCABULARY})
    raw = [
        *texts(),
        *("".join(chance.choices([*NASTY, *CLUSTERS], k=30)) for _ in range(1500)),
        *(unicodedata.normalize("NFD", each) for each in [*known, *news]),
        *("0" * n + " " + "-" * n for n in range(60)),
    ]
    ours = UnigramTensors(tokenizer)
    rows = [row.tolist() for row in tokenizer.encode_parts(raw)]
    assert {tokenizer.unknown_id, 1} < set(sum(rows[-4000:], []))
    assert ours.encode(tf.constant(raw)).to_list() == rows
    # There are ids without a token.
    written = [chance.choices(range(VOCABULARY + 9), k=12) for _ in range(2000)]
    assert strings(ours.decode(tf.constant(written))) == tokenizer.decode(written)


def test_bytes_that_are_not_utf8_are_replaced():
    assert strings(tensors.normalise(tf.constant([b"a\xff b"]))) == ["a\ufffd b"]
