"""Scoring: rows of a run -> ROUGE and measures of every system in every row.

A system is an extractive method, `abstractive`, or `summary`, the text that is shown.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from precis.model import rouge
from precis.model.keyphrases.references import f1
from precis.model.quality.flags import ABSTRACTIVE, FLAGS, SOURCE
from precis.model.text.sentences import split_sentences
from precis.pipelines.tables.part_files import has_reference
from precis.pipelines.tables.schema import SCORES_SCHEMA

REFERENCE = "reference"
SUMMARY = "summary"
# Texts beside the extractive summaries, which are made of sentences, one a line: these
# may hold several sentences on a line.
TEXT_COLUMNS = {
    REFERENCE: "reference_summary",
    ABSTRACTIVE: "abstractive_summary",
    SUMMARY: "summary",
}
KEYPHRASE_COUNTS = (5, 10)
# What `precis summarize` has measured of a text, because it has the article.
MEASURED = ("words", "novel_2grams_percent", "repetition_rate", "flags")

NEEDED_COLUMNS = (
    "document_id",
    "run_id",
    "reference_summary",
    "extractive",
    "abstractive_summary",
    "truncated",
)
# Not in runs of the first schema.
LATER_COLUMNS = (
    *("summary", "keyphrases", "reference_keyphrases"),
    *("extractive_method", "extractive_quality", "abstractive_quality"),
    *("other_quality", "reference_quality", "summary_method", "quality_flags"),
)
# In the folder of an evaluation: the scores of every row.
SCORES_FOLDER = "scores"

Row = Mapping[str, Any]


class RangeScores(NamedTuple):
    """The scores of one range of rows; N of them have a reference and are scored.

    Attributes:
      number: the position of the range, by which results are ordered.
      counts: `rows` that were read and N that were `scored`; the `judged` of these that
          a network read, and those that it `truncated`; for each of `TEXT_COLUMNS` the
          scored rows in which it holds several sentences and no line break, and the
          rows that are counted there at least once as `unsplit`.
      most_sentences: for each extractive method, how many sentences it chose at most.
      scores: for each system a float64 array [N, 4]: `rouge.MEASURES` in the order of
          the rows; NaN where the system has no summary.
      keyphrases: for each keyphrase method a float64 array [M, 2]: F1 at 5 and at 10 of
          the M rows with reference phrases.
      measures: for each system and the reference what `sum_measures` returns.
    """

    number: int
    counts: Counter[str]
    most_sentences: Counter[str]
    scores: dict[str, np.ndarray]
    keyphrases: dict[str, np.ndarray]
    measures: dict[str, list[float]]


def score_rows(
    rows: Sequence[Row],
    *,
    number: int,
    split_sentences: bool,
) -> tuple[pa.Table, RangeScores]:
    """Scores the summaries of each system in the rows that have a reference.

    Args:
      rows: with `NEEDED_COLUMNS` and those of `LATER_COLUMNS` that they have.
      number: the position of the range.
      split_sentences: whether texts with several sentences and no line break are cut
          before they are scored.

    Returns:
      A row of `SCORES_SCHEMA` for each scored document and system, and for each
      reference that is measured; and what the evaluation is made from.
    """
    scored_rows = [row for row in rows if has_reference(row)]
    chosen = [item for row in scored_rows for item in row["extractive"] or ()]
    most_sentences: Counter[str] = Counter()
    for item in chosen:
        method = item["method"]
        most_sentences[method] = max(most_sentences[method], item["rank"])
    texts = [system_texts(row, sorted(most_sentences)) for row in scored_rows]
    split = [
        {
            system: one_sentence_a_line(text) if system in TEXT_COLUMNS else text
            for system, text in row.items()
        }
        for row in texts
    ]
    unsplit = [
        [system for system in TEXT_COLUMNS if row.get(system) != cut.get(system)]
        for row, cut in zip(texts, split, strict=True)
    ]
    scores = [_score(row) for row in (split if split_sentences else texts)]
    measured = [measures_of_row(row) for row in scored_rows]
    judged = [row["truncated"] for row in scored_rows if row["truncated"] is not None]
    counts = Counter(
        rows=len(rows),
        scored=len(scored_rows),
        judged=len(judged),
        truncated=sum(judged),
        unsplit=sum(map(bool, unsplit)),
    )
    counts.update(system for row in unsplit for system in row)
    lines = [
        {
            "document_id": row["document_id"],
            "run_id": row["run_id"],
            "system": system,
            **of_row.get(system, {}),
            **measures.get(system, {}),
        }
        for row, of_row, measures in zip(scored_rows, scores, measured, strict=True)
        for system in (*of_row, *({REFERENCE} & measures.keys()))
    ]
    return pa.Table.from_pylist(lines, schema=SCORES_SCHEMA), RangeScores(
        number,
        counts,
        most_sentences,
        _arrays(scores),
        keyphrase_f1(rows),
        sum_measures(measured),
    )


def system_texts(row: Row, methods: Iterable[str] = ()) -> dict[str, str]:
    """The reference and every system's summary of a row, under their names.

    One of the given extractive methods that chose nothing has an empty summary: left
    out, it would be judged by its easier rows alone.
    """
    written = {
        system: row[column]
        for system, column in TEXT_COLUMNS.items()
        if row.get(column) is not None
    }
    extracts = extractive_summaries(row["extractive"] or ())
    return {**dict.fromkeys(methods, ""), **extracts, **written}


def extractive_summaries(chosen: Iterable[Row]) -> dict[str, str]:
    """Each method's summary: its sentences in document order, one a line."""
    lines: dict[str, list[str]] = {}
    for sentence in sorted(chosen, key=lambda sentence: sentence["start"]):
        # A sentence may run over a line break of the article, which would cut it in two
        # for ROUGE-Lsum.
        line = " ".join(sentence["text"].split())
        lines.setdefault(sentence["method"], []).append(line)
    return {method: "\n".join(sentences) for method, sentences in lines.items()}


def one_sentence_a_line(text: str) -> str:
    """Cuts a text with several sentences and no line break into lines.

    Any other text is returned as it is.
    """
    sentences = [] if "\n" in text.strip() else split_sentences(text)
    if len(sentences) < 2:
        return text
    return "\n".join(sentence.text for sentence in sentences)


def _score(texts: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """The F1 of `rouge.MEASURES` for every system of a row."""
    reference = rouge.Reference(texts[REFERENCE])
    return {
        system: {
            measure: score.fmeasure for measure, score in reference.score(text).items()
        }
        for system, text in texts.items()
        if system != REFERENCE
    }


def _arrays(scores: Sequence[Mapping[str, Row]]) -> dict[str, np.ndarray]:
    """For each system float64 [N, 4], NaN where it has no summary."""
    missing = dict.fromkeys(rouge.MEASURES, np.nan)
    of_systems = {
        system: [row.get(system, missing) for row in scores]
        for system in sorted({name for row in scores for name in row})
    }
    return {
        system: np.array([[row[name] for name in rouge.MEASURES] for row in rows])
        for system, rows in of_systems.items()
    }


def measures_of_row(row: Row) -> dict[str, dict[str, Any]]:
    """The measures of every system and of the reference, as far as a row has them.

    A file may be from elsewhere, so that a column holds something else.
    """
    others = row.get("other_quality") or ()
    stored = {
        row.get("extractive_method"): row.get("extractive_quality"),
        ABSTRACTIVE: row.get("abstractive_quality"),
        REFERENCE: row.get("reference_quality"),
        **{each["system"]: each for each in others if isinstance(each, dict)},
    }
    measured = {
        system: {name: measures[name] for name in MEASURED}
        for system, measures in stored.items()
        if system and isinstance(measures, dict) and measures.keys() >= set(MEASURED)
    }
    shown, flags = (
        measured.get(row.get("summary_method") or ""),
        row.get("quality_flags"),
    )
    if shown and flags is not None:
        measured[SUMMARY] = {**shown, "flags": flags}
    measured.pop(SOURCE, None)  # It is no system of its own.
    return measured


def sum_measures(rows: Iterable[Mapping[str, Row]]) -> dict[str, list[float]]:
    """The sums over the rows in which a system is measured.

    Returns:
      For each system the sums of the words, the percentage of novel bigrams and the
      repetition rate; how many rows are measured, have a bigram, have any flag, and
      have each flag of `FLAGS`.
    """
    by_system: dict[str, list[list[float]]] = {}
    for row in rows:
        for system, each in row.items():
            words, novel, repetition, flags = (each[name] for name in MEASURED)
            measures = [words, novel or 0.0, repetition, 1, novel is not None]
            has_flags = [bool(flags), *(flag in flags for flag in FLAGS)]
            by_system.setdefault(system, []).append([*measures, *has_flags])
    return {
        system: [math.fsum(column) for column in zip(*lines, strict=True)]
        for system, lines in by_system.items()
    }


def keyphrase_f1(rows: Iterable[Row]) -> dict[str, np.ndarray]:
    """The F1 of the best 5 and 10 phrases of each keyphrase method.

    Returns:
      For each method float64 [M, 2], of the M rows that have reference phrases.
    """
    scored_rows = [
        row
        for row in rows
        if row.get("keyphrases") is not None and row.get("reference_keyphrases")
    ]
    methods = {phrase["method"] for row in scored_rows for phrase in row["keyphrases"]}
    return {
        method: np.array([_f1_of_phrases(row, method) for row in scored_rows])
        for method in sorted(methods)
    }


def _f1_of_phrases(row: Row, method: str) -> list[float]:
    """The F1 of a method's best phrases in a row, for each of `KEYPHRASE_COUNTS`."""
    best_first = sorted(row["keyphrases"], key=lambda phrase: -phrase["score"])
    phrases = [phrase["phrase"] for phrase in best_first if phrase["method"] == method]
    references = row["reference_keyphrases"]
    return [f1(phrases[:count], references) for count in KEYPHRASE_COUNTS]
