"""What a network read of an article while it wrote its summary, by whole words.

written \\ read   Rain   coast   Monday
Rain               ###     #
fell               ##      #       #
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from precis.model import files
from precis.model.bundle.manifest import ABSTRACTIVE, open_bundle_config
from precis.model.errors import PrecisError, UsageError
from precis.model.search.config import SearchConfig
from precis.model.text.article import Article
from precis.model.text.normalization import normalise
from precis.pipelines.run.job_progress import load_tensorflow

if TYPE_CHECKING:
    from precis.model.inference.attention import HeadWeights

LEVELS = 5
_MOST_COLUMNS = 20
_MOST_ROWS = 60
_MOST_WEIGHT_BYTES = 2 << 30


class HeatMap(NamedTuple):
    """The weights of a document.

    Attributes:
      document_id: the document.
      block: `copy` or `cross`.
      rows: the words of the summary, in their order.
      columns: the words of the article that were read most, in their order.
      levels: 0 to LEVELS - 1 for each row and column, by quantile.
      percents: the weights, in percent of the row's.
      share: the part of all weights that the shown columns hold, 0 to 1.
    """

    document_id: str
    block: str
    rows: list[str]
    columns: list[str]
    levels: list[list[int]]
    percents: list[list[float]]
    share: float


def draw_heat_maps(
    manifest: Mapping[str, Any],
    rows: Sequence[tuple[Mapping[str, Any], Article]],
    count: int,
) -> tuple[list[HeatMap], str]:
    """The heat maps of some documents, and why there are none where there are none.

    Args:
      manifest: of the run.
      rows: documents with their articles, those to prefer first.
      count: the number of heat maps, at most.
    """
    bundle = manifest["bundle"]
    if not bundle:
        return [], "no network wrote summaries in this run"
    if not count:
        return [], "--attention_documents is 0"
    whole = [
        (row, article)
        for row, article in rows
        if row["abstractive_method"] == "whole" and row["abstractive_summary"]
    ][:count]
    if not whole:
        return [], "no document that the network read as a whole has its article here"
    try:
        _check_bundle(bundle, manifest["model_id"])
        return list(_heat_maps(bundle, manifest, whole)), ""
    except ModuleNotFoundError as error:
        return [], f"{error.name} is not installed; pip install 'precis[inference]'"
    except (PrecisError, OSError) as error:
        return [], " ".join(str(error).split())


def _check_bundle(bundle: str, model_id: str) -> None:
    """Refuses a bundle that is not there, not the run's, or too large to load here.

    Raises:
      UsageError: saying which.
    """
    if open_bundle_config(bundle, ABSTRACTIVE).model_id != model_id:
        raise UsageError(f"{bundle} is no longer the bundle of this run")
    weights = files.join(bundle, "weights.safetensors")
    if files.is_local(bundle) and os.path.getsize(weights) > _MOST_WEIGHT_BYTES:
        raise UsageError(f"{bundle} is too large to load for a picture")


def _heat_maps(
    bundle: str,
    manifest: Mapping[str, Any],
    rows: Sequence[tuple[Mapping[str, Any], Article]],
) -> Iterator[HeatMap]:
    load_tensorflow()
    from precis.model.bundle.network_bundle import load_bundle
    from precis.model.inference.attention import read_attention

    loaded = load_bundle(bundle)
    block = "copy" if loaded.network.config.pointer else "cross"
    for row, article in rows:
        attention = read_attention(
            loaded,
            manifest["task_prefix"] + article.body,
            block=block,
            layer=0,
            decoding=SearchConfig(),
            summary=normalise(row["abstractive_summary"]),
        )
        yield of_words(row["document_id"], attention)


def of_words(document_id: str, attention: "HeadWeights") -> HeatMap:
    """The heat map of an attention: the mean of its heads, by whole words.

    Words without a letter or digit have no row and no column.
    """
    from precis.model.inference.attention_words import (
        is_word,
        mean_of_heads,
        weights_of_words,
    )

    of_all = weights_of_words(mean_of_heads(attention))
    row_places = [place for place, word in enumerate(of_all.rows) if is_word(word)]
    row_places = row_places[:_MOST_ROWS]
    weights = of_all.weights[0][row_places]  # [T, S]
    is_column = np.array([is_word(word) for word in of_all.columns])
    peaks = np.where(is_column, weights.max(axis=0, initial=0.0), -1.0)
    columns = np.sort(np.argsort(-peaks, kind="stable")[:_MOST_COLUMNS])
    columns = columns[is_column[columns]]
    shown = weights[:, columns]
    bounds = np.quantile(shown, [0.5, 0.75, 0.9, 0.97]) if shown.size else np.zeros(4)
    return HeatMap(
        document_id,
        attention.block,
        [of_all.rows[place] for place in row_places],
        [of_all.columns[place] for place in columns],
        np.searchsorted(bounds, shown, side="left").tolist(),
        np.round(100 * shown, 1).tolist(),
        float(shown.sum()) / (float(weights.sum()) or 1.0),
    )
