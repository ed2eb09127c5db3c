"""The importance of n-grams as tensors of a bundle.

importance/words/mean, scale, kernel_0, bias_0, ...    the network
importance/words/lexicon_text                          its n-grams, one a line, UTF-8
importance/words/lexicon_counts                        int32 [n, 2]
importance/length_weights                              of the reference's length
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from precis.model.errors import UsageError
from precis.model.extractive.importance import (
    PAIR_FEATURES,
    WORD_FEATURES,
    ImportanceModel,
    ImportanceNetwork,
    Lexicon,
)
from precis.model.extractive.ngrams import Gram

_LAYERS = 3


def importance_config(model: ImportanceModel) -> dict[str, Any]:
    """What config.json says of it."""
    return {
        "word_features": list(WORD_FEATURES),
        "pair_features": list(PAIR_FEATURES),
        "documents": model.word_lexicon.documents,
        "taken_shares": [
            model.word_lexicon.taken_share,
            model.pair_lexicon.taken_share,
        ],
    }


def importance_tensors(model: ImportanceModel) -> dict[str, np.ndarray]:
    """The tensors of a model by name."""
    tensors = {"importance/length_weights": model.length_weights}
    parts = (
        ("words", model.words, model.word_lexicon),
        ("pairs", model.pairs, model.pair_lexicon),
    )
    for name, network, lexicon in parts:
        prefix = f"importance/{name}"
        tensors[f"{prefix}/mean"] = network.mean
        tensors[f"{prefix}/scale"] = network.scale
        for layer in range(_LAYERS):
            tensors[f"{prefix}/kernel_{layer}"] = network.kernels[layer]
            tensors[f"{prefix}/bias_{layer}"] = network.biases[layer]
        lines = "\n".join(map(_line, lexicon.counts)).encode()
        tensors[f"{prefix}/lexicon_text"] = np.frombuffer(lines, np.uint8)
        counts = np.array(list(lexicon.counts.values()), np.int32).reshape(-1, 2)
        tensors[f"{prefix}/lexicon_counts"] = counts
    return tensors


def read_importance(
    folder: str, config: Mapping[str, Any], tensors: Mapping[str, np.ndarray]
) -> ImportanceModel:
    """The model of a bundle.

    Args:
      folder: the bundle.
      config: `importance_config`.
      tensors: of the bundle.

    Raises:
      UsageError: it was trained on features that this version does not compute.
    """
    names = tuple(config["word_features"]), tuple(config["pair_features"])
    if names != (WORD_FEATURES, PAIR_FEATURES):
        raise UsageError(
            f"{folder}: trained on other features of words than this precis computes; "
            "train it again"
        )
    shares = config["taken_shares"]
    return ImportanceModel(
        words=_read_network("importance/words", tensors),
        pairs=_read_network("importance/pairs", tensors),
        word_lexicon=_read_lexicon("words", tensors, config["documents"], shares[0]),
        pair_lexicon=_read_lexicon("pairs", tensors, config["documents"], shares[1]),
        length_weights=tensors["importance/length_weights"],
    )


def _read_network(prefix: str, tensors: Mapping[str, np.ndarray]) -> ImportanceNetwork:
    return ImportanceNetwork(
        mean=tensors[f"{prefix}/mean"],
        scale=tensors[f"{prefix}/scale"],
        kernels=tuple(tensors[f"{prefix}/kernel_{layer}"] for layer in range(_LAYERS)),
        biases=tuple(tensors[f"{prefix}/bias_{layer}"] for layer in range(_LAYERS)),
    )


def _read_lexicon(
    name: str, tensors: Mapping[str, np.ndarray], documents: int, taken_share: float
) -> Lexicon:
    text = tensors[f"importance/{name}/lexicon_text"].tobytes().decode()
    counts = tensors[f"importance/{name}/lexicon_counts"].tolist()
    lines = text.split("\n") if counts else []
    return Lexicon(
        documents,
        taken_share,
        {
            _gram(line): (articles, taken)
            for line, (articles, taken) in zip(lines, counts, strict=True)
        },
    )


def _line(gram: Gram) -> str:
    """A word, or the words of a pair with a space between them."""
    return gram if isinstance(gram, str) else " ".join(gram)  # type: ignore[arg-type]


def _gram(line: str) -> Gram:
    return tuple(line.split(" ")) if " " in line else line
