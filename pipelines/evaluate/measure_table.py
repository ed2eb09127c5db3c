"""The table of what the summaries of each system are like, and its notes.

measure               lead-3  summary  reference
rows                  15      15       15
words                  49.3    49.3     23.1
novel bigrams %         0.0     0.0     41.0
unsupported_number %    0.0     0.0      6.7
"""

from collections.abc import Mapping, Sequence
from typing import Any

from precis.model.quality.flags import FLAGS
from precis.pipelines.evaluate.measures import (
    REFERENCE,
    MeasureSums,
    mean_measures,
)

_ROWS = {
    "words": "words",
    "novel_2grams_percent": "novel bigrams %",
    "repetition_percent": "repeated trigrams %",
    "flagged_percent": "any flag %",
}


def measure_figures(
    parts: Sequence[Mapping[str, MeasureSums]], names: Mapping[str, str]
) -> dict[str, Any]:
    """The means of every system and of the references, and what is not measured.

    Args:
      parts: the sums of the ranges by system, in their order.
      names: the names of the systems in the table, in its order.
    """
    in_order = {**names, REFERENCE: REFERENCE}
    measured = {
        system: [part[system] for part in parts if system in part]
        for system in in_order
    }
    return {
        "measures": [
            {"system": in_order[system], "method": system, **mean_measures(sums)}
            for system, sums in measured.items()
            if sums
        ],
        "unmeasured": [
            in_order[system] for system, sums in measured.items() if not sums
        ],
    }


def measure_cells(result: Mapping[str, Any]) -> list[list[str]]:
    """The table as cells, a column for each system; only a header without any.

    Args:
      result: the content of rouge.json.
    """
    systems = result["measures"]
    head = ["measure", *(system["system"] for system in systems)]
    if not systems:
        return [head]
    cells = [head, ["rows", *(f"{system['rows']:3d}" for system in systems)]]
    for measure, title in _ROWS.items():
        cells.append([title, *(_cell(system[measure]) for system in systems)])
    for flag in FLAGS:
        shares = [system["flags_percent"][flag] for system in systems]
        if any(shares):
            cells.append([f"{flag} %", *map(_cell, shares)])
    return cells


def _cell(value: float | None) -> str:
    # Of one width up to 999.9, so that the points stand below each other.
    return "    -" if value is None else f"{value:5.1f}"


def measure_notes(result: Mapping[str, Any]) -> list[str]:
    """The notes on how to read the table."""
    lines = []
    if result["measures"]:
        lines.append(
            "novel bigrams: pairs of words that the article does not have; repeated "
            "trigrams: written before in the same text; both are means over the rows"
        )
        lines.append(
            "flags: share of the rows that have one; a flag that no row has is left out"
        )
    if result["unmeasured"]:
        names = ", ".join(result["unmeasured"])
        lines.append(
            f"not measured: {names}; the files do not hold the measures, which "
            "`precis summarize` of this version writes"
        )
    return lines
