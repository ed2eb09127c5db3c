"""Definitions of tokenizers, made from SentencePiece models (Kudo and Richardson 2018).

T5 and PEGASUS are published with such a model. A definition is a tokenizer in the JSON
format of the `tokenizers` library.

A model is one Protocol Buffers message. These fields of it are read:

    1 pieces             1 piece                  the text
                         2 score                  the logarithm of its probability
                         3 type                   1 normal, 3 control, 4 user-defined
    2 trainer_spec       3 model_type             1 is Unigram (Kudo 2018)
                         40 unk_id
    3 normalizer_spec    2 precompiled_charsmap   which characters become which
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_UNIGRAM = 1  # a model_type
_NORMAL, _CONTROL, _USER_DEFINED = 1, 3, 4  # types of pieces
PAD, END = "<pad>", "</s>"


class Piece(NamedTuple):
    """A piece of a vocabulary: text, logarithm of its probability, and type."""

    text: str
    score: float
    type: int


class SentencePieceModel(NamedTuple):
    """The fields of a model that a definition needs.

    Attributes:
      pieces: in the order of their ids.
      unknown_id: the id of the piece for characters outside the vocabulary.
      characters: the precompiled map of characters, which is applied before the text is
          cut; empty leaves the text as it is.
    """

    pieces: tuple[Piece, ...]
    unknown_id: int
    characters: bytes


def sentencepiece_definition(
    content: bytes, model_type: str, settings: Mapping[str, Any]
) -> str:
    """Defines the tokenizer of a T5, mT5 or PEGASUS checkpoint.

    Its token ids are the same as in transformers.

    Args:
      content: the bytes of spiece.model.
      model_type: the model_type of the checkpoint. It decides which special tokens are
          added to the pieces, and where.
      settings: tokenizer_config.json, of which `extra_ids` (T5) and `offset` (PEGASUS)
          are read.

    Raises:
      ValueError: the model is not of the type Unigram, or the checkpoint has another
          model_type.
      Exception: the model is damaged; protobuf and `tokenizers` have no common error.
    """
    if model_type not in ("t5", "mt5", "pegasus"):
        raise ValueError(
            f"such a model is read for t5, mt5 and pegasus, not for {model_type}; "
            "save the tokenizer as tokenizer.json where it is known: transformers' "
            "AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)"
        )
    model = read_model(content)
    if model_type == "pegasus":
        return _pegasus(model, settings.get("offset", 103)).to_str()
    # The model of mT5 holds the tokens for masked spans itself.
    default = 100 if model_type == "t5" else 0
    return _t5(model, settings.get("extra_ids", default)).to_str()


def read_model(content: bytes) -> SentencePieceModel:
    """Reads a model of the type Unigram; raises as `sentencepiece_definition`."""
    message = list(_fields(content))
    fields = {
        number: dict(_fields(value)) for number, value in message if number in (2, 3)
    }
    trainer, normalizer = fields.get(2, {}), fields.get(3, {})
    if trainer.get(3, _UNIGRAM) != _UNIGRAM:
        raise ValueError(
            f"its model_type is {trainer[3]}, and only Unigram, {_UNIGRAM}, is read; "
            "take the checkpoint's tokenizer.json"
        )
    pieces = tuple(_piece(value) for number, value in message if number == 1)
    missing = {PAD, END} - {piece.text for piece in pieces}
    if missing:
        raise ValueError(
            f"it does not hold {' and '.join(sorted(missing))}, which T5 and PEGASUS "
            "have"
        )
    return SentencePieceModel(pieces, trainer.get(40, 0), normalizer.get(2, b""))


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """The number and the value of each field of a message; the value is bytes where the
    field is a text or a message, and an int otherwise.
    """
    from google.protobuf.empty_pb2 import Empty
    from google.protobuf.unknown_fields import UnknownFieldSet

    # A message without fields of its own takes each field for one of a later version.
    for field in UnknownFieldSet(Empty.FromString(message)):
        yield field.field_number, field.data


def _piece(message: bytes) -> Piece:
    fields = dict(_fields(message))
    (score,) = struct.unpack("<f", struct.pack("<I", fields.get(2, 0)))
    return Piece(str(fields[1], "utf-8"), score, fields.get(3, _NORMAL))


def _t5(model: SentencePieceModel, extra_ids: int) -> "Tokenizer":
    """The tokenizer of T5 and mT5.

    The tokens for masked spans, <extra_id_0> and so on, follow the pieces in descending
    order. User-defined symbols of the model are tokens wherever they occur in a text.
    """
    from tokenizers import AddedToken, normalizers, pre_tokenizers

    extra = [f"<extra_id_{number}>" for number in reversed(range(extra_ids))]
    scored = [
        *(piece[:2] for piece in model.pieces),
        *((token, 0.0) for token in extra),
    ]
    tokenizer = _unigram(scored, model.unknown_id)
    if model.characters:
        tokenizer.normalizer = normalizers.Precompiled(model.characters)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), tokenizer.pre_tokenizer]
    )
    control = [piece.text for piece in model.pieces if piece.type == _CONTROL]
    tokenizer.add_special_tokens(
        [PAD, END, model.pieces[model.unknown_id].text, *control, *extra]
    )
    user_defined = [piece.text for piece in model.pieces if piece.type == _USER_DEFINED]
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in user_defined])
    return tokenizer


def _pegasus(model: SentencePieceModel, offset: int) -> "Tokenizer":
    """The tokenizer of PEGASUS.

    Two masks and a number of unused tokens stand between the first two pieces, <pad>
    and </s>, and the other pieces.
    """
    from tokenizers import Regex, normalizers

    unused = [(f"<unk_{number}>", -100.0) for number in range(2, offset)]
    first = [(token, 0.0) for token in (PAD, END, "<mask_1>", "<mask_2>")] + unused
    scored = [*first, *(piece[:2] for piece in model.pieces[2:])]
    tokenizer = _unigram(scored, model.unknown_id + offset)
    characters = (
        normalizers.Precompiled(model.characters)
        if model.characters
        else normalizers.Replace(Regex(r"\n"), " ")
    )
    tokenizer.normalizer = normalizers.Sequence(
        [characters, normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.add_special_tokens(
        [*(token for token, _ in first), model.pieces[model.unknown_id].text]
    )
    return tokenizer


def _unigram(scored: Sequence[tuple[str, float]], unknown_id: int) -> "Tokenizer":
    """A Unigram model that writes ▁ before a text and for each space in it, and an end
    token behind the text.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    tokenizer = Tokenizer(
        models.Unigram(list(scored), unk_id=unknown_id, byte_fallback=False)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {END}", special_tokens=[(END, tokenizer.token_to_id(END))]
    )
    return tokenizer
