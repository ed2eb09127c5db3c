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
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from precis.model.errors import DataError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_SIZES = {1: 8, 5: 4}  # Bytes of a value of fixed size, by the wire type.
_UNIGRAM = 1  # a model_type
_NORMAL = 1  # types of pieces
_CONTROL = 3
_USER_DEFINED = 4
PAD = "<pad>"
END = "</s>"


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
      DataError: the model is damaged or is not of the type Unigram, or the checkpoint
          has another model_type.
    """
    if model_type not in _BUILDERS:
        raise DataError(
            f"such a model is read for {', '.join(_BUILDERS)}, not for {model_type}; "
            "save the tokenizer as tokenizer.json where it is known: transformers' "
            "AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)"
        )
    model = read_model(content)
    try:
        return _BUILDERS[model_type](model, settings).to_str()
    except Exception as error:  # The library raises no narrower error.
        raise DataError(
            f"the tokenizers library cannot take this model ({error}); "
            "download it again"
        ) from error


def read_model(content: bytes) -> SentencePieceModel:
    """Reads a model of the type Unigram.

    Raises:
      DataError: the model is damaged, is of another type, or lacks <pad> or </s>.
    """
    try:
        message = list(_fields(content))
        fields = {
            number: dict(_fields(value))
            for number, value in message
            if number in (2, 3)
        }
        pieces = tuple(_piece(value) for number, value in message if number == 1)
    except (IndexError, KeyError, TypeError, ValueError, struct.error) as error:
        raise DataError(
            f"damaged, or no model of SentencePiece ({error!r}); download it again"
        ) from error
    trainer = fields.get(2, {})
    normalizer = fields.get(3, {})
    kind = trainer.get(3, _UNIGRAM)
    if kind != _UNIGRAM:
        raise DataError(
            f"its model_type is {kind}, and only Unigram, {_UNIGRAM}, is read; "
            "take the checkpoint's tokenizer.json"
        )
    texts = {piece.text for piece in pieces}
    for token in (PAD, END):
        if token not in texts:
            raise DataError(
                f"it does not hold {token}, which T5 and PEGASUS have; "
                "take the checkpoint's own"
            )
    return SentencePieceModel(pieces, trainer.get(40, 0), normalizer.get(2, b""))


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """The number and the value of each field of a message.

    A value is an int where the field is a varint, and bytes otherwise.
    """
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        number, wire_type = key >> 3, key & 7
        if wire_type == 0:
            value, position = _varint(message, position)
            yield number, value
            continue
        if wire_type == 2:
            size, position = _varint(message, position)
        else:
            size = _SIZES[wire_type]
        if position + size > len(message):
            raise ValueError(f"field {number} ends behind byte {len(message)}")
        yield number, message[position : position + size]
        position += size


def _varint(message: bytes, position: int) -> tuple[int, int]:
    """The varint at a position of a message, and the position after it.

    A varint is a number, seven bits in each byte, the lowest first.
    """
    value = 0
    for shift in range(0, 64, 7):
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError(f"no number at byte {position}")


def _piece(message: bytes) -> Piece:
    fields = dict(_fields(message))
    (score,) = struct.unpack("<f", fields.get(2, bytes(4)))
    return Piece(fields[1].decode(), score, fields.get(3, _NORMAL))


def _t5(
    model: SentencePieceModel, settings: Mapping[str, Any], *, extra_ids: int = 100
) -> "Tokenizer":
    """The tokenizer of T5.

    The tokens for masked spans, <extra_id_0> and so on, follow the pieces in descending
    order. User-defined symbols of the model are tokens wherever they occur in a text.
    """
    from tokenizers import AddedToken, normalizers, pre_tokenizers

    extra = [
        f"<extra_id_{number}>"
        for number in reversed(range(settings.get("extra_ids", extra_ids)))
    ]
    scored = [*_scored(model.pieces), *((token, 0.0) for token in extra)]
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
    return _with_end(tokenizer, pair=f"$A {END} $B {END}")


def _mt5(model: SentencePieceModel, settings: Mapping[str, Any]) -> "Tokenizer":
    """The tokenizer of mT5, whose model holds the tokens for masked spans."""
    return _t5(model, settings, extra_ids=0)


def _pegasus(model: SentencePieceModel, settings: Mapping[str, Any]) -> "Tokenizer":
    """The tokenizer of PEGASUS.

    Two masks and a number of unused tokens stand between the first two pieces, <pad>
    and </s>, and the other pieces.
    """
    from tokenizers import Regex, normalizers

    offset = settings.get("offset", 103)
    unused = [(f"<unk_{number}>", -100.0) for number in range(2, offset)]
    first = [(token, 0.0) for token in (PAD, END, "<mask_1>", "<mask_2>")] + unused
    scored = [*first, *_scored(model.pieces[2:])]
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
    return _with_end(tokenizer, pair=f"$A $B {END}")


def _with_end(tokenizer: "Tokenizer", *, pair: str) -> "Tokenizer":
    """The tokenizer with an end token behind each text."""
    from tokenizers import processors

    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {END}",
        pair=pair,
        special_tokens=[(END, tokenizer.token_to_id(END))],
    )
    return tokenizer


def _unigram(scored: Sequence[tuple[str, float]], unknown_id: int) -> "Tokenizer":
    """A Unigram model that writes ▁ before a text and for each space in it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    tokenizer = Tokenizer(
        models.Unigram(list(scored), unk_id=unknown_id, byte_fallback=False)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer


def _scored(pieces: Sequence[Piece]) -> list[tuple[str, float]]:
    return [(piece.text, piece.score) for piece in pieces]


_Builder = Callable[[SentencePieceModel, Mapping[str, Any]], "Tokenizer"]
_BUILDERS: Mapping[str, _Builder] = {"t5": _t5, "mt5": _mt5, "pegasus": _pegasus}
