"""The page's sections about the whole run: evaluation, main figures, facts, cost and
counts.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from precis.model import files
from precis.model.quality.flags import ABSTRACTIVE
from precis.pipelines.evaluate.evaluation_table import (
    LEAD,
    all_tables,
    mixture,
    notes,
)
from precis.pipelines.evaluate.scoring import SCORES_FOLDER, SUMMARY
from precis.pipelines.report.rows import SCORE_SCHEMA
from precis.pipelines.run.accounts import OUTCOMES
from precis.pipelines.tables.finished_run import FinishedRun
from precis.pipelines.tables.output_files import read_output_file

_MOST_SOURCES = 100
_SHOWN_LETTERS = 3  # dead letters per reason
_RAW_CHARACTERS = 300
# The tables of an evaluation.
_TABLES = ("systems", "languages", "measures", "differences")


class Evaluation(NamedTuple):
    """The evaluation of the documents or the groups of a run.

    Attributes:
      content: the content of rouge.json; None if this run was not evaluated.
      tables: the tables of scores.
      notes: the notes below the tables; or why there is no evaluation.
      score_files: the files with the score of each row.
    """

    content: Mapping[str, Any] | None
    tables: Sequence[Any]
    notes: Sequence[str]
    score_files: Sequence[str]

    def scores(self) -> Iterator[pa.Table]:
        """Reads the scores of the rows, a table for each row group."""
        for path in self.score_files:
            yield from read_output_file(path, SCORE_SCHEMA.names)


def read_evaluation(run: FinishedRun, place: str, flags: str = "") -> Evaluation:
    """Reads the evaluation of a run.

    Args:
      run: the run.
      place: the folder of the evaluation.
      flags: the flags of the command that would make such an evaluation.

    Raises:
      DataError: rouge.json is damaged.
    """
    score_files = files.glob(files.join(place, SCORES_FOLDER, "*.parquet"))
    path = files.join(place, "rouge.json")
    content, note = None, ""
    way_out = f"create it with precis evaluate --input {run.folder}{flags}"
    if not files.exists(path):
        note = f"ROUGE is not shown, as the run has no evaluation; {way_out}"
    elif score_files and _run_of(score_files[0]) not in (run.run_id, ""):
        other = f"as {place} is the evaluation of another run"
        note = f"ROUGE is not shown, {other}; {way_out}"
    else:
        content = files.read_object(
            path,
            way_out="run `precis evaluate` again",
            fields=dict.fromkeys(_TABLES, list),
        )
        if not content["systems"]:
            note = "ROUGE is not shown: it cannot read the references."
            content = None
    if content is None:
        return Evaluation(None, (), (note,), ())
    return Evaluation(content, all_tables(content), notes(content), score_files)


def _run_of(path: str) -> str:
    """The run id of the first scored row in a file."""
    return str(next(read_output_file(path, ["run_id"])).column("run_id")[0])


def headline_cards(
    run: FinishedRun,
    evaluation: Mapping[str, Any] | None,
    flagged: int,
    unsupported: int,
) -> list[tuple[str, str, str]]:
    """The figures at the top of the page: name, value and meaning.

    Args:
      run: the run.
      evaluation: the content of rouge.json, if there is one.
      flagged: the number of rows whose shown summary has a quality flag.
      unsupported: the number of rows whose shown summary has an unsupported fact.
    """
    counts = run.manifest["counts"]
    share = f"{100 * flagged / run.rows:.1f} %"
    meaning = "summaries with a number, date or name that is not in the article"
    lost = counts.get("failed", 0) + counts.get("empty", 0)
    cards = [
        ("Documents", f"{run.rows:,}", f"records read: {counts['read']:,}"),
        ("Flagged", share, f"summaries with a quality flag: {flagged:,}"),
        ("Unsupported facts", f"{100 * unsupported / run.rows:.1f} %", meaning),
        ("Dead letters", f"{lost:,}", "records without a row"),
    ]
    if evaluation:
        systems = {row["method"]: row for row in evaluation["systems"]}
        shown = systems[shown_system(evaluation)]
        lead = systems.get(LEAD)
        beside = f"{lead['system']} {100 * lead['rouge1']['mean']:.1f}" if lead else ""
        if mixed := mixture(evaluation):
            beside = f"{beside}; mean over {mixed}".removeprefix("; ")
        value = f"{100 * shown['rouge1']['mean']:.1f}"
        cards.insert(1, (f"ROUGE-1 of {shown['system']}", value, beside))
    return cards


def shown_system(evaluation: Mapping[str, Any]) -> str:
    """The method whose summaries the rows show, for the evaluation."""
    methods = [row["method"] for row in evaluation["systems"]]
    shown = (name for name in (SUMMARY, ABSTRACTIVE) if name in methods)
    return str(next(shown, methods[0]))


def page_facts(run: FinishedRun) -> dict[str, dict[str, str]]:
    """Facts about a run by their manifest names, in groups that the page folds."""
    manifest = run.manifest
    facts = {
        "folder": run.folder,
        "rows": run.rows,
        "files": len(manifest["files"]),
        "bytes": sum(file["bytes"] for file in manifest["files"]),
        "summaries by method": manifest["summary_methods"],
        "replaced summaries": manifest["fallbacks"],
        **{name: text for name, text in manifest.items() if isinstance(text, str)},
    }
    groups = {
        "Corpus, models and identity": facts,
        "Cost of the search": manifest["search"] or {},
        "Every flag of the run": manifest.get("provenance", {}).get("flags", {}),
    }
    return {
        title: {name: _plain(value) for name, value in sorted(group.items())}
        for title, group in groups.items()
        if group
    }


def accounts(run: FinishedRun) -> dict[str, Any]:
    """The number of records by outcome, in total and by source file."""
    counts = run.manifest["counts"]
    outcomes = {name: counts.get(name, 0) for name in OUTCOMES}
    names = ["read", *(name for name, count in outcomes.items() if count)]
    sources = run.manifest["sources"]
    # Files that lost the most records come first.
    ordered = sorted(
        sources.items(),
        key=lambda item: (-item[1].get("failed", 0) - item[1].get("empty", 0), item[0]),
    )
    rows = [
        [source, *(f"{of_source.get(name, 0):,}" for name in names)]
        for source, of_source in ordered[:_MOST_SOURCES]
    ]
    return {
        "read": counts["read"],
        "outcomes": outcomes,
        "agrees": sum(outcomes.values()) == counts["read"],
        "sources": [["corpus file", *names], *rows],
        "source_count": len(sources),
    }


def dead_letters(run: FinishedRun) -> list[dict[str, Any]]:
    """The number of lost records by reason, with the first letters of each."""
    counts = dict(run.manifest["failures"])
    shown: dict[str, list[dict[str, Any]]] = {}
    for letter in run.dead_letters():
        examples = shown.setdefault(f"{letter['stage']}/{letter['reason']}", [])
        if len(examples) < _SHOWN_LETTERS:
            raw = (letter["raw"] or b"")[:_RAW_CHARACTERS]
            examples.append({**letter, "raw": raw.decode(errors="replace")})
    # Articles without text are not failures.
    empty = run.manifest["counts"].get("empty", 0)
    counts |= {name: empty for name in shown if name not in counts}
    return [
        {"reason": name, "records": records, "dead_letters": shown.get(name, [])}
        for name, records in sorted(counts.items(), key=lambda item: -item[1])
    ]


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_plain(each)}" for name, each in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
