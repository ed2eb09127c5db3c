"""Scoring: rows of Parquet -> ROUGE of every system in every row, as arrays and as
`scores/part-*.parquet`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from precis.model import files, rouge
from precis.model.keyphrases.references import f1
from precis.model.text.sentences import split_sentences
from precis.pipelines import progress
from precis.pipelines.row_ranges import RowRange, has_reference, read_rows
from precis.pipelines.schema import SCORES_SCHEMA, write_parquet
from precis.pipelines.tasks import part_name

SCORES_FOLDER = "scores"
REFERENCE, ABSTRACTIVE, SUMMARY = "reference", "abstractive", "summary"
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


class RangeScores(NamedTuple):
    """What one task yields. Rows are scored if they have a reference; there are N of
    them.

    Attributes:
      number: the task's position, by which results are ordered.
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


def score_rows(
    rows: RowRange, *, tasks: int, folder: str, split_sentences: bool
) -> RangeScores:
    """Scores each system's summaries in the rows of a task and publishes its part of
    `scores/`, if it has any.

    Args:
      rows: the task.
      tasks: how many tasks there are.
      folder: where the evaluation goes.
      split_sentences: whether texts with several sentences and no line break are cut
          before they are scored.
    """
    read = read_rows(rows, (*NEEDED_COLUMNS, *LATER_COLUMNS))
    scored = [row for row in read if has_reference(row)]
    methods = sorted(
        {sentence["method"] for row in scored for sentence in row["extractive"] or ()}
    )
    texts, unsplit = [], []
    for row in scored:
        own = system_texts(row, methods)
        cut = {
            system: one_sentence_a_line(own[system])
            for system in TEXT_COLUMNS
            if system in own
        }
        unsplit.append([system for system in cut if cut[system] != own[system]])
        texts.append({**own, **cut} if split_sentences else own)
    found = [_score(own) for own in texts]
    if scored:
        write_parquet(
            files.join(folder, SCORES_FOLDER, part_name(rows.number, tasks)),
            [_table(scored, found)],
            SCORES_SCHEMA,
        )
    progress.advance(len(read), len(read))
    judged = [row["truncated"] for row in scored if row["truncated"] is not None]
    return RangeScores(
        number=rows.number,
        rows=len(read),
        scored=len(scored),
        judged=len(judged),
        truncated=sum(judged),
        most_sentences=_most_sentences(scored),
        unsplit={
            system: sum(system in row for row in unsplit) for system in TEXT_COLUMNS
        },
        unsplit_rows=sum(map(bool, unsplit)),
        scores=_arrays(found),
        keyphrases=keyphrase_f1(read),
    )


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
        lines.setdefault(sentence["method"], []).append(
            " ".join(sentence["text"].split())
        )
    return {method: "\n".join(own) for method, own in lines.items()}


def one_sentence_a_line(text: str) -> str:
    """A text with several sentences and no line break, with its sentences on lines of
    their own; any other as it is.
    """
    if "\n" in text.strip():
        return text
    found = split_sentences(text)
    return "\n".join(sentence.text for sentence in found) if len(found) > 1 else text


def _score(texts: Mapping[str, str]) -> dict[str, list[float]]:
    """The F1 of `rouge.MEASURES` for every system of a row."""
    reference = rouge.Reference(texts[REFERENCE])
    found = {
        system: reference.score(text)
        for system, text in texts.items()
        if system != REFERENCE
    }
    return {
        system: [scores[measure].fmeasure for measure in rouge.MEASURES]
        for system, scores in found.items()
    }


def _table(
    rows: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, list[float]]]
) -> pa.Table:
    """One row for each document and system, in the order of the documents."""
    lines = [
        (row["document_id"], row["run_id"], system, *figures)
        for row, own in zip(rows, found, strict=True)
        for system, figures in own.items()
    ]
    columns = zip(*lines, strict=True) if lines else [()] * len(SCORES_SCHEMA)
    arrays = [
        pa.array(values, field.type)
        for values, field in zip(columns, SCORES_SCHEMA, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=SCORES_SCHEMA)


def _arrays(found: Sequence[Mapping[str, list[float]]]) -> dict[str, np.ndarray]:
    """For each system float64 [N, 4], NaN where it has no summary."""
    missing = [np.nan] * len(rouge.MEASURES)
    return {
        system: np.array([own.get(system, missing) for own in found])
        for system in sorted({name for own in found for name in own})
    }


def _most_sentences(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    most: dict[str, int] = {}
    for row in rows:
        for sentence in row["extractive"] or ():
            most[sentence["method"]] = max(
                most.get(sentence["method"], 0), sentence["rank"]
            )
    return most


def keyphrase_f1(rows: Iterable[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """For each keyphrase method float64 [M, 2]: the F1 of its best 5 and 10 phrases in
    the M rows that have reference phrases.
    """
    found: dict[str, list[list[float]]] = {}
    marked = [
        row
        for row in rows
        if row.get("keyphrases") is not None and row.get("reference_keyphrases")
    ]
    methods = sorted(
        {phrase["method"] for row in marked for phrase in row["keyphrases"]}
    )
    for row in marked:
        best = sorted(row["keyphrases"], key=lambda phrase: -phrase["score"])
        for method in methods:
            phrases = [
                phrase["phrase"] for phrase in best if phrase["method"] == method
            ]
            found.setdefault(method, []).append(
                [
                    f1(phrases[:count], row["reference_keyphrases"])
                    for count in KEYPHRASE_COUNTS
                ]
            )
    return {method: np.array(figures) for method, figures in found.items()}
