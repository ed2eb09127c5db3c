"""The claim checker: scores how well a document supports its summary, with an imported
model that was trained to check claims.

    document   two sentences that fit | the next three | ...     chunks
    summary    a line
               another line
    score      the mean over the lines, of the maximum over the chunks, of the
               probability that the chunk supports the line

This is the score of MiniCheck (Tang et al. 2024) and AlignScore (Zha et al. 2023). A
model reads a chunk and a line as one text. An encoder labels it (`read_checker`); a T5,
such as MiniCheck's, writes 1 if the chunk supports the line, otherwise 0:

    predict: CHUNK</s>LINE
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from precis.model.bundle.manifest import (
    ABSTRACTIVE,
    ENCODER,
    StoredBundle,
    open_stored,
)
from precis.model.bundle.network_bundle import Bundle, load_bundle, load_encoder_bundle
from precis.model.errors import UsageError
from precis.model.inference.batches import group_by_length, pad_sources
from precis.model.inference.sentence_vectors import cut_windows
from precis.model.text.normalization import one_line

# Tokens in one call.
_BATCH_TOKENS = 8_192


def open_checker(folder: str) -> StoredBundle:
    """Opens the bundle of a claim checker.

    Raises:
      UsageError: the folder is not a complete bundle, or its model cannot check claims.
      DataError: a file differs from the manifest.
    """
    contents = open_stored(folder, ENCODER, ABSTRACTIVE)
    is_t5 = contents.manifest["provenance"].get("model_type") == "t5"
    if "checker" in contents.config or is_t5:
        return contents
    raise UsageError(
        f"{folder}: the {contents.kind} network of this bundle cannot check claims; "
        "for `checker=` import MiniCheck-Flan-T5-Large, or a "
        "RobertaForSequenceClassification with a label named entailment, aligned or "
        "supported"
    )


class ClaimChecker:
    """Scores how well documents support their summaries.

    Attributes:
      model_id: the model_id of the bundle.
    """

    def __init__(self, folder: str) -> None:
        """Loads the model from its bundle.

        Raises:
          UsageError: as `open_checker`.
          DataError: a file differs from the manifest.
        """
        import tensorflow as tf

        from precis.model.backend import ops

        stored = open_checker(folder)
        self.model_id = stored.model_id
        bundle: Any
        if checker := stored.config.get("checker"):
            bundle = load_encoder_bundle(folder, labels=checker["labels"])
            logits, support = bundle.encoder, checker["support"]
            self._text = checker["pattern"].format
        else:
            bundle = load_bundle(folder)
            logits, support = functools.partial(_answer_logits, bundle), 1
            self._text = "predict: {}</s>{}".format
        self._tokenizer = bundle.tokenizer
        self._max_tokens = bundle.config.max_source_tokens
        # int32 [B, S], SOURCE_PADDING in short rows -> float32 [B].
        self._probability = tf.function(
            lambda tokens: ops.softmax(logits(tokens))[:, support],
            input_signature=[tf.TensorSpec([None, None], tf.int32)],
            autograph=False,
        )

    def score(self, sentences: Sequence[str], summary: str) -> float | None:
        """Scores a summary.

        A sentence that is too long for the model is cut off.

        Args:
          sentences: the sentences of the document.
          summary: the summary, one sentence per line.

        Returns:
          The score, from 0 to 1; None if there is no sentence or no line.
        """
        lines = [line for line in summary.splitlines() if line.strip()]
        if not (sentences and lines):
            return None
        chunks = self._chunks(sentences, lines)
        texts = [self._text(chunk, line) for line in lines for chunk in chunks]
        rows = list(map(self._cut, self._tokenizer.encode(texts)))
        lengths = list(map(len, rows))
        probabilities = np.zeros(len(rows))
        for batch in group_by_length(lengths, lambda longest: _BATCH_TOKENS // longest):
            tokens = pad_sources([rows[place] for place in batch], self._max_tokens)
            probabilities[batch] = self._probability(tokens).numpy()
        return float(probabilities.reshape(len(lines), -1).max(axis=1).mean())

    def _chunks(self, sentences: Sequence[str], lines: Sequence[str]) -> list[str]:
        """Chunks of whole sentences, each short enough to be read with any line."""
        # Sentences of a chunk are joined by spaces.
        spaced = [f" {one_line(sentence)}" for sentence in sentences]
        parts = [*spaced, *lines, self._text("", "")]
        *lengths, around = map(len, self._tokenizer.encode_parts(parts))
        special = sum(map(len, self._tokenizer.surrounding_ids))
        room = self._max_tokens - around - special - max(lengths[len(spaced) :])
        room = max(1, room)
        shortened = [min(length, room) for length in lengths[: len(spaced)]]
        windows = cut_windows(shortened, max_tokens=room, overlap=0)
        return ["".join(spaced[first:last])[1:] for first, _, last in windows]

    def _cut(self, ids: np.ndarray) -> np.ndarray:
        """The ids of a text; if it is too long, without the end of its chunk.

        <s> Rain Ġfell . </s> Rain </s>  cut to 6  ->  <s> Rain Ġfell </s> Rain </s>
        """
        excess = max(0, len(ids) - self._max_tokens)
        end = int(np.argmax(ids == ids[-1]))  # The end token is after the chunk too.
        kept = np.delete(ids, slice(max(1, end - excess), end)) if excess else ids
        return self._tokenizer.cut(kept, self._max_tokens)


def _answer_logits(bundle: Bundle, tokens: Any) -> Any:
    """The logits of the answers 0 and 1 of a T5: texts int32 [B, S] -> [B, 2]."""
    from precis.model.backend import ops

    assert bundle.special is not None  # It was imported.
    zero, one = (ids[0] for ids in bundle.tokenizer.encode_parts(["0", "1"]))
    # Two start tokens, as Keras warns about attention over a single token.
    starts = ops.full((ops.shape(tokens)[0], 2), bundle.special.start_id, "int32")
    logits = bundle.network(tokens, starts)[:, 0]  # [B, V]
    return ops.take(logits, [zero, one], axis=1)
