"""The cost of a search, as sums that can be added up over tasks and runs.

task 1     documents 512  source_tokens 190_112  process_seconds 61.2  ...
task 2     documents 130  source_tokens  44_017  process_seconds 15.0  ...
manifest   documents 642  source_tokens 234_129  process_seconds 76.2  ...
"""

from collections.abc import Iterable, Mapping
from typing import Any

from precis.model.inference.batches import SearchedBatch
from precis.model.isolation import Failure

COUNTED = ("documents", "passages", "source_tokens", "padded_tokens", "summary_tokens")
MEASURED = ("process_seconds", "wall_seconds")


def summary_tokens(batch: SearchedBatch) -> int:
    """The tokens of the best hypotheses of a batch, end tokens included."""
    return sum(
        len(result[0].tokens)
        for result in batch.results
        if result and not isinstance(result, Failure)
    )


class SearchCost:
    """Adds up the cost of batches.

    Attributes:
      sums: the number of documents; passages, their sources; source_tokens, without
        padding; padded_tokens, with padding; summary_tokens, tokens of the best
        hypotheses, end tokens included; process_seconds, the sum of the search times of
        all batches; wall_seconds, the time in which at least one batch was searched.
    """

    def __init__(self) -> None:
        self.sums: dict[str, Any] = dict.fromkeys(COUNTED, 0)
        self.sums |= dict.fromkeys(MEASURED, 0.0)
        self._searched_until = float("-inf")

    def add(self, batches: Iterable[SearchedBatch], *, documents: int) -> None:
        """Adds batches, none of which may have started before a batch added earlier.

        batch 1    |---------|
        batch 2         |---------|
        wall       |--------------|

        Args:
          batches: the batches.
          documents: the number of documents in them.
        """
        sums = self.sums
        sums["documents"] += documents
        for batch in sorted(batches, key=lambda batch: batch.started):
            sums["passages"] += len(batch.results)
            sums["source_tokens"] += batch.source_tokens
            sums["padded_tokens"] += batch.padded_tokens
            sums["summary_tokens"] += summary_tokens(batch)
            sums["process_seconds"] += batch.ended - batch.started
            new_from = max(batch.started, self._searched_until)
            sums["wall_seconds"] += max(0.0, batch.ended - new_from)
            self._searched_until = max(self._searched_until, batch.ended)


def describe(sums: Mapping[str, float]) -> dict[str, Any]:
    """The sums, rounded, with ratios computed from them.

    Returns:
      The sums; padding_share, from 0 to 1; documents_per_second and
      summary_tokens_per_second by `wall_seconds`, None if nothing was searched.
    """
    wall, padded = sums["wall_seconds"], sums["padded_tokens"]
    return {
        **{name: int(sums[name]) for name in COUNTED},
        "padding_share": round(1 - sums["source_tokens"] / padded, 4)
        if padded
        else 0.0,
        **{name: round(sums[name], 3) for name in MEASURED},
        "documents_per_second": round(sums["documents"] / wall, 2) if wall else None,
        "summary_tokens_per_second": (
            round(sums["summary_tokens"] / wall, 1) if wall else None
        ),
    }


def format_search_cost(search: Mapping[str, Any]) -> str:
    """The result of `describe` as one line, for the end of a run."""
    line = (
        "search: {documents} documents, {passages} passages, {source_tokens} source "
        "tokens ({padding_share:.1%} padding), {summary_tokens} summary tokens; "
        "{process_seconds:.1f} s of process time in {wall_seconds:.1f} s"
    )
    if search["documents_per_second"]:
        line += (
            ": {documents_per_second} documents/s, {summary_tokens_per_second} tokens/s"
        )
    return line.format(**search)
