"""The table of an evaluation: means with bootstrap intervals, differences to a
baseline, and what to know before reading them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from precis.model import rouge
from precis.model.bootstrap import bootstrap_intervals
from precis.pipelines.scoring import (
    ABSTRACTIVE,
    KEYPHRASE_COUNTS,
    SUMMARY,
    TEXT_COLUMNS,
    RangeScores,
)

LEAD, RANDOM, ORACLE = "lead", "random", "oracle"
COMPARED = ("rouge1", "rouge2", "rougeLsum")
_COUNTED = (LEAD, RANDOM)  # Named with how many sentences they choose.


def combine(
    parts: Sequence[RangeScores],
    *,
    resamples: int,
    confidence: float,
    baseline: str = "",
    split_sentences: bool = False,
) -> dict[str, Any]:
    """The result of all tasks, the same in whatever order they come.

    Args:
      parts: what the tasks yielded.
      resamples, confidence: as `bootstrap_intervals` takes them.
      baseline: the system that the others are compared with; if empty, `lead` where it
          is there.
      split_sentences: whether unsplit texts were cut before they were scored.
    """
    parts = sorted(parts, key=lambda part: part.number)
    scores = _joined(parts)
    baseline = baseline or (LEAD if LEAD in scores else "")
    columns = {
        (system, measure): values[:, place]
        for system, values in scores.items()
        for place, measure in enumerate(rouge.MEASURES)
    }
    pairs = [
        (system, measure)
        for system in scores
        for measure in COMPARED
        if baseline and system != baseline
    ]
    differences = {
        (system, measure): columns[system, measure] - columns[baseline, measure]
        for system, measure in pairs
    }
    means, gains = (
        _figures(values, resamples=resamples, confidence=confidence)
        for values in (columns, differences)
    )
    names = {system: _name(system, parts) for system in scores}
    judged = sum(part.judged for part in parts)
    rows, scored = sum(part.rows for part in parts), sum(part.scored for part in parts)
    return {
        "variant": rouge.VARIANT
        + (", unsplit texts cut into sentences" if split_sentences else ""),
        "confidence": confidence,
        "resamples": resamples,
        "rows": rows,
        "rows_scored": scored,
        "rows_without_reference": rows - scored,
        "truncated_share": sum(part.truncated for part in parts) / judged
        if judged
        else None,
        "systems": [
            {
                "system": names[system],
                "method": system,
                "rows": _count(values[:, 0]),
                **{m: means[system, m] for m in rouge.MEASURES},
            }
            for system, values in scores.items()
        ],
        "baseline": names.get(baseline),
        "differences": [
            {
                "system": names[system],
                "rows": _count(differences[system, COMPARED[0]]),
                **{m: _marked(gains[system, m]) for m in COMPARED},
            }
            for system in scores
            if (system, COMPARED[0]) in gains
        ],
        "unsplit": {
            name: sum(part.unsplit[name] for part in parts) for name in TEXT_COLUMNS
        },
        "unsplit_rows": sum(part.unsplit_rows for part in parts),
        "split_sentences": split_sentences,
        "keyphrases": _keyphrases(parts, resamples=resamples, confidence=confidence),
    }


def _joined(parts: Sequence[RangeScores]) -> dict[str, np.ndarray]:
    """For each system with a summary in any row float64 [N, 4] of all scored rows, NaN
    where it has none.
    """
    empty = {
        part.number: np.full((part.scored, len(rouge.MEASURES)), np.nan)
        for part in parts
    }
    systems = _in_order({system for part in parts for system in part.scores})
    return {
        system: np.concatenate(
            [part.scores.get(system, empty[part.number]) for part in parts]
        )
        for system in systems
    }


def _in_order(systems: Iterable[str]) -> list[str]:
    """Baselines first, then the methods by name, the network, what is shown, and last
    the upper bound.
    """
    order = (LEAD, RANDOM, "", ABSTRACTIVE, SUMMARY, ORACLE)
    return sorted(
        systems,
        key=lambda system: (order.index(system if system in order else ""), system),
    )


def _name(system: str, parts: Iterable[RangeScores]) -> str:
    return (
        f"{system}-{max(part.most_sentences.get(system, 0) for part in parts)}"
        if system in _COUNTED
        else system
    )


def _count(values: np.ndarray) -> int:
    return int(np.count_nonzero(~np.isnan(values)))


def _figures(
    columns: Mapping[Any, np.ndarray], *, resamples: int, confidence: float
) -> dict[Any, dict[str, float]]:
    """Mean and interval of each column with values, NaN left out; columns with values
    in the same rows are resampled together.
    """
    together: dict[bytes, list[Any]] = {}
    for key, values in columns.items():
        together.setdefault(np.isnan(values).tobytes(), []).append(key)
    found = {}
    for keys in together.values():
        present = ~np.isnan(columns[keys[0]])
        if present.any():
            matrix = np.stack([columns[key][present] for key in keys], axis=1)
            low, high = bootstrap_intervals(
                matrix, resamples=resamples, confidence=confidence
            )
            ends = zip(
                keys,
                matrix.mean(axis=0).tolist(),
                low.tolist(),
                high.tolist(),
                strict=True,
            )
            found.update(
                {
                    key: {"mean": mean, "low": lower, "high": upper}
                    for key, mean, lower, upper in ends
                }
            )
    return found


def _marked(figure: Mapping[str, float]) -> dict[str, Any]:
    return {**figure, "touches_zero": figure["low"] <= 0 <= figure["high"]}


def _keyphrases(
    parts: Sequence[RangeScores], *, resamples: int, confidence: float
) -> list[dict[str, Any]]:
    """F1 of each keyphrase method, averaged over the rows with reference phrases."""
    found = []
    for method in sorted({method for part in parts for method in part.keyphrases}):
        matrix = np.concatenate(
            [part.keyphrases[method] for part in parts if method in part.keyphrases]
        )
        columns = {
            f"f1_at_{count}": matrix[:, place]
            for place, count in enumerate(KEYPHRASE_COUNTS)
        }
        found.append(
            {
                "system": method,
                "rows": len(matrix),
                **_figures(columns, resamples=resamples, confidence=confidence),
            }
        )
    return found


def as_text(result: Mapping[str, Any]) -> str:
    """The result as aligned text."""
    return "\n\n".join(
        [*(_aligned(cells) for cells in _tables(result)), "\n".join(notes(result))]
    )


def as_markdown(result: Mapping[str, Any]) -> str:
    """The result as Markdown tables."""
    return (
        "\n\n".join(
            [
                *(_markdown(cells) for cells in _tables(result)),
                "  \n".join(notes(result)),
            ]
        )
        + "\n"
    )


def _aligned(cells: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in cells
    )


def _markdown(cells: Sequence[Sequence[str]]) -> str:
    head, *rows = ["| " + " | ".join(row) + " |" for row in cells]
    return "\n".join([head, "|---|---:|" + "---|" * (len(cells[0]) - 2), *rows])


def _tables(result: Mapping[str, Any]) -> list[list[list[str]]]:
    """The tables as cells, each with its head; those without rows are left out."""
    names = [f"f1_at_{count}" for count in KEYPHRASE_COUNTS]
    tables = [
        _table(
            "system", rouge.MEASURES.values(), result["systems"], tuple(rouge.MEASURES)
        ),
        _table(
            f"minus {result['baseline']}",
            [rouge.MEASURES[m] for m in COMPARED],
            result["differences"],
            COMPARED,
            sign="+",
        ),
        _table(
            "keyphrases",
            [f"F1@{count}" for count in KEYPHRASE_COUNTS],
            result["keyphrases"],
            names,
        ),
    ]
    return [cells for cells in tables if len(cells) > 1]


def _table(
    title: str,
    head: Iterable[str],
    rows: Iterable[Mapping[str, Any]],
    columns: Sequence[str],
    *,
    sign: str = "",
) -> list[list[str]]:
    return [
        [title, "rows", *head],
        *(
            [
                row["system"],
                str(row["rows"]),
                *(_cell(row[name], sign) for name in columns),
            ]
            for row in rows
        ),
    ]


def _cell(figure: Mapping[str, Any], sign: str) -> str:
    mean, low, high = (
        f"{100 * figure[name]:{sign}.1f}" for name in ("mean", "low", "high")
    )
    return f"{mean} [{low}, {high}]" + (
        "" if figure.get("touches_zero", True) else " *"
    )


def notes(result: Mapping[str, Any]) -> list[str]:
    """What to know before reading the tables."""
    share = result["truncated_share"]
    found = [
        f"{result['variant']}; x100, {100 * result['confidence']:g} % intervals from {result['resamples']} bootstrap samples",
        f"{rouge.MEASURES['rougeL']}: each text as one sequence of words; what papers on news call ROUGE-L is ROUGE-Lsum",
    ]
    if result["differences"]:
        found.append(
            "*: the interval of the paired bootstrap, with the same rows drawn for both systems, does not touch zero"
        )
    if any(system["method"] == ORACLE for system in result["systems"]):
        found.append(
            "oracle: an upper bound, whose sentences were chosen with the reference at hand"
        )
    found += unsplit_notes(result)
    return [
        *found,
        f"rows scored: {result['rows_scored']}; without a reference: {result['rows_without_reference']}",
        "truncated: no network ran"
        if share is None
        else f"truncated: {100 * share:.1f} % of the documents were cut for the network",
    ]


def unsplit_notes(result: Mapping[str, Any]) -> list[str]:
    """A warning if texts hold several sentences and no line break, by which ROUGE-Lsum
    finds sentences; else nothing.
    """
    if not result["unsplit_rows"]:
        return []
    counts = ", ".join(
        f"{name} {result['unsplit'][name]}"
        for name in TEXT_COLUMNS
        if result["unsplit"][name]
    )
    which = f"{result['unsplit_rows']} of {result['rows_scored']} rows"
    if result["split_sentences"]:
        return [
            f"{which} had texts with several sentences on one line, which were cut into sentences ({counts})"
        ]
    reason = f"is ROUGE-L of unsplit text and reads low: several sentences on one line ({counts})"
    return [f"warning: ROUGE-Lsum of {which} {reason}; --split_sentences cuts them"]
