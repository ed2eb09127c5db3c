"""SentencePiece models, written byte by byte: token ids by hand, and refusals."""

import json
import struct

import pytest

from precis.model.errors import DataError
from precis.model.tokenization.checkpoint_files import read_tokenizer, tokenizer_files
from precis.model.tokenization.imported import ImportedTokenizer
from precis.model.tokenization.sentencepiece import (
    read_model,
    sentencepiece_definition,
)

UNKNOWN, CONTROL, USER_DEFINED = 2, 3, 4
PIECES = [
    *(("<pad>", 0.0, CONTROL), ("</s>", 0.0, CONTROL), ("<unk>", 0.0, UNKNOWN)),
    *(("<x>", 0.0, CONTROL), ("<n>", 0.0, USER_DEFINED)),
    *(("▁", -3.0, 1), ("▁rain", -2.0, 1), ("s", -2.0, 1), ("▁ra", -1.0, 1)),
    *(("ins", -1.5, 1), ("▁fell", -1.5, 1), ("fell", -5.0, 1)),
    *((".", -1.0, 1), ("a", -2.5, 1)),
]
IDS = {piece: token for token, (piece, *_) in enumerate(PIECES)}


def varint(number: int) -> bytes:
    if number > 0x7F:
        return bytes([number & 0x7F | 0x80]) + varint(number >> 7)
    return bytes([number])


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


TRAINER = field(3, 1) + field(40, IDS["<unk>"])


def spiece(pieces=PIECES, *, trainer=TRAINER, normalizer=b"") -> bytes:
    """The bytes of a model. Type 1 is the default of a piece and is left out."""
    content = b""
    for text, score, kind in pieces:
        piece = field(1, text.encode()) + b"\x15" + struct.pack("<f", score)
        content += field(1, piece + (field(3, kind) if kind != 1 else b""))
    return content + field(2, trainer) + field(3, normalizer)


def small_a() -> bytes:
    """A character map that replaces `A` by `a`.

    It is a trie of one letter, as a double array, and the texts of its leaves.
    """
    array = [0] * 512
    array[0] = 0x100 << 10  # where the children of the root begin
    array[0x100 ^ ord("A")] = (
        1 << 10 | 1 << 8 | ord("A")
    )  # a letter with a leaf, beside it
    array[0x100 ^ ord("A") ^ 1] = 1 << 31 | 2  # the leaf: byte 2 of the texts
    trie = struct.pack("<512I", *array)
    return struct.pack("<I", len(trie)) + trie + b"z\0a\0"


def ids(model_type: str, text: str, settings=None, **model) -> list[int]:
    (token_ids,) = ImportedTokenizer(
        sentencepiece_definition(spiece(**model), model_type, settings or {})
    ).encode([text])
    return token_ids.tolist()


# "▁rain s" costs 4 and "▁ra ins" 2.5. With a full stop no other cut costs less.
@pytest.mark.parametrize(
    ("model_type", "text", "pieces"),
    [
        ("t5", "rains fell.", "▁ra ins ▁fell ."),
        ("t5", "  rain \n\t fell ", "▁rain ▁fell"),
        ("t5", "", ""),
        ("t5", "rain东京.s", "▁rain <unk> . s"),
        ("t5", "x", "▁ <unk>"),
        # A text begins behind each symbol.
        ("t5", "rain<n>fell<x>fell", "▁rain <n> ▁fell <x> ▁fell"),
        ("t5", "rains</s>s <unk>", "▁ra ins </s> ▁ s <unk>"),
        ("pegasus", "rains  fell.", "▁ra ins ▁fell ."),
        ("pegasus", "  rain\nfell ", "▁rain ▁fell ▁"),
        ("pegasus", "", ""),
        ("pegasus", "rain东京.s", "▁rain <unk> . s"),
        ("pegasus", "rain<n>fell", "▁rain <n> fell"),  # Here it is a piece like others.
        ("pegasus", "rain<unk>fell", "▁rain <unk> ▁fell"),
    ],
)
def test_pieces_by_hand(model_type, text, pieces):
    # PEGASUS has <mask_1> <mask_2> <unk_2> ... <unk_102> behind <pad> and </s>.
    shift = 103 * (model_type == "pegasus")
    assert ids(model_type, text) == [*(IDS[each] + shift for each in pieces.split()), 1]


def test_tokens_that_only_training_needs():
    count, rain = len(PIECES), IDS["▁rain"]
    both = ids("t5", "<extra_id_0><extra_id_99> rain")
    assert both == [count + 99, count, rain, 1]
    assert ids("t5", "<extra_id_0>", {"extra_ids": 3}) == [count + 2, 1]
    assert ids("mt5", "rain") == [rain, 1] and len(ids("mt5", "<extra_id_0>")) > 2
    assert ids("mt5", "<extra_id_1>", {"extra_ids": 2}) == [count, 1]
    assert ids("pegasus", "<mask_1><mask_2><unk_2><unk_102>") == [2, 3, 4, 104, 1]
    shifted = ids("pegasus", "<unk_2>rain<unk_4>", {"offset": 5})
    assert shifted == [4, rain + 5, 6, 1]
    # Special tokens that are pieces of the model.
    pieces = [(text, score, 1) for text, score, _ in PIECES]
    space, s = IDS["▁"], IDS["s"]
    same = ids("t5", "</s>s<pad>s", pieces=pieces)
    assert same == [1, space, s, 0, space, s, 1]


@pytest.mark.parametrize(("model_type", "shift"), [("t5", 0), ("pegasus", 103)])
def test_characters_are_mapped_and_texts_come_back(model_type, shift):
    small = field(1, b"small") + field(2, small_a())
    for normalizer, first in ((b"", ("▁", "<unk>")), (small, ("▁", "a", "a"))):
        mapped = ids(model_type, "AA rain", normalizer=normalizer)
        assert mapped == [*(IDS[piece] + shift for piece in (*first, "▁rain")), 1]
    tokenizer = ImportedTokenizer(sentencepiece_definition(spiece(), model_type, {}))
    texts = ["rains fell.", "fell rain"]
    assert tokenizer.decode(tokenizer.encode(texts)) == texts
    assert tokenizer.surrounding_ids == ((), (1,))
    words = ("▁rain", "▁", "s", ".", "<x>")
    found = [tokenizer.words[IDS[piece] + shift] for piece in words]
    assert found[:4] == ["rain", None, None, "."]


def test_unknown_fields_are_skipped():
    others = field(900, 1 << 40) + b"\x91\x01" + b"\xff" * 8 + b"\x95\x01" + b"\xff" * 4
    others += field(19, b"\xff\xff")
    trainer = field(41, 7) + field(40, 300) + field(3, 1)
    model = read_model(others + spiece(trainer=trainer))
    assert model == read_model(spiece(trainer=field(40, 300)))
    assert model.unknown_id == 300 and model.pieces == tuple(PIECES)
    assert read_model(spiece(trainer=b"")).unknown_id == 0


T5 = {"model_type": "t5", "vocab_size": 200}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"version": "1.0"}', "Error parsing message"),
        (spiece()[:-1] + b"\x05", "Error"),  # It says five bytes, and there are none.
        (spiece()[:-4], "Error"),
        (field(1, field(2, 3)), ""),
        (field(1, field(1, 3)), ""),
        (field(1, field(1, b"\xff") + b"\x15" + bytes(4)), "'utf-8' codec"),
        (field(1, field(1, b"a") + field(2, bytes(2))), ""),
        (field(2, 3), ""),
        (spiece(trainer=field(3, 2)), "model_type is 2, and only Unigram, 1, is read"),
        (b"", "it does not hold </s> and <pad>, which T5 and PEGASUS have"),
        (spiece(PIECES[:1] + PIECES[2:]), "it does not hold </s>, which T5 and PEGAS"),
        (spiece(trainer=field(40, 99)), ""),
        (spiece(normalizer=field(2, b"\x04\0\0")), ""),
    ],
)
def test_a_damaged_model_is_refused(content, message, tmp_path):
    (tmp_path / "spiece.model").write_bytes(content)
    whole = (
        rf"^{tmp_path}/spiece.model: damaged \(.*{message}.*\); download the tokenize"
    )
    with pytest.raises(DataError, match=whole):
        read_tokenizer(str(tmp_path), T5)


def test_a_checkpoint_with_a_model_alone(tmp_path):
    folder = str(tmp_path)
    (tmp_path / "spiece.model").write_bytes(spiece())
    message = "such a model is read for t5, mt5 and pegasus, not for bert; save the to"
    with pytest.raises(DataError, match=rf"spiece.model: damaged \({message}"):
        read_tokenizer(folder, {**T5, "model_type": "bert"})
    assert tokenizer_files(folder) == ["spiece.model"]
    assert read_tokenizer(folder, T5).vocabulary_size == len(PIECES) + 100
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"extra_ids": 2}))
    assert tokenizer_files(folder) == ["spiece.model", "tokenizer_config.json"]
    assert read_tokenizer(folder, T5).vocabulary_size == len(PIECES) + 2
