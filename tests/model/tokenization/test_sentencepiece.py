"""SentencePiece models, written byte by byte: token ids by hand, and refusals."""

import json
import struct

import pytest

from precis.model.errors import DataError
from precis.model.tokenization.checkpoint_files import read_tokenizer, tokenizer_files
from precis.model.tokenization.imported import ImportedTokenizer
from precis.model.tokenization.sentencepiece import (
    Piece,
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
    return (
        bytes([number & 0x7F | 0x80]) + varint(number >> 7)
        if number > 0x7F
        else bytes([number])
    )


def field(number: int, value: int | bytes) -> bytes:
    return (
        varint(number << 3) + varint(value)
        if isinstance(value, int)
        else varint(number << 3 | 2) + varint(len(value)) + value
    )


TRAINER = field(3, 1) + field(40, IDS["<unk>"])


def spiece(pieces=PIECES, *, trainer=TRAINER, normalizer=b"") -> bytes:
    """The bytes of a model. Type 1 is the default of a piece and is left out."""
    content = b""
    for text, score, kind in pieces:
        content += field(
            1,
            field(1, text.encode())
            + b"\x15"
            + struct.pack("<f", score)
            + (field(3, kind) if kind != 1 else b""),
        )
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
    ("text", "pieces"),
    [
        ("rains fell.", "▁ra ins ▁fell ."),
        ("  rain \n\t fell ", "▁rain ▁fell"),
        ("", ""),
        ("rain东京.s", "▁rain <unk> . s"),
        ("x", "▁ <unk>"),
        (
            "rain<n>fell<x>fell",
            "▁rain <n> ▁fell <x> ▁fell",
        ),  # a text begins behind each symbol
        ("rains</s>s <unk>", "▁ra ins </s> ▁ s <unk>"),
    ],
)
def test_the_pieces_of_t5_by_hand(text, pieces):
    assert ids("t5", text) == [*(IDS[piece] for piece in pieces.split()), 1]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("rains  fell.", "▁ra ins ▁fell ."),
        ("  rain\nfell ", "▁rain ▁fell ▁"),
        ("", ""),
        ("rain东京.s", "▁rain <unk> . s"),
        ("rain<n>fell", "▁rain <n> fell"),  # here it is a piece like others
        ("rain<unk>fell", "▁rain <unk> ▁fell"),
    ],
)
def test_the_pieces_of_pegasus_by_hand(text, pieces):
    # <pad> </s> <mask_1> <mask_2> <unk_2> ... <unk_102>, and the third piece at 105.
    assert ids("pegasus", text) == [*(IDS[piece] + 103 for piece in pieces.split()), 1]


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


@pytest.mark.parametrize("model_type", ["t5", "pegasus"])
def test_characters_are_mapped(model_type):
    plain = ids(model_type, "AA rain")
    mapped = ids(
        model_type, "AA rain", normalizer=field(1, b"small") + field(2, small_a())
    )
    shift = 103 * (model_type == "pegasus")
    assert plain == [*(IDS[piece] + shift for piece in ("▁", "<unk>", "▁rain")), 1]
    pieces = ("▁", "a", "a", "▁rain")
    assert mapped == [*(IDS[piece] + shift for piece in pieces), 1]


@pytest.mark.parametrize("model_type", ["t5", "pegasus"])
def test_texts_come_back(model_type):
    tokenizer = ImportedTokenizer(sentencepiece_definition(spiece(), model_type, {}))
    texts = ["rains fell.", "fell rain"]
    assert tokenizer.decode(tokenizer.encode(texts)) == texts
    assert tokenizer.surrounding_ids == ((), (1,))
    shift = 103 * (model_type == "pegasus")
    assert tokenizer.words[IDS["▁rain"] + shift] == "rain"


def test_unknown_fields_are_skipped():
    others = (
        field(900, 1 << 40)
        + b"\x91\x01"
        + b"\xff" * 8
        + b"\x95\x01"
        + b"\xff" * 4
        + field(19, b"\xff\xff")
    )
    model = read_model(
        others + spiece(trainer=field(41, 7) + field(40, 300) + field(3, 1))
    )
    assert (
        model == read_model(spiece(trainer=field(40, 300))) and model.unknown_id == 300
    )
    assert model.pieces == tuple(
        Piece(text, score, kind) for text, score, kind in PIECES
    )
    assert read_model(spiece(trainer=b"")).unknown_id == 0


DAMAGED = r"damaged, or no model of SentencePiece \(.*\); download it again"
UNFIT = r"the tokenizers library cannot take this model \(.*\); download it again"
T5 = {"model_type": "t5", "vocab_size": 200}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"version": "1.0"}', DAMAGED),
        (spiece()[:-1] + b"\x05", DAMAGED),  # it says five bytes, and there are none
        (spiece()[:-4], DAMAGED),
        (b"\xff" * 12, r"damaged, or no model .*no number at byte 10.*; download"),
        (field(1, field(2, 3)), DAMAGED),
        (field(1, field(1, b"\xff") + b"\x15" + bytes(4)), DAMAGED),
        (field(1, field(1, b"a") + field(2, bytes(2))), DAMAGED),
        (b"\x0a", DAMAGED),
        (field(2, 3), DAMAGED),
        (field(1, b"\x0b"), DAMAGED),  # of a wire type that is not used any more
        (
            spiece(trainer=field(3, 2)),
            "its model_type is 2, and only Unigram, 1, is re",
        ),
        (b"", "it does not hold <pad>, which T5 and PEGASUS have; take the checkpoint"),
        (spiece(PIECES[:1] + PIECES[2:]), "it does not hold </s>, which T5 and PEGAS"),
        (spiece(trainer=field(40, 99)), UNFIT),
        (spiece(normalizer=field(2, b"\x04\0\0")), UNFIT),
    ],
)
def test_a_damaged_model_is_refused(content, message, tmp_path):
    (tmp_path / "spiece.model").write_bytes(content)
    with pytest.raises(DataError, match=f"^{tmp_path}/spiece.model: {message}"):
        read_tokenizer(str(tmp_path), T5)


def test_a_checkpoint_with_a_model_alone(tmp_path):
    folder = str(tmp_path)
    (tmp_path / "spiece.model").write_bytes(spiece())
    message = "such a model is read for t5, mt5, pegasus, not for bert; save the token"
    with pytest.raises(DataError, match=f"spiece.model: {message}"):
        read_tokenizer(folder, {**T5, "model_type": "bert"})
    assert tokenizer_files(folder) == ["spiece.model"]
    assert read_tokenizer(folder, T5).vocabulary_size == len(PIECES) + 100
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"extra_ids": 2}))
    assert tokenizer_files(folder) == ["spiece.model", "tokenizer_config.json"]
    assert read_tokenizer(folder, T5).vocabulary_size == len(PIECES) + 2
