"""The result of an evaluation: means with bootstrap intervals, differences from a
baseline, measures of each system, and notes on how to read them.

system  rows  ROUGE-1            ROUGE-2         unsplit ROUGE-L    ROUGE-Lsum
lead-3  15    26.1 [25.7, 26.4]  9.5 [9.3, 9.8]  18.9 [18.6, 19.2]  23.0 [22.7, 23.3]

measure               lead-3  summary  reference
rows                  15      15       15
words                  49.3    49.3     23.1
novel bigrams %         0.0     0.0     41.0
unsupported_number %    0.0     0.0      6.7
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NotRequired, TypedDict

import numpy as np

from precis.model import rouge
from precis.model.bootstrap import bootstrap_intervals
from precis.model.quality.flags import ABSTRACTIVE, FLAGS
from precis.pipelines.evaluate.options import EvaluateOptions
from precis.pipelines.evaluate.scoring import (
    EXPECTED,
    F1_COLUMNS,
    MEASURE_COLUMNS,
    REFERENCE,
    SUMMARY,
    TEXT_COLUMNS,
    UNKNOWN,
    RangeScores,
)

LEAD, RANDOM, ORACLE = "lead", "random", "oracle"
# The order of systems: the baselines, other methods by name, the writer, the shown
# summary, and the upper bound.
_ORDER = (LEAD, RANDOM, "", ABSTRACTIVE, SUMMARY, ORACLE)
_NAMED_BY_SENTENCES = (LEAD, RANDOM)  # as in `lead-3`
COMPARED = ("rouge1", "rouge2", "rougeLsum")
_COMPARED_COLUMNS = [list(rouge.MEASURES).index(measure) for measure in COMPARED]
_MEASURE_ROWS = {
    "words": "words",
    "novel_2grams_percent": "novel bigrams %",
    "repetition_percent": "repeated trigrams %",
    "facts_of_reference_percent": "facts of the reference %",
    "flagged_percent": "any flag %",
}

# The number of groups of rows, from the lowest expected ROUGE-2 to the highest.
_GROUPS = 10
CONFIDENCE = 0.95  # share of the bootstrap means within an interval

Figure = Mapping[str, Any]


class Scores(TypedDict):
    """The content of rouge.json; docs/SCHEMA.md explains the entries."""

    variant: str
    confidence: float
    resamples: int
    rows: int
    rows_scored: int
    rows_without_reference: int
    rows_with_unreadable_reference: int
    rows_with_several_references: int
    truncated_share: float | None
    systems: list[dict[str, Any]]
    languages: list[dict[str, Any]]
    baseline: str | None
    differences: list[dict[str, Any]]
    unsplit: dict[str, int]
    unsplit_rows: int
    split_sentences: bool
    keyphrases: list[dict[str, Any]]
    measures: list[dict[str, Any]]
    expected: dict[str, Any] | None
    groups: NotRequired[dict[str, Any]]
    provenance: dict[str, Any]


def combine(parts: Iterable[RangeScores], options: EvaluateOptions) -> dict[str, Any]:
    """Computes the content of rouge.json, in any order of the parts."""
    parts = sorted(parts, key=lambda part: part.number)
    counts: Counter[str] = sum((part.counts for part in parts), Counter())
    most: Counter[str] = Counter()
    for part in parts:
        most |= part.most_sentences
    scores = _join(parts, "scores", len(rouge.MEASURES))
    measures = _join(parts, "measures", len(MEASURE_COLUMNS))
    flags: dict[str, Counter[str]] = {}
    for part in parts:
        for system, counted in part.flags.items():
            flags.setdefault(system, Counter()).update(counted)
    names = {
        system: f"{system}-{most[system]}" if system in _NAMED_BY_SENTENCES else system
        for system in scores
    }
    baseline = baseline_system(options.baseline) or (LEAD if LEAD in scores else "")
    resamples, is_split = options.resamples, options.split_sentences
    differences = _differences(scores, baseline, resamples)
    splitting = ", unsplit texts cut into sentences" if is_split else ""
    variants = [each for part in parts for each in part.variants]
    used = {variant for _, variant in variants if variant}
    judged = counts["judged"]
    figures = mean_figures(scores, tuple(rouge.MEASURES), resamples)
    phrases = _join(parts, "keyphrases", len(F1_COLUMNS))
    of_phrases = mean_figures(phrases, F1_COLUMNS, resamples)
    return {
        "variant": rouge.describe(used) + splitting if used else "no variant of ROUGE",
        "confidence": CONFIDENCE,
        "resamples": resamples,
        "rows": counts["rows"],
        "rows_scored": counts["scored"],
        "rows_without_reference": counts["rows"] - counts["scored"],
        "rows_with_unreadable_reference": sum(not variant for _, variant in variants),
        "rows_with_several_references": counts["several"],
        "truncated_share": counts["truncated"] / judged if judged else None,
        "systems": [
            {"system": names[system], "method": system, **each}
            for system, each in figures.items()
        ],
        "languages": _language_figures(variants, scores, names),
        "baseline": names.get(baseline),
        "differences": [
            {"system": names[system], **each} for system, each in differences.items()
        ],
        "unsplit": {name: counts[name] for name in TEXT_COLUMNS},
        "unsplit_rows": counts["unsplit"],
        "split_sentences": is_split,
        "keyphrases": [
            {"system": method, **each} for method, each in of_phrases.items()
        ],
        "measures": [
            {
                "system": name,
                "method": system,
                **mean_measures(measures[system], flags[system]),
            }
            for system, name in {**names, REFERENCE: REFERENCE}.items()
            if system in measures
        ],
        "expected": _expected_figures(measures.get(SUMMARY), scores.get(SUMMARY)),
    }


def _language_figures(
    variants: Sequence[tuple[str, str | None]],
    scores: Mapping[str, np.ndarray],
    names: Mapping[str, str],
) -> list[dict[str, Any]]:
    """The means of each language and variant of ROUGE, most rows first.

    Args:
      variants: the language and the variant of each row.
      scores: float64 [N, rouge.MEASURES] by system; NaN in rows without scores.
      names: the names of the systems in the tables.
    """
    rows: dict[tuple[str, str], list[int]] = {}
    for row, (language, variant) in enumerate(variants):
        if variant:
            rows.setdefault((language, variant), []).append(row)
    ordered = sorted(rows.items(), key=lambda item: (-len(item[1]), item[0]))
    figures = []
    for (language, variant), places in ordered:
        systems = []
        for system, values in scores.items():
            scored = values[places][:, _COMPARED_COLUMNS]
            scored = scored[~np.isnan(scored[:, 0])]
            if len(scored):
                means = dict(zip(COMPARED, scored.mean(axis=0).tolist(), strict=True))
                systems.append({"system": names[system], "rows": len(scored), **means})
        of_language = {"language": language, "variant": variant, "rows": len(places)}
        figures.append({**of_language, "systems": systems})
    return figures


def mixture(result: Mapping[str, Any]) -> str:
    """What the means of all rows mix: variants of ROUGE or languages, with their
    number. Empty if there is only one; unknown languages are not counted.
    """
    for key, name in (("variant", "variants of ROUGE"), ("language", "languages")):
        distinct = {each[key] for each in result["languages"]} - {UNKNOWN}
        if len(distinct) > 1:
            return f"{len(distinct)} {name}"
    return ""


def _expected_figures(
    measures: np.ndarray | None, scores: np.ndarray | None
) -> dict[str, Any] | None:
    """Compares the expected and the actual ROUGE-2 of rows.

    Args:
      measures: float64 [N, MEASURE_COLUMNS] of the shown summaries, or None.
      scores: float64 [N, rouge.MEASURES] of the shown summaries.

    Returns:
      The rank correlation, null if it is undefined, and the means of both over groups
      of equally many rows, from the lowest expectation to the highest. None if no row
      has an expectation.
    """
    if measures is None or scores is None:
        return None
    both = np.stack(
        [
            measures[:, MEASURE_COLUMNS.index(EXPECTED)],
            scores[:, list(rouge.MEASURES).index("rouge2")],
        ]
    )
    both = both[:, ~np.isnan(both).any(axis=0)]
    if not both.size:
        return None
    # Imported here, as it takes half a second and most runs have no expectation.
    from scipy.stats import spearmanr

    has_ranks = all(len(np.unique(values)) > 1 for values in both)
    by_expectation = both[:, np.argsort(both[0], kind="stable")]
    groups = np.array_split(by_expectation, min(_GROUPS, both.shape[1]), axis=1)
    return {
        "rank_correlation": float(spearmanr(*both).statistic) if has_ranks else None,  # pyright: ignore[reportAttributeAccessIssue]  # SciPy makes the class at import.
        "groups": [
            {"rows": group.shape[1], "expected": expected, "rouge2": rouge2}
            for group in groups
            for expected, rouge2 in [group.mean(axis=1).tolist()]
        ],
    }


def baseline_system(baseline: str) -> str:
    """The system of a name in the table: `lead` for `lead-3`."""
    return re.sub(r"^(lead|random)-\d+$", r"\1", baseline)


def _join(
    parts: Sequence[RangeScores], kind: str, columns: int
) -> dict[str, np.ndarray]:
    """Joins the arrays of each system over all scored rows, in table order."""
    arrays = [
        (getattr(part, kind), np.full((part.counts["scored"], columns), np.nan))
        for part in parts
    ]
    systems = sorted(
        {system for values, _ in arrays for system in values},
        key=lambda name: (_ORDER.index(name if name in _ORDER else ""), name),
    )
    return {
        system: np.concatenate([values.get(system, none) for values, none in arrays])
        for system in systems
    }


def mean_figures(
    scores: Mapping[str, np.ndarray], measures: Sequence[str], resamples: int
) -> dict[str, dict[str, Any]]:
    """The number of rows, and the mean and bootstrap interval of each measure.

    Systems with scores in the same rows are resampled together; systems without scores
    are left out.

    Args:
      scores: float64 [N, M] by system; NaN in rows without scores.
      measures: the names of the M columns.
      resamples: the number of bootstrap resamples.
    """
    systems_by_rows: dict[bytes, list[str]] = {}
    for system, values in scores.items():
        systems_by_rows.setdefault(np.isnan(values[:, 0]).tobytes(), []).append(system)
    figures: dict[str, dict[str, Any]] = {}
    for systems in systems_by_rows.values():
        has_scores = ~np.isnan(scores[systems[0]][:, 0])
        if not has_scores.any():
            continue
        columns = np.concatenate([scores[name][has_scores] for name in systems], axis=1)
        low, high = bootstrap_intervals(
            columns, resamples=resamples, confidence=CONFIDENCE
        )
        intervals = np.stack([columns.mean(axis=0), low, high], axis=-1)
        shape = (len(systems), len(measures), 3)
        for system, rows in zip(
            systems, intervals.reshape(shape).tolist(), strict=True
        ):
            figures[system] = {"rows": len(columns)}
            for measure, row in zip(measures, rows, strict=True):
                named = zip(("mean", "low", "high"), row, strict=True)
                figures[system][measure] = dict(named)
    return {system: figures[system] for system in scores if system in figures}


def _differences(
    scores: Mapping[str, np.ndarray], baseline: str, resamples: int
) -> dict[str, dict[str, Any]]:
    """The mean difference of each system from the baseline, over the rows in which both
    have a summary.
    """
    gains = {
        system: (values - scores[baseline])[:, _COMPARED_COLUMNS]
        for system, values in scores.items()
        if baseline and system != baseline
    }
    differences = mean_figures(gains, COMPARED, resamples)
    for figures in differences.values():
        for measure in COMPARED:
            low, high = figures[measure]["low"], figures[measure]["high"]
            figures[measure]["touches_zero"] = low <= 0 <= high
    return differences


def mean_measures(measures: np.ndarray, flags: Mapping[str, int]) -> dict[str, Any]:
    """The means of one system; shares are in per cent.

    Args:
      measures: float64 [N, MEASURE_COLUMNS]; NaN in some rows, not in all.
      flags: how many rows have each flag, and any.
    """
    columns = [column[~np.isnan(column)] for column in measures.T]
    rows, with_bigrams, _, compared, _ = map(len, columns)
    words, novel, repetition, with_facts, _ = map(math.fsum, columns)
    return {
        "rows": rows,
        "words": words / rows,
        "novel_2grams_percent": novel / with_bigrams if with_bigrams else None,
        "repetition_percent": 100 * repetition / rows,
        "facts_of_reference_percent": 100 * with_facts / compared if compared else None,
        "flagged_percent": 100 * flags["flagged"] / rows,
        "flags_percent": {flag: 100 * flags[flag] / rows for flag in FLAGS},
    }


def as_text(result: Mapping[str, Any]) -> str:
    """Formats the result as aligned text."""
    tables = [_aligned(cells) for cells in all_tables(result)]
    return "\n\n".join([*tables, "\n".join(notes(result))])


def as_markdown(result: Mapping[str, Any]) -> str:
    """Formats the result as Markdown tables."""
    tables = [_markdown(cells) for cells in all_tables(result)]
    return "\n\n".join([*tables, "  \n".join(notes(result))]) + "\n"


def _aligned(cells: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)


def _markdown(cells: Sequence[Sequence[str]]) -> str:
    head, *rows = ["| " + " | ".join(row) + " |" for row in cells]
    return "\n".join([head, "|---|---:|" + "---|" * (len(cells[0]) - 2), *rows])


def all_tables(result: Mapping[str, Any]) -> list[list[list[str]]]:
    """The tables as cells, each with a header; tables without rows are left out."""
    compared = {measure: rouge.MEASURES[measure] for measure in COMPARED}
    counts = {name: name.replace("f1_at_", "F1@") for name in F1_COLUMNS}
    tables = [
        _table("system", result["systems"], rouge.MEASURES),
        _language_cells(result) if mixture(result) else [],
        _table(f"minus {result['baseline']}", result["differences"], compared, "+"),
        _measure_cells(result) if result["measures"] else [],
        _table("keyphrases", result["keyphrases"], counts),
        _expected_cells(result["expected"]),
    ]
    return [cells for cells in tables if len(cells) > 1]


def _table(
    title: str, rows: Iterable[Figure], columns: Mapping[str, str], sign: str = ""
) -> list[list[str]]:
    cells = [[title, "rows", *columns.values()]]
    for row in rows:
        figures = [_interval(row[name], sign) for name in columns]
        cells.append([row["system"], str(row["rows"]), *figures])
    return cells


def _interval(figure: Figure, sign: str) -> str:
    mean, low, high = (
        f"{100 * figure[name]:{sign}.1f}" for name in ("mean", "low", "high")
    )
    mark = "" if figure.get("touches_zero", True) else " *"
    return f"{mean} [{low}, {high}]{mark}"


def _language_cells(result: Mapping[str, Any]) -> list[list[str]]:
    """The table of languages as cells, with a column for each system."""
    systems = [system["system"] for system in result["systems"]]
    cells = [["language", "rows", "variant", *systems]]
    for of_language in result["languages"]:
        rows = of_language["rows"]
        means = {}
        for each in of_language["systems"]:
            figures = "/".join(f"{100 * each[measure]:.1f}" for measure in COMPARED)
            some = f" ({each['rows']})" if each["rows"] < rows else ""
            means[each["system"]] = figures + some
        head = [of_language["language"], str(rows), of_language["variant"]]
        cells.append([*head, *(means.get(system, "-") for system in systems)])
    return cells


def _measure_cells(result: Mapping[str, Any]) -> list[list[str]]:
    """The table of measures as cells, with a column for each system."""
    systems = result["measures"]
    cells = [
        ["measure", *(system["system"] for system in systems)],
        ["rows", *(f"{system['rows']:3d}" for system in systems)],
    ]
    for measure, title in _MEASURE_ROWS.items():
        cells.append([title, *(_mean(system[measure]) for system in systems)])
    for flag in FLAGS:
        shares = [system["flags_percent"][flag] for system in systems]
        if any(shares):
            cells.append([f"{flag} %", *map(_mean, shares)])
    return cells


def _expected_cells(expected: Mapping[str, Any] | None) -> list[list[str]]:
    """The table of expected ROUGE-2 as cells, with a line for each group of rows."""
    cells = [["summary, by expected_rouge2", "rows", "expected", "ROUGE-2"]]
    for group in expected["groups"] if expected else ():
        figures = [f"{100 * group[name]:5.1f}" for name in ("expected", "rouge2")]
        cells.append(["", f"{group['rows']:4d}", *figures])
    return cells


def _mean(value: float | None) -> str:
    # Same width up to 999.9, so that the decimal points are aligned.
    return "    -" if value is None else f"{value:5.1f}"


def notes(result: Mapping[str, Any]) -> list[str]:
    """Notes on how to read the tables."""
    lines = [
        f"{result['variant']}; x100, {100 * result['confidence']:g} % intervals "
        f"from {result['resamples']} bootstrap samples",
        f"{rouge.MEASURES['rougeL']}: each text as one sequence of words; ROUGE-L in "
        "papers on news is ROUGE-Lsum here",
    ]
    if mixed := mixture(result):
        lines += [
            f"means over all rows mix {mixed}, whose scores are not comparable",
            "by language: ROUGE-1/ROUGE-2/ROUGE-Lsum; (n): the system has only n rows",
        ]
    if unread := result["rows_with_unreadable_reference"]:
        lines.append(
            f"warning: {unread} of {result['rows_scored']} references are not scored: "
            "beside an English article, most of their letters and digits are not a to "
            "z and 0 to 9; or they have no letters and digits"
        )
    if result["differences"]:
        lines.append(
            "*: significant: the interval of the paired bootstrap, which draws the "
            "same rows for both systems, excludes zero"
        )
    if any(system["method"] == ORACLE for system in result["systems"]):
        lines.append(
            "oracle: an upper bound, with sentences chosen to match the reference"
        )
    if result["measures"]:
        lines += [
            "novel bigrams: pairs of words that are not in the article; repeated "
            "trigrams: occur earlier in the same text; both are means over the rows",
            "facts of the reference: share of rows whose numbers, dates and names are "
            "all in the reference too",
            "flags: share of rows with the flag; flags of no row are left out",
        ]
    if result["expected"] and result["expected"]["rank_correlation"] is not None:
        correlation = result["expected"]["rank_correlation"]
        lines.append(
            f"expected_rouge2: rank correlation with ROUGE-2 {correlation:.2f} over "
            "the rows of `summary`"
        )
    if result["unsplit_rows"] and not result["split_sentences"]:
        unsplit = result["unsplit"]
        counts = ", ".join(f"{n} {unsplit[n]}" for n in TEXT_COLUMNS if unsplit[n])
        lines.append(
            f"warning: ROUGE-Lsum of {result['unsplit_rows']} of "
            f"{result['rows_scored']} rows is too low, as several sentences are on "
            f"one line ({counts}); give --split_sentences"
        )
    if several := result["rows_with_several_references"]:
        lines.append(
            f"rows with several references: {several}; for each measure of ROUGE the "
            "best one counts"
        )
    if groups := result.get("groups"):
        lines.append(f"groups scored: {result['rows_scored']}")
        for name, missing in groups.items():
            named = f" ({', '.join(map(repr, missing['first']))})"
            title = f"{name.replace('_', ' ')}, with the first examples"
            lines.append(f"{title}: {missing['count']}{named * bool(missing['count'])}")
        return lines
    truncated, share = "no network ran", result["truncated_share"]
    if share is not None:
        truncated = f"{100 * share:.1f} % of the documents were cut for the network"
    return [
        *lines,
        f"rows scored: {result['rows_scored']}; "
        f"without a reference: {result['rows_without_reference']}",
        f"truncated: {truncated}",
    ]
