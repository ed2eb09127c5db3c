"""Scoring: rows of a run -> ROUGE and measures of every system in every row."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from precis.model import rouge
from precis.model.keyphrases.references import f1
from precis.model.quality.fallback import ABSTRACTIVE
from precis.model.text.sentences import split_sentences
from precis.pipelines.evaluate.drawn_rows import DrawnRow
from precis.pipelines.evaluate.measures import (
    REFERENCE,
    SUMMARY,
    Measures,
    MeasureSums,
    sum_measures,
)
from precis.pipelines.tables.row_ranges import has_reference
from precis.pipelines.tables.schema import SCORES_SCHEMA

# Texts beside the extractive summaries, which are made of sentences, one a line: these
# may hold several sentences on a line.
TEXT_COLUMNS = {
    REFERENCE: "reference_summary",
    ABSTRACTIVE: "abstractive_summary",
    SUMMARY: "summary",
}
KEYPHRASE_COUNTS = (5, 10)

NEEDED_COLUMNS = (
    "document_id",
    "run_id",
    "reference_summary",
    "extractive",
    "abstractive_summary",
    "truncated",
)
# Not in runs of the first schema.
LATER_COLUMNS = ("summary", "keyphrases", "reference_keyphrases")
# In the folder of an evaluation: the scores of every row.
SCORES_FOLDER = "scores"


class RangeScores(NamedTuple):
    """The scores of one range of rows; N of them have a reference and are scored.

    Attributes:
      number: the position of the range, by which results are ordered.
      rows: rows read.
      scored: N.
      judged, truncated: scored rows that a network read, and those of them that it did
          not read to the end.
      most_sentences: for each extractive method, how many sentences it chose at most.
      unsplit: for each of `TEXT_COLUMNS`, in how many scored rows it holds several
          sentences and no line break.
      unsplit_rows: the scored rows that are counted there at least once.
      scores: for each system a float64 array [N, 4]: `rouge.MEASURES` in the order of
          the rows; NaN where the system has no summary.
      keyphrases: for each keyphrase method a float64 array [M, 2]: F1 at 5 and at 10 of
          the M rows with reference phrases.
      measures: for each system and the reference the sums of their measures over the
          scored rows.
      drawn: the rows of the range that may be among those to show.
    """

    number: int
    rows: int
    scored: int
    judged: int
    truncated: int
    most_sentences: dict[str, int]
    unsplit: dict[str, int]
    unsplit_rows: int
    scores: dict[str, np.ndarray]
    keyphrases: dict[str, np.ndarray]
    measures: dict[str, MeasureSums]
    drawn: list[DrawnRow]


class ScoredRows(NamedTuple):
    """The scores of a range of rows.

    Attributes:
      table: one row for each scored document and system, as in `SCORES_SCHEMA`, and
          one for each reference that is measured.
      scores: what the table of the evaluation is made from.
    """

    table: pa.Table
    scores: RangeScores


def score_rows(
    rows: Sequence[Mapping[str, Any]],
    measures: Sequence[Mapping[str, Measures]],
    drawn: Sequence[DrawnRow] = (),
    *,
    number: int,
    split_sentences: bool,
) -> ScoredRows:
    """Scores the summaries of each system in the rows that have a reference.

    Args:
      rows: with `NEEDED_COLUMNS` and those of `LATER_COLUMNS` that they have.
      measures: of the systems of each row, as far as the run has them.
      drawn: as in `RangeScores`.
      number: the position of the range.
      split_sentences: whether texts with several sentences and no line break are cut
          before they are scored.
    """
    rows_to_score = [row for row in rows if has_reference(row)]
    measured = [
        of_row for row, of_row in zip(rows, measures, strict=True) if has_reference(row)
    ]
    texts = _texts_of_rows(rows_to_score)
    split_texts = [_split_texts(row) for row in texts]
    unsplit = [
        [system for system in TEXT_COLUMNS if row.get(system) != split.get(system)]
        for row, split in zip(texts, split_texts, strict=True)
    ]
    scored = [_score(row) for row in (split_texts if split_sentences else texts)]
    truncated = [row["truncated"] for row in rows_to_score]
    truncated_by_network = [value for value in truncated if value is not None]
    scores = RangeScores(
        number=number,
        rows=len(rows),
        scored=len(rows_to_score),
        judged=len(truncated_by_network),
        truncated=sum(truncated_by_network),
        most_sentences=_most_sentences(rows_to_score),
        unsplit={
            system: sum(system in row for row in unsplit) for system in TEXT_COLUMNS
        },
        unsplit_rows=sum(map(bool, unsplit)),
        scores=_arrays(scored),
        keyphrases=keyphrase_f1(rows),
        measures=sum_measures(measured),
        drawn=list(drawn),
    )
    return ScoredRows(_table(rows_to_score, scored, measured), scores)


def _texts_of_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """The texts of each row by system; each has all the extractive methods."""
    methods = sorted(
        {sentence["method"] for row in rows for sentence in row["extractive"] or ()}
    )
    return [system_texts(row, methods) for row in rows]


def _split_texts(texts: Mapping[str, str]) -> dict[str, str]:
    """The texts of a row, those of `TEXT_COLUMNS` with one sentence a line."""
    split = {
        system: one_sentence_a_line(texts[system])
        for system in TEXT_COLUMNS
        if system in texts
    }
    return {**texts, **split}


def system_texts(row: Mapping[str, Any], methods: Iterable[str] = ()) -> dict[str, str]:
    """The reference and every system's summary of a row, under their names.

    One of the given extractive methods that chose nothing has an empty summary: left
    out, it would be judged by its easier rows alone.
    """
    written = {
        system: row[column]
        for system, column in TEXT_COLUMNS.items()
        if row.get(column) is not None
    }
    return {
        **dict.fromkeys(methods, ""),
        **extractive_summaries(row["extractive"] or ()),
        **written,
    }


def extractive_summaries(chosen: Iterable[Mapping[str, Any]]) -> dict[str, str]:
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
    if "\n" in text.strip():
        return text
    sentences = split_sentences(text)
    if len(sentences) < 2:
        return text
    return "\n".join(sentence.text for sentence in sentences)


def _score(texts: Mapping[str, str]) -> dict[str, list[float]]:
    """The F1 of `rouge.MEASURES` for every system of a row."""
    reference = rouge.Reference(texts[REFERENCE])
    scored = {
        system: reference.score(text)
        for system, text in texts.items()
        if system != REFERENCE
    }
    return {
        system: [scores[measure].fmeasure for measure in rouge.MEASURES]
        for system, scores in scored.items()
    }


def _table(
    rows: Sequence[Mapping[str, Any]],
    scored: Sequence[Mapping[str, list[float]]],
    measured: Sequence[Mapping[str, Measures]],
) -> pa.Table:
    """One row for each document and system, in the order of the documents.

    The reference has measures and no scores.
    """
    no_scores = [None] * len(rouge.MEASURES)
    not_measured = [None] * len(Measures._fields)
    lines = [
        (
            row["document_id"],
            row["run_id"],
            system,
            *scores_of_row.get(system, no_scores),
            *measures_of_row.get(system, not_measured),
        )
        for row, scores_of_row, measures_of_row in zip(
            rows, scored, measured, strict=True
        )
        for system in (
            *scores_of_row,
            *([REFERENCE] if REFERENCE in measures_of_row else []),
        )
    ]
    columns = zip(*lines, strict=True) if lines else [()] * len(SCORES_SCHEMA)
    arrays = [
        pa.array(values, field.type)
        for values, field in zip(columns, SCORES_SCHEMA, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=SCORES_SCHEMA)


def _arrays(scored: Sequence[Mapping[str, list[float]]]) -> dict[str, np.ndarray]:
    """For each system float64 [N, 4], NaN where it has no summary."""
    missing = [np.nan] * len(rouge.MEASURES)
    return {
        system: np.array([row.get(system, missing) for row in scored])
        for system in sorted({name for row in scored for name in row})
    }


def _most_sentences(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """For each extractive method the most sentences that it chose in a row."""
    most: dict[str, int] = {}
    for row in rows:
        for sentence in row["extractive"] or ():
            method = sentence["method"]
            most[method] = max(most.get(method, 0), sentence["rank"])
    return most


def keyphrase_f1(rows: Iterable[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """The F1 of the best 5 and 10 phrases of each keyphrase method.

    Returns:
      For each method float64 [M, 2], of the M rows that have reference phrases.
    """
    rows_to_score = [
        row
        for row in rows
        if row.get("keyphrases") is not None and row.get("reference_keyphrases")
    ]
    methods = sorted(
        {phrase["method"] for row in rows_to_score for phrase in row["keyphrases"]}
    )
    return {
        method: np.array([_f1_of_phrases(row, method) for row in rows_to_score])
        for method in methods
    }


def _f1_of_phrases(row: Mapping[str, Any], method: str) -> list[float]:
    """The F1 of a method's best phrases in a row, for each of `KEYPHRASE_COUNTS`."""
    best_first = sorted(row["keyphrases"], key=lambda phrase: -phrase["score"])
    phrases = [phrase["phrase"] for phrase in best_first if phrase["method"] == method]
    references = row["reference_keyphrases"]
    return [f1(phrases[:count], references) for count in KEYPHRASE_COUNTS]
