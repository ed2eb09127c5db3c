"""What a search cost, as sums that can be added up over tasks and runs."""

from collections.abc import Iterable, Mapping
from typing import Any

from precis.model.inference.batches import SearchedBatch

COUNTED = ("documents", "source_tokens", "padded_tokens", "summary_tokens")
MEASURED = ("process_seconds", "wall_seconds")


class Figures:
    """Adds up batches as they come.

    Attributes:
      sums: documents; source_tokens, read by the network; padded_tokens, the same with
        padding; summary_tokens, of the best hypotheses with their end tokens;
        process_seconds of all processes; wall_seconds, while at least one batch was
        searched.
    """

    def __init__(self) -> None:
        self.sums: dict[str, Any] = {
            **dict.fromkeys(COUNTED, 0),
            **dict.fromkeys(MEASURED, 0.0),
        }
        self._searched_until = float("-inf")

    def add(self, batches: Iterable[SearchedBatch]) -> None:
        """Adds batches, none of which began before one that was added earlier."""
        for batch in sorted(batches, key=lambda batch: batch.started):
            self.sums["documents"] += len(batch.found)
            self.sums["source_tokens"] += batch.source_tokens
            self.sums["padded_tokens"] += batch.padded_tokens
            self.sums["summary_tokens"] += sum(
                len(ranked[0].tokens) for ranked in batch.found
            )
            self.sums["process_seconds"] += batch.ended - batch.started
            self.sums["wall_seconds"] += max(
                0.0, batch.ended - max(batch.started, self._searched_until)
            )
            self._searched_until = max(self._searched_until, batch.ended)


def describe(sums: Mapping[str, float]) -> dict[str, Any]:
    """The sums with what follows from them: the share of padding, and documents and
    summary tokens a second of `wall_seconds`.
    """
    wall, padded = sums["wall_seconds"], sums["padded_tokens"]
    return {
        **{name: int(sums[name]) for name in COUNTED},
        "padding_share": round(1 - sums["source_tokens"] / padded, 4)
        if padded
        else 0.0,
        **{name: round(sums[name], 3) for name in MEASURED},
        "documents_per_second": round(sums["documents"] / wall, 2) if wall else None,
        "summary_tokens_per_second": round(sums["summary_tokens"] / wall, 1)
        if wall
        else None,
    }


def in_one_line(search: Mapping[str, Any]) -> str:
    """What `describe` gave, for the end of a run."""
    return (
        f"search: {search['documents']} documents, {search['source_tokens']} source tokens ({search['padding_share']:.1%} padding), "
        f"{search['summary_tokens']} summary tokens; {search['process_seconds']:.1f} s of processes in {search['wall_seconds']:.1f} s"
        + (
            f": {search['documents_per_second']} documents/s, {search['summary_tokens_per_second']} tokens/s"
            if search["documents"]
            else ""
        )
    )
