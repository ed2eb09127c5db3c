"""Models of SentencePiece (Kudo and Richardson 2018), which T5 and PEGASUS are
published with, as definitions of the `tokenizers` library.

A model is one message of Protocol Buffers, of which these fields are read:

    1 pieces            1 piece   2 score   3 type: 3 is a control symbol, 4 one that the user defined
    2 trainer_spec      3 model_type: 1 is Unigram (Kudo 2018)   40 unk_id
    3 normalizer_spec   2 precompiled_charsmap: which characters become which
"""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from precis.model.errors import DataError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_SIZES = {1: 8, 5: 4}  # bytes of a value, by the wire type of its field
_UNIGRAM = 1
_NORMAL, _CONTROL, _USER_DEFINED = 1, 3, 4
PAD, END = "<pad>", "</s>"


class Piece(NamedTuple):
    """A piece of a vocabulary: its text, the logarithm of its probability, and its
    type.
    """

    text: str
    score: float
    type: int


class SentencePieceModel(NamedTuple):
    """What is read of a model.

    Attributes:
      pieces: in the order of their ids.
      unknown_id: which of them stands for characters that no other has.
      characters: which characters become which before the text is cut, in the form in
          which both libraries hold it; empty leaves them.
    """

    pieces: tuple[Piece, ...]
    unknown_id: int
    characters: bytes


def sentencepiece_definition(
    content: bytes, model_type: str, settings: Mapping[str, Any]
) -> str:
    """The definition of a checkpoint's tokenizer: the ids are those that transformers
    gives.

    Args:
      content: a model, spiece.model of the checkpoint.
      model_type: of the checkpoint; says which tokens stand around and beside the
          pieces.
      settings: its tokenizer_config.json, of which `extra_ids` (T5) and `offset`
          (PEGASUS) are read.

    Raises:
      DataError: the model is damaged or not of the type Unigram, or the checkpoint is
          none of T5 or PEGASUS.
    """
    if model_type not in _LAYOUTS:
        raise DataError(
            f"such a model is read for {', '.join(_LAYOUTS)}, not for {model_type}; save the tokenizer as tokenizer.json where it is "
            "known: transformers' AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)"
        )
    model = read_model(content)
    try:
        return _LAYOUTS[model_type](model, settings).to_str()
    except Exception as error:  # the library raises no narrower one
        raise DataError(
            f"the tokenizers library cannot take this model ({error}); download it again"
        ) from error


def read_model(content: bytes) -> SentencePieceModel:
    """Reads a model of the type Unigram.

    Raises:
      DataError: it is damaged, of another type, or lacks a token that every model here
          has.
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
    trainer, normalizer = fields.get(2, {}), fields.get(3, {})
    if (kind := trainer.get(3, _UNIGRAM)) != _UNIGRAM:
        raise DataError(
            f"its model_type is {kind}, and only Unigram, {_UNIGRAM}, is read; take the checkpoint's tokenizer.json"
        )
    texts = {piece.text for piece in pieces}
    for token in (PAD, END):
        if token not in texts:
            raise DataError(
                f"it does not hold {token}, which T5 and PEGASUS have; take the checkpoint's own"
            )
    return SentencePieceModel(pieces, trainer.get(40, 0), normalizer.get(2, b""))


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """The number and the value of each field of a message: an int, or the bytes of what
    is no varint.
    """
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        number, wire_type = key >> 3, key & 7
        if wire_type == 0:
            value, place = _varint(message, place)
            yield number, value
            continue
        size, place = (
            _varint(message, place) if wire_type == 2 else (_SIZES[wire_type], place)
        )
        if place + size > len(message):
            raise ValueError(f"field {number} ends behind byte {len(message)}")
        yield number, message[place : place + size]
        place += size


def _varint(message: bytes, place: int) -> tuple[int, int]:
    """The number that begins at a byte, seven bits in each, the lowest first; and the
    place behind it.
    """
    value = 0
    for shift in range(0, 64, 7):
        byte = message[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    raise ValueError(f"no number at byte {place}")


def _piece(message: bytes) -> Piece:
    fields = dict(_fields(message))
    (score,) = struct.unpack("<f", fields.get(2, bytes(4)))
    return Piece(fields[1].decode(), score, fields.get(3, _NORMAL))


def _t5(
    model: SentencePieceModel, settings: Mapping[str, Any], *, extra_ids: int = 100
) -> "Tokenizer":
    """T5: the marks of what was left out stand behind the pieces, the last first.
    Symbols of the model are tokens wherever they stand.
    """
    from tokenizers import AddedToken, normalizers, pre_tokenizers, processors

    extra = [
        f"<extra_id_{number}>"
        for number in reversed(range(settings.get("extra_ids", extra_ids)))
    ]
    tokenizer = _unigram(
        [*_scored(model.pieces), *((token, 0.0) for token in extra)], model.unknown_id
    )
    if model.characters:
        tokenizer.normalizer = normalizers.Precompiled(model.characters)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), tokenizer.pre_tokenizer]
    )
    control = [piece.text for piece in model.pieces if piece.type == _CONTROL]
    tokenizer.add_special_tokens(
        [PAD, END, model.pieces[model.unknown_id].text, *control, *extra]
    )
    tokenizer.add_tokens(
        [
            AddedToken(piece.text, normalized=False)
            for piece in model.pieces
            if piece.type == _USER_DEFINED
        ]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {END}",
        pair=f"$A {END} $B {END}",
        special_tokens=[(END, tokenizer.token_to_id(END))],
    )
    return tokenizer


def _mt5(model: SentencePieceModel, settings: Mapping[str, Any]) -> "Tokenizer":
    """mT5: the marks are pieces of the model."""
    return _t5(model, settings, extra_ids=0)


def _pegasus(model: SentencePieceModel, settings: Mapping[str, Any]) -> "Tokenizer":
    """PEGASUS: two masks and tokens that nothing uses stand between the first two
    pieces and the others.
    """
    from tokenizers import Regex, normalizers, processors

    offset = settings.get("offset", 103)
    unused = [f"<unk_{number}>" for number in range(2, offset)]
    before = [
        (PAD, 0.0),
        (END, 0.0),
        ("<mask_1>", 0.0),
        ("<mask_2>", 0.0),
        *((token, -100.0) for token in unused),
    ]
    tokenizer = _unigram(
        [*before, *_scored(model.pieces[2:])], model.unknown_id + offset
    )
    characters = (
        normalizers.Precompiled(model.characters)
        if model.characters
        else normalizers.Replace(Regex(r"\n"), " ")
    )
    tokenizer.normalizer = normalizers.Sequence(
        [characters, normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.add_special_tokens(
        [*(token for token, _ in before), model.pieces[model.unknown_id].text]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {END}",
        pair=f"$A $B {END}",
        special_tokens=[(END, tokenizer.token_to_id(END))],
    )
    return tokenizer


def _unigram(scored: Sequence[tuple[str, float]], unknown_id: int) -> "Tokenizer":
    """What both have in common: the model, and the visible space before a text and for
    every one within.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    tokenizer = Tokenizer(
        models.Unigram(list(scored), unk_id=unknown_id, byte_fallback=False)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer


def _scored(pieces: Sequence[Piece]) -> list[tuple[str, float]]:
    return [(piece.text, piece.score) for piece in pieces]


_LAYOUTS: Mapping[
    str, Callable[[SentencePieceModel, Mapping[str, Any]], "Tokenizer"]
] = {"t5": _t5, "mt5": _mt5, "pegasus": _pegasus}
