"""Scores rows of a run: ROUGE and measures of every system in every row.

A system is an extractive method, `abstractive`, or `summary` (the shown text).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from precis.model import rouge
from precis.model.keyphrases.references import f1
from precis.model.quality.facts import SourceFacts, find_facts
from precis.model.quality.flags import ABSTRACTIVE, FLAGS, SOURCE
from precis.model.text.language import ENGLISH, is_english, language_of
from precis.model.text.normalization import normalise
from precis.model.text.sentences import split_sentences
from precis.model.text.wrapping import shown_line
from precis.model.tokenization.imported import PEGASUS_BREAK
from precis.pipelines.tables.output_files import has_reference
from precis.pipelines.tables.schema import GROUP_SCORES_SCHEMA, SCORES_SCHEMA

# The language of rows whose language is not known.
UNKNOWN = "unknown"
REFERENCE = "reference"
SUMMARY = "summary"
# Texts other than extractive summaries, which have one sentence a line: these may have
# several sentences on a line.
TEXT_COLUMNS = {
    REFERENCE: "reference_summary",
    ABSTRACTIVE: "abstractive_summary",
    SUMMARY: "summary",
}
KEYPHRASE_COUNTS = (5, 10)
F1_COLUMNS = tuple(f"f1_at_{count}" for count in KEYPHRASE_COUNTS)
# The measures that `precis summarize` stored, because they need the article.
MEASURED = ("words", "novel_2grams_percent", "repetition_rate", "flags")
# A measure of the texts only, without the article.
HAS_FACTS = "has_facts_of_reference"
# A measure of the shown summary.
EXPECTED = "expected_rouge2"
MEASURE_COLUMNS = (*MEASURED[:3], HAS_FACTS, EXPECTED)

NEEDED_COLUMNS = (
    "document_id",
    "run_id",
    "reference_summary",
    "extractive",
    "abstractive_summary",
    "truncated",
)
# Columns that runs of the first schema lack.
LATER_COLUMNS = (
    *("summary", "other_references"),
    *("keyphrases", "reference_keyphrases", EXPECTED),
    *("extractive_method", "extractive_quality", "abstractive_quality"),
    *("other_quality", "reference_quality", "summary_method", "quality_flags"),
    "language",
)
# The folder, in an evaluation, of the scores of every row.
SCORES_FOLDER = "scores"

Row = Mapping[str, Any]


class RangeScores(NamedTuple):
    """The scores of a range of rows, of which N have a reference and are scored.

    Each array is float64 [N, M] for a system, in row order; NaN if the system has no
    value.

    Attributes:
      number: the position of the range, for the order of results.
      counts: `rows` read and N `scored`; of these, `several` with several references,
          `judged` with a written summary, and `truncated` of those; for each of
          `TEXT_COLUMNS`, the scored rows whose text has several sentences and no line
          break; and `unsplit`, the rows that are counted there at least once.
      variants: the language of each scored row and its variant of ROUGE, None if ROUGE
          cannot read its references.
      most_sentences: the most sentences that each extractive method chose.
      scores: an array for each system with the columns `rouge.MEASURES`.
      keyphrases: an array for each keyphrase method with the columns `F1_COLUMNS`.
      measures: an array for each system and the reference, of `MEASURE_COLUMNS`.
      flags: for each of them, how many rows have a flag, and any, as `flagged`.
    """

    number: int
    counts: Counter[str]
    variants: list[tuple[str, str | None]]
    most_sentences: Counter[str]
    scores: dict[str, np.ndarray]
    keyphrases: dict[str, np.ndarray]
    measures: dict[str, np.ndarray]
    flags: dict[str, Counter[str]]


def score_rows(
    rows: Sequence[Row], *, number: int, split_sentences: bool
) -> tuple[pa.Table, RangeScores]:
    """Scores the summaries of each system in the rows with a reference.

    Args:
      rows: rows with `NEEDED_COLUMNS` and, if present, `LATER_COLUMNS`; or rows of
          groups from `join_references`.
      number: the position of the range.
      split_sentences: whether texts with several sentences and no line break are split
          before they are scored.

    Returns:
      A row of `SCORES_SCHEMA` (for groups, `GROUP_SCORES_SCHEMA`) for each scored
      document and system, and for each measured reference; and the data for the
      evaluation.
    """
    scored_rows = [row for row in rows if has_reference(row)]
    chosen = [item for row in scored_rows for item in row.get("extractive") or ()]
    most_sentences: Counter[str] = Counter()
    for item in chosen:
        method = item["method"]
        most_sentences[method] = max(most_sentences[method], item["rank"])
    texts = [
        system_texts(row, _methods_of(row, sorted(most_sentences)))
        for row in scored_rows
    ]
    truncated = [row.get("truncated") for row in scored_rows]
    judged = [each for each in truncated if each is not None]
    counts = Counter(
        rows=len(rows),
        scored=len(scored_rows),
        judged=len(judged),
        truncated=sum(judged),
    )
    scores = []
    variants = []
    for scored, row in zip(scored_rows, texts, strict=True):
        # Rows of groups have no language.
        detected = None if "language" in scored else language_of(" ".join(row.values()))
        spoken = scored.get("language", detected)
        language = spoken or ENGLISH
        lines = {
            system: one_sentence_a_line(row[system], language)
            for system in TEXT_COLUMNS
            if system in row
        }
        unsplit = [system for system in lines if lines[system] != row[system]]
        counts.update(unsplit, unsplit=bool(unsplit))
        stored = scored.get("other_references") or ()
        others = [text.replace(PEGASUS_BREAK, "\n") for text in stored]
        if split_sentences:
            row.update(lines)
            others = [one_sentence_a_line(text, language) for text in others]
        counts["several"] += bool(others)
        references = rouge_references((row[REFERENCE], *others), spoken)
        scores.append(_score(row, references))
        variant = references[0].variant if references else None
        variants.append((spoken or UNKNOWN, variant))
    measured = [measures_of_row(row) for row in scored_rows]
    for scored, of_row, measures in zip(scored_rows, texts, measured, strict=True):
        add_facts_of_reference(of_row, measures, scored.get("language"))
    phrases = [phrase for row in scored_rows for phrase in row.get("keyphrases") or ()]
    phrase_methods = {phrase["method"] for phrase in phrases}
    flags: dict[str, Counter[str]] = {}
    for of_row in measured:
        for system, measures in of_row.items():
            named = {"flagged", *FLAGS} & {name for name in measures if measures[name]}
            flags.setdefault(system, Counter()).update(named)
    table = [
        {
            **{name: row[name] for name in ("document_id", "group_id") if name in row},
            "run_id": row["run_id"],
            "system": system,
            "rouge_variant": variant if system in of_row else None,
            **of_row.get(system, {}),
            **measures.get(system, {}),
        }
        for row, (_, variant), of_row, measures in zip(
            scored_rows, variants, scores, measured, strict=True
        )
        for system in (*of_row, *({REFERENCE} & measures.keys()))
    ]
    of_groups = any("group_id" in row for row in rows)
    schema = GROUP_SCORES_SCHEMA if of_groups else SCORES_SCHEMA
    return pa.Table.from_pylist(table, schema=schema), RangeScores(
        number,
        counts,
        variants,
        most_sentences,
        _arrays(scores, tuple(rouge.MEASURES)),
        _arrays([keyphrase_f1(row, phrase_methods) for row in scored_rows], F1_COLUMNS),
        _arrays(measured, MEASURE_COLUMNS),
        flags,
    )


def _methods_of(row: Row, methods: Sequence[str]) -> Sequence[str]:
    """The given methods that read the document of a row, according to its measures; all
    if it has no measures of other systems.
    """
    if (others := row.get("other_quality")) is None:
        return methods
    systems = [each["system"] for each in others if isinstance(each, dict)]
    measured = {row.get("extractive_method"), *systems}
    return [name for name in methods if name in measured]


def system_texts(row: Row, methods: Iterable[str] = ()) -> dict[str, str]:
    """The reference and every system's summary of a row, by name.

    A given extractive method that chose nothing has an empty summary; otherwise only
    its easier rows would be scored.
    """
    written = {
        system: row[column].replace(PEGASUS_BREAK, "\n")
        for system, column in TEXT_COLUMNS.items()
        if row.get(column) is not None
    }
    extracts = extractive_summaries(row.get("extractive") or ())
    return {**dict.fromkeys(methods, ""), **extracts, **written}


def extractive_summaries(chosen: Iterable[Row]) -> dict[str, str]:
    """Each method's summary: its sentences in document order, one per line."""
    lines: dict[str, list[str]] = {}
    for sentence in sorted(chosen, key=lambda sentence: sentence["start"]):
        line = sentence.get("line") or shown_line(sentence["text"])
        lines.setdefault(sentence["method"], []).append(line)
    return {method: "\n".join(sentences) for method, sentences in lines.items()}


def one_sentence_a_line(text: str, language: str = ENGLISH) -> str:
    """Splits a text with several sentences and no line break into lines.

    Other texts are returned unchanged.
    """
    sentences = [] if "\n" in text.strip() else split_sentences(text, language=language)
    if len(sentences) < 2:
        return text
    return "\n".join(sentence.text for sentence in sentences)


def rouge_references(
    texts: Iterable[str], language: str | None
) -> list[rouge.Reference]:
    """The references that ROUGE can read, all for the same variant."""
    read = [text for text in texts if rouge.reads(text, language)]
    variant = rouge.variant_of(language, "\n".join(read))
    return [rouge.Reference(text, variant=variant) for text in read]


def _score(
    texts: Mapping[str, str], references: Sequence[rouge.Reference]
) -> dict[str, dict[str, float | None]]:
    """The F1 of `rouge.MEASURES` for every system of a row, each for the reference with
    the highest value (Lin 2004, section 2.1), as in `score_multi` of rouge-score. None
    if ROUGE can read no reference.
    """
    written = {system: text for system, text in texts.items() if system != REFERENCE}
    scores: dict[str, dict[str, float | None]] = {}
    for text in {*written.values()}:  # The shown text is the text of a system.
        by_reference = [reference.score(text) for reference in references]
        scores[text] = {
            measure: max((score[measure] for score in by_reference), default=None)
            for measure in rouge.MEASURES
        }
    return {system: scores[text] for system, text in written.items()}


def _arrays(
    rows: Sequence[Mapping[str, Row]], columns: Sequence[str]
) -> dict[str, np.ndarray]:
    """An array float64 [N, M] for each system; NaN where a value is missing."""
    missing: Row = {}
    return {
        system: np.array(
            [[row.get(system, missing).get(name) for name in columns] for row in rows],
            np.float64,
        )
        for system in sorted({name for row in rows for name in row})
    }


def stored_measures(row: Row) -> dict[str | None, Any]:
    """The stored measures of every system and of the reference."""
    others = row.get("other_quality") or ()
    return {
        row.get("extractive_method"): row.get("extractive_quality"),
        ABSTRACTIVE: row.get("abstractive_quality"),
        **{each["system"]: each for each in others if isinstance(each, dict)},
        REFERENCE: row.get("reference_quality"),
    }


def measures_of_row(row: Row) -> dict[str, dict[str, Any]]:
    """The measures of every system and of the reference that a row has: all `MEASURED`
    and `MEASURE_COLUMNS`, and each flag as true or false.

    Columns of files from elsewhere may have other content.
    """
    measured = {
        system: {name: measures[name] for name in MEASURED}
        for system, measures in stored_measures(row).items()
        if system and isinstance(measures, dict) and measures.keys() >= set(MEASURED)
    }
    shown = measured.get(row.get("summary_method") or "")
    if shown and row.get("quality_flags") is not None:
        measured[SUMMARY] = {
            **shown,
            "flags": row["quality_flags"],
            EXPECTED: row.get(EXPECTED),
        }
    measured.pop(SOURCE, None)  # It is not a system.
    for measures in measured.values():
        flags = measures["flags"]
        measures |= {"flagged": bool(flags), **{flag: flag in flags for flag in FLAGS}}
    return measured


def add_facts_of_reference(
    texts: Mapping[str, str],
    measured: Mapping[str, dict[str, Any]],
    language: str | None = None,
) -> None:
    """Measures whether all numbers, dates and names of the written and of the shown
    summary are in the reference.

    Args:
      texts: the texts of the systems and the reference, by system.
      measured: measures by system, to which the result is added.
      language: the language of the article; dates and names are checked only in
          English.
    """
    text, english = normalise(texts[REFERENCE]), is_english(language)
    reference = SourceFacts(text, is_english=english)
    known: dict[str, bool] = {}  # Most often both texts are the same.
    for system in {ABSTRACTIVE, SUMMARY} & texts.keys() & measured.keys():
        text = texts[system]
        if text not in known:
            known[text] = not any(find_facts(text.splitlines(), reference))
        measured[system][HAS_FACTS] = known[text]


def keyphrase_f1(row: Row, methods: Iterable[str]) -> dict[str, dict[str, float]]:
    """The F1 of the best 5 and 10 phrases of each method; empty if the row has no
    reference phrases.
    """
    references, phrases = row.get("reference_keyphrases"), row.get("keyphrases")
    if not references or phrases is None:
        return {}
    figures = {}
    for method in methods:
        of_method = [phrase for phrase in phrases if phrase["method"] == method]
        best_first = sorted(of_method, key=lambda phrase: -phrase["score"])
        names = [phrase["phrase"] for phrase in best_first]
        figures[method] = {
            column: f1(names[:count], references)
            for column, count in zip(F1_COLUMNS, KEYPHRASE_COUNTS, strict=True)
        }
    return figures
