"""The importance of n-grams as tensors of a bundle.

importance/words/mean, scale, kernel_0, bias_0, ...    the network
importance/words/lexicon_text                          its n-grams, one a line, UTF-8
importance/words/lexicon_counts                        int32 [n, 2]
importance/length_weights                              of the reference's length
importance/calibration                                 float64 [2, K]
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from precis.model.bundle.manifest import check_features
from precis.model.extractive.importance import (
    PAIR_FEATURES,
    WORD_FEATURES,
    ImportanceModel,
    ImportanceNetwork,
    Lexicon,
)

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
    tensors = {
        "importance/length_weights": model.length_weights,
        "importance/calibration": model.calibration,
    }
    for name, network, lexicon in (
        ("words", model.words, model.word_lexicon),
        ("pairs", model.pairs, model.pair_lexicon),
    ):
        grams: list[Any] = list(lexicon.counts)  # A word, or the words of a pair.
        texts = (each if isinstance(each, str) else " ".join(each) for each in grams)
        lines = "\n".join(texts).encode()
        counts = np.array(list(lexicon.counts.values()), np.int32).reshape(-1, 2)
        of_part = {"mean": network.mean, "scale": network.scale}
        for layer in range(_LAYERS):
            of_part[f"kernel_{layer}"] = network.kernels[layer]
            of_part[f"bias_{layer}"] = network.biases[layer]
        of_part["lexicon_text"] = np.frombuffer(lines, np.uint8)
        of_part["lexicon_counts"] = counts
        tensors |= {f"importance/{name}/{each}": of_part[each] for each in of_part}
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
    check_features(folder, config["word_features"], WORD_FEATURES)
    check_features(folder, config["pair_features"], PAIR_FEATURES)
    networks: list[Any] = []
    lexicons: list[Any] = []
    for part, taken_share in zip(
        ("words", "pairs"), config["taken_shares"], strict=True
    ):
        prefix = f"importance/{part}"
        networks.append(
            ImportanceNetwork(
                mean=tensors[f"{prefix}/mean"],
                scale=tensors[f"{prefix}/scale"],
                kernels=tuple(tensors[f"{prefix}/kernel_{n}"] for n in range(_LAYERS)),
                biases=tuple(tensors[f"{prefix}/bias_{n}"] for n in range(_LAYERS)),
            )
        )
        text = tensors[f"{prefix}/lexicon_text"].tobytes().decode()
        counts: dict[Any, tuple[int, int]] = {}
        numbers = tensors[f"{prefix}/lexicon_counts"].tolist()
        lines = text.split("\n") if numbers else []
        for line, (articles, taken) in zip(lines, numbers, strict=True):
            gram = tuple(line.split(" ")) if " " in line else line
            counts[gram] = articles, taken
        lexicons.append(Lexicon(config["documents"], taken_share, counts))
    further = [tensors["importance/length_weights"], tensors["importance/calibration"]]
    return ImportanceModel._make([*networks, *lexicons, *further])
