"""The table of an evaluation: means with bootstrap intervals, differences from a
baseline, and notes on how to read them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from precis.model import rouge
from precis.pipelines.evaluate.drawn_rows import first_drawn
from precis.pipelines.evaluate.evaluation_figures import (
    LEAD,
    ORACLE,
    RANDOM,
    count_rows,
    join_scores,
    keyphrase_figures,
    mean_figures,
)
from precis.pipelines.evaluate.measure_table import (
    measure_cells,
    measure_figures,
    measure_notes,
)
from precis.pipelines.evaluate.scoring import (
    KEYPHRASE_COUNTS,
    TEXT_COLUMNS,
    RangeScores,
)

COMPARED = ("rouge1", "rouge2", "rougeLsum")
_NAMED_BY_SENTENCES = (LEAD, RANDOM)  # as in `lead-3`


def combine(
    parts: Sequence[RangeScores],
    *,
    resamples: int,
    confidence: float,
    baseline: str = "",
    split_sentences: bool = False,
    show: int = 0,
) -> dict[str, Any]:
    """The result of all tasks, which does not depend on their order.

    Args:
      parts: the results of the tasks.
      resamples, confidence: as `bootstrap_intervals` takes them.
      baseline: the system that the others are compared with; if empty, `lead` if there
          is one.
      split_sentences: whether unsplit texts were cut into sentences before scoring.
      show: how many documents are drawn.
    """
    parts = sorted(parts, key=lambda part: part.number)
    scores = join_scores(parts)
    baseline = baseline or (LEAD if LEAD in scores else "")
    names = {system: _name(system, parts) for system in scores}
    settings: dict[str, Any] = {"resamples": resamples, "confidence": confidence}
    rows = sum(part.rows for part in parts)
    scored = sum(part.scored for part in parts)
    judged = sum(part.judged for part in parts)
    truncated = sum(part.truncated for part in parts)
    splitting = ", unsplit texts cut into sentences" if split_sentences else ""
    return {
        "variant": rouge.VARIANT + splitting,
        "confidence": confidence,
        "resamples": resamples,
        "rows": rows,
        "rows_scored": scored,
        "rows_without_reference": rows - scored,
        "truncated_share": truncated / judged if judged else None,
        "systems": _system_rows(scores, names, settings),
        "baseline": names.get(baseline),
        "differences": _difference_rows(scores, names, baseline, settings),
        "unsplit": {
            name: sum(part.unsplit[name] for part in parts) for name in TEXT_COLUMNS
        },
        "unsplit_rows": sum(part.unsplit_rows for part in parts),
        "split_sentences": split_sentences,
        "keyphrases": keyphrase_figures(parts, **settings),
        **measure_figures([part.measures for part in parts], names),
        "shown": [
            {"document_id": row.document_id, "file": row.path, "row": row.row}
            for row in first_drawn((part.drawn for part in parts), show)
        ],
    }


def _name(system: str, parts: Iterable[RangeScores]) -> str:
    if system not in _NAMED_BY_SENTENCES:
        return system
    return f"{system}-{max(part.most_sentences.get(system, 0) for part in parts)}"


def _system_rows(
    scores: Mapping[str, np.ndarray],
    names: Mapping[str, str],
    settings: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """The mean of every measure for each system."""
    columns = {
        (system, measure): values[:, column]
        for system, values in scores.items()
        for column, measure in enumerate(rouge.MEASURES)
    }
    means = mean_figures(columns, **settings)
    return [
        {
            "system": names[system],
            "method": system,
            "rows": count_rows(values[:, 0]),
            **{measure: means[system, measure] for measure in rouge.MEASURES},
        }
        for system, values in scores.items()
    ]


def _difference_rows(
    scores: Mapping[str, np.ndarray],
    names: Mapping[str, str],
    baseline: str,
    settings: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """The mean differences between each system and the baseline, over the rows in which
    both have a summary.
    """
    if not baseline:
        return []
    measures = list(rouge.MEASURES)
    differences = {
        (system, measure): values[:, measures.index(measure)]
        - scores[baseline][:, measures.index(measure)]
        for system, values in scores.items()
        for measure in COMPARED
        if system != baseline
    }
    means = mean_figures(differences, **settings)
    return [
        {
            "system": names[system],
            "rows": count_rows(differences[system, COMPARED[0]]),
            **{
                measure: _with_significance(means[system, measure])
                for measure in COMPARED
            },
        }
        for system in scores
        if (system, COMPARED[0]) in means
    ]


def _with_significance(figure: Mapping[str, float]) -> dict[str, Any]:
    return {**figure, "touches_zero": figure["low"] <= 0 <= figure["high"]}


def as_text(result: Mapping[str, Any]) -> str:
    """The result as aligned text."""
    tables = [_aligned(cells) for cells in _tables(result)]
    return "\n\n".join([*tables, "\n".join(notes(result))])


def as_markdown(result: Mapping[str, Any]) -> str:
    """The result as Markdown tables."""
    tables = [_markdown(cells) for cells in _tables(result)]
    return "\n\n".join([*tables, "  \n".join(notes(result))]) + "\n"


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
    """The tables as cells, each with its header; tables without rows are left out."""
    names = [f"f1_at_{count}" for count in KEYPHRASE_COUNTS]
    tables = [
        _table(
            "system", rouge.MEASURES.values(), result["systems"], tuple(rouge.MEASURES)
        ),
        _table(
            f"minus {result['baseline']}",
            [rouge.MEASURES[measure] for measure in COMPARED],
            result["differences"],
            COMPARED,
            sign="+",
        ),
        measure_cells(result),
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
    cells = [[title, "rows", *head]]
    for row in rows:
        figures = [_cell(row[name], sign) for name in columns]
        cells.append([row["system"], str(row["rows"]), *figures])
    return cells


def _cell(figure: Mapping[str, Any], sign: str) -> str:
    mean, low, high = (
        f"{100 * figure[name]:{sign}.1f}" for name in ("mean", "low", "high")
    )
    mark = "" if figure.get("touches_zero", True) else " *"
    return f"{mean} [{low}, {high}]{mark}"


def notes(result: Mapping[str, Any]) -> list[str]:
    """The notes on how to read the tables."""
    share = result["truncated_share"]
    lines = [
        f"{result['variant']}; x100, {100 * result['confidence']:g} % intervals "
        f"from {result['resamples']} bootstrap samples",
        f"{rouge.MEASURES['rougeL']}: each text as one sequence of words; "
        "what papers on news call ROUGE-L is ROUGE-Lsum",
    ]
    if result["differences"]:
        lines.append(
            "*: the interval of the paired bootstrap, with the same rows drawn for "
            "both systems, does not touch zero"
        )
    if any(system["method"] == ORACLE for system in result["systems"]):
        lines.append(
            "oracle: an upper bound, whose sentences were chosen with the reference at "
            "hand"
        )
    lines += measure_notes(result)
    lines += unsplit_notes(result)
    lines.append(
        f"rows scored: {result['rows_scored']}; "
        f"without a reference: {result['rows_without_reference']}"
    )
    if share is None:
        lines.append("truncated: no network ran")
    else:
        lines.append(
            f"truncated: {100 * share:.1f} % of the documents were cut for the network"
        )
    return lines


def unsplit_notes(result: Mapping[str, Any]) -> list[str]:
    """A warning if texts have several sentences on one line, else nothing.

    ROUGE-Lsum takes every line as a sentence.
    """
    if not result["unsplit_rows"]:
        return []
    counts = ", ".join(
        f"{name} {result['unsplit'][name]}"
        for name in TEXT_COLUMNS
        if result["unsplit"][name]
    )
    rows = f"{result['unsplit_rows']} of {result['rows_scored']} rows"
    if result["split_sentences"]:
        return [
            f"{rows} had texts with several sentences on one line, "
            f"which were cut into sentences ({counts})"
        ]
    return [
        f"warning: ROUGE-Lsum of {rows} is ROUGE-L of unsplit text and reads low: "
        f"several sentences on one line ({counts}); --split_sentences cuts them"
    ]
