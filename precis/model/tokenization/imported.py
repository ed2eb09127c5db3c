"""The tokenizer of an imported checkpoint, run by the `tokenizers` library.

Token ids are the same as in transformers, including the special tokens:

    Rain fell.         ->  <s> Rain Ġfell . </s>
    cut to 4 tokens    ->  <s> Rain Ġfell </s>
"""

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.model.tokenization.wordpiece import LINE_BREAK, SPACE, UNREADABLE

FORMAT_VERSION = 1
# The file of an imported tokenizer in a bundle. A WordPiece tokenizer has other files.
DEFINITION_FILE = "tokenizers.json"
# The file of the definition in a checkpoint. Older checkpoints have only a vocabulary:
# vocab.txt, vocab.json with merges.txt, or a SentencePiece model.
TOKENIZER_FILE = "tokenizer.json"
# PEGASUS writes this token between two sentences, as its vocabulary has no line break.
PEGASUS_BREAK = "<n>"


class ImportedTokenizer:
    """Encodes and decodes text as the tokenizer of a checkpoint does.

    The interface is the same as of `precis.model.tokenization.wordpiece.Tokenizer`.
    """

    def __init__(self, definition: str) -> None:
        """Makes a tokenizer from a definition.

        Args:
          definition: a tokenizer in the JSON format of the `tokenizers` library.

        Raises:
          ValueError: the library cannot read it.
        """
        from tokenizers import Tokenizer

        try:
            self._tokenizer = Tokenizer.from_str(definition)
        except Exception as error:  # The library raises no narrower error.
            raise ValueError(
                f"the tokenizers library cannot read this tokenizer: {error}"
            ) from error
        # A definition may have a maximum length; `cut` uses the network's instead.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    @property
    def vocabulary_size(self) -> int:
        """The largest token id plus 1."""
        return max(self._tokenizer.get_vocab(with_added_tokens=True).values()) + 1

    @functools.cached_property
    def fingerprint(self) -> str:
        """The sha256 of what `save` writes."""
        return hashlib.sha256(self._bytes).hexdigest()

    @functools.cached_property
    def words(self) -> tuple[str | None, ...]:
        """For each id, the whole word or punctuation mark that its token is.

        None for special tokens, for parts of words, and for ids without a token. A
        vocabulary marks either the pieces that continue a word or those that begin one:

            WordPiece    rain -> rain     ##ing -> None
            others       ▁rain -> rain    ing   -> None    , -> ,
        """
        added = self._tokenizer.get_added_tokens_decoder()
        model = self.definition["model"]
        continuation = model.get("continuing_subword_prefix")
        is_wordpiece = model["type"] == "WordPiece"

        def word(token: int) -> str | None:
            piece = self.piece(token)
            is_special = token in added and added[token].special
            if is_special or UNREADABLE in piece:  # A part of a character.
                return None
            if is_wordpiece:
                return None if piece.startswith(continuation) else piece or None
            begins = piece.startswith(SPACE) or not any(map(str.isalnum, piece))
            return piece.strip(SPACE + LINE_BREAK) or None if begins else None

        return tuple(map(word, range(self.vocabulary_size)))

    @functools.cached_property
    def _is_byte_level(self) -> bool:
        """Whether pieces are sequences of bytes, each written as a letter."""
        return "ByteLevel" in json.dumps(self.definition["decoder"])

    def piece(self, token: int) -> str:
        """The readable text of a token, with ▁ for a space.

        It is empty if no token has this id.
        """
        piece = self._tokenizer.id_to_token(token) or ""
        if not self._is_byte_level:
            return piece.replace(PEGASUS_BREAK, LINE_BREAK)
        text = self._tokenizer.decoder.decode([piece])
        return text.replace(" ", SPACE).replace("\n", LINE_BREAK)

    @functools.cached_property
    def unknown_id(self) -> int | None:
        """The id of the token of unknown text; None if there is none."""
        model = self.definition["model"]
        piece = model.get("unk_token")
        return self._tokenizer.token_to_id(piece) if piece else model.get("unk_id")

    @property
    def definition(self) -> dict[str, Any]:
        """The tokenizer in the JSON format of the `tokenizers` library."""
        definition: dict[str, Any] = json.loads(self._tokenizer.to_str())
        return definition

    def encode(self, texts: Iterable[str]) -> list[np.ndarray]:
        """The token ids of texts, int32 [S] each.

        The special tokens that the network expects around a text are included.
        """
        encodings = self._tokenizer.encode_batch_fast(list(texts))
        return [np.array(encoding.ids, "int32") for encoding in encodings]

    def encode_parts(self, texts: Iterable[str]) -> list[np.ndarray]:
        """The token ids of parts of a longer text, int32 [S] each, without special
        tokens.

        A part includes the space before it: "Rain fell." is "Rain" and " fell.".
        """
        encodings = self._tokenizer.encode_batch_fast(
            list(texts), add_special_tokens=False
        )
        return [np.array(encoding.ids, "int32") for encoding in encodings]

    @functools.cached_property
    def surrounding_ids(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The ids of the special tokens before and after a text.

        For BERT these are ([CLS],) and ([SEP],).
        """
        encoding = self._tokenizer.encode("a")
        mask = encoding.special_tokens_mask
        if 0 not in mask:
            return (), ()
        start = mask.index(0)
        stop = len(mask) - mask[::-1].index(0)
        return tuple(encoding.ids[:start]), tuple(encoding.ids[stop:])

    def cut(self, ids: np.ndarray, max_tokens: int) -> np.ndarray:
        """The first ids of a text, at most `max_tokens`.

        Special tokens at the end of a text are kept:

            <s> Rain Ġfell . </s>  cut to 4  ->  <s> Rain Ġfell </s>
        """
        if len(ids) <= max_tokens:
            return ids
        kept = min(len(self.surrounding_ids[1]), max_tokens)
        return np.concatenate([ids[: max_tokens - kept], ids[len(ids) - kept :]])

    def decode(self, rows: Iterable[Iterable[int]]) -> list[str]:
        """The texts of rows of token ids.

        Special tokens and ids outside the vocabulary are left out; `PEGASUS_BREAK`
        becomes a line break.
        """
        texts: list[str] = self._tokenizer.decode_batch(
            [[int(token) for token in row] for row in rows], skip_special_tokens=True
        )
        if self._tokenizer.token_to_id(PEGASUS_BREAK) is None:
            return texts
        return [text.replace(PEGASUS_BREAK, "\n") for text in texts]

    def save(self, folder: str) -> None:
        """Writes the tokenizer into a folder; equal tokenizers write equal bytes."""
        files.write_bytes(files.join(folder, DEFINITION_FILE), self._bytes)

    @classmethod
    def load(cls, folder: str) -> "ImportedTokenizer":
        """Reads what `save` wrote.

        Raises:
          DataError: the file is damaged, or of another format version.
        """
        path = files.join(folder, DEFINITION_FILE)
        way_out = "copy the bundle again or import it again"
        fields = {"format_version": int, "definition": dict}
        content = files.read_object(path, way_out=way_out, fields=fields)
        version, definition = content["format_version"], content["definition"]
        with files.naming_damage(path, way_out=way_out):
            if version != FORMAT_VERSION:
                raise ValueError(
                    f"format_version is {version}, but this precis reads "
                    f"{FORMAT_VERSION}"
                )
            return cls(json.dumps(definition))

    @functools.cached_property
    def _bytes(self) -> bytes:
        content = {"format_version": FORMAT_VERSION, "definition": self.definition}
        return (json.dumps(content, ensure_ascii=False) + "\n").encode()


def read_tokenizer(folder: str, config: Mapping[str, Any]) -> ImportedTokenizer:
    """Reads the tokenizer of a checkpoint.

    Args:
      folder: the checkpoint.
      config: its config.json.

    Raises:
      UsageError: the checkpoint has no tokenizer.
      DataError: the tokenizer is damaged, or has more tokens than the network.
    """
    path = files.join(folder, TOKENIZER_FILE)
    if not files.exists(path):
        raise UsageError(
            f"{folder}: there is no {TOKENIZER_FILE}; download it into the folder, or "
            "create it from an older tokenizer there: transformers' "
            "AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)"
        )
    with files.naming_damage(path, way_out="download the tokenizer again"):
        definition = json.loads(files.read_bytes(path))
        _leave_out_unused(definition, config["vocab_size"])
        tokenizer = ImportedTokenizer(json.dumps(definition))
        size = tokenizer.vocabulary_size
    if size > config["vocab_size"]:
        raise DataError(
            f"{path}: {size} tokens, but the network has {config['vocab_size']}; use "
            "the network's own tokenizer"
        )
    return tokenizer


def _leave_out_unused(definition: dict[str, Any], size: int) -> None:
    """Removes special tokens that a network with `size` tokens does not have, such as
    `<mask>` of BART checkpoints that were trained on summaries. In an article, they are
    then ordinary text.
    """
    added = definition.get("added_tokens") or []
    unused = [each for each in added if each["special"] and each["id"] >= size]
    for each in unused:
        added.remove(each)
        if isinstance(definition["model"]["vocab"], dict):
            definition["model"]["vocab"].pop(each["content"], None)
