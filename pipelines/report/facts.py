"""What the page says of a run as a whole: facts, settings, cost, accounts, tables."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from precis.model import rouge
from precis.pipelines.evaluate.evaluation_table import COMPARED, measure_cells, notes
from precis.pipelines.report.reported_run import ReportedRun
from precis.pipelines.run.accounts import OUTCOMES
from precis.pipelines.run.source_files import read_sources

_MOST_SOURCES = 100
_RAW_CHARACTERS = 300
_OUTCOME_TEXTS = {
    "written": "rows that this run computed",
    "reused": "rows of an earlier run",
    "duplicates": "rows of the first document with the same content",
    "empty": "articles without a text",
    "failed": "could not be processed",
    "other_split": "of another split",
    "not_selected": "not drawn by --sample",
    "skipped": "not needed by the job",
}
_MODELS = {
    "model_id": ("network", "bundle"),
    "extractive_model_id": ("extractor", "extractive_bundle"),
    "keyphrase_model_id": ("keyphrases", "keyphrase_bundle"),
}


def run_facts(run: ReportedRun) -> list[tuple[str, str]]:
    """Facts about a run, each with its name."""
    manifest = run.manifest
    facts = [
        ("run", manifest["run_id"]),
        ("folder", run.folder),
        ("begun", manifest["created_at"]),
        ("corpus", manifest["corpus"]),
        ("split", manifest["split"] or "all"),
        ("rows", f"{run.rows:,}"),
        ("files", f"{len(manifest['files']):,}"),
        ("size", megabytes(sum(file["bytes"] for file in manifest["files"]))),
        ("summaries by", _listed(manifest["summary_methods"])),
        ("held back", _listed(manifest["fallbacks"])),
    ]
    for name, (title, folder) in _MODELS.items():
        if manifest.get(name):
            facts.append((title, f"{manifest[name]} ({manifest[folder]})"))
    facts += [
        ("settings", manifest["settings_id"]),
        ("precis", manifest["precis_version"]),
    ]
    return [(name, value) for name, value in facts if value]


def cost(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What the search of a network took; nothing where none ran."""
    search = manifest["search"]
    if not search or not search["documents"]:
        return []
    return [
        ("documents searched", f"{search['documents']:,}"),
        ("passages", f"{search['passages']:,}"),
        ("source tokens", f"{search['source_tokens']:,}"),
        ("padding", f"{100 * search['padding_share']:.1f} %"),
        ("summary tokens", f"{search['summary_tokens']:,}"),
        ("time of all search processes", f"{search['process_seconds']:,.1f} s"),
        ("time in which any searched", f"{search['wall_seconds']:,.1f} s"),
        ("documents a second", f"{search['documents_per_second']:,}"),
        ("summary tokens a second", f"{search['summary_tokens_per_second']:,}"),
    ]


def settings(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Every flag of the run with its value."""
    flags = manifest.get("provenance", {}).get("flags", {})
    return [(name, _plain(flags[name])) for name in sorted(flags)]


def accounts(run: ReportedRun) -> dict[str, Any]:
    """The counts of the records, in total and by source file.

    Raises:
      DataError: the file with the counts is damaged.
    """
    counts = run.manifest["counts"]
    outcomes = [(name, counts.get(name, 0), _OUTCOME_TEXTS[name]) for name in OUTCOMES]
    total = sum(count for _, count, _ in outcomes)
    sources = read_sources(run.folder, run.manifest)
    # Those that lost most come first.
    ordered = sorted(
        sources.items(),
        key=lambda item: (-item[1].get("failed", 0) - item[1].get("empty", 0), item[0]),
    )
    return {
        "read": counts["read"],
        "outcomes": outcomes,
        "agrees": total == counts["read"],
        "sources": ordered[:_MOST_SOURCES],
        "source_count": len(sources),
        "names": [name for name, count, _ in outcomes if count],
    }


def dead_letters(run: ReportedRun, samples: int = 3) -> list[dict[str, Any]]:
    """The lost records by reason, each with the first letters of it."""
    counts = dict(run.manifest["failures"])
    empty = run.manifest["counts"].get("empty", 0)
    letters = run.letters(samples)
    by_reason: dict[str, list[dict[str, Any]]] = {}
    for letter in letters:
        name = f"{letter['stage']}/{letter['reason']}"
        by_reason.setdefault(name, []).append(_letter(letter))
    for name in by_reason:
        if name not in counts:
            counts[name] = empty
    return [
        {"reason": name, "records": records, "letters": by_reason.get(name, [])}
        for name, records in sorted(counts.items(), key=lambda item: -item[1])
    ]


def _letter(letter: Mapping[str, Any]) -> dict[str, Any]:
    raw = letter["raw"]
    text = "" if raw is None else raw[:_RAW_CHARACTERS].decode(errors="replace")
    return {
        "id": letter["document_id"] or "",
        "place": f"{letter['source_file']}, {letter['source_position']}",
        "detail": letter["detail"],
        "retryable": letter["retryable"],
        "raw": text,
    }


def rouge_table(result: Mapping[str, Any]) -> dict[str, Any]:
    """ROUGE of every system as cells, with the notes of `precis evaluate`."""
    return {
        "head": ["system", "rows", *rouge.MEASURES.values()],
        "rows": [
            [row["system"], f"{row['rows']:,}", *_cells(row, rouge.MEASURES)]
            for row in result["systems"]
        ],
        "difference_head": [
            f"less {result['baseline']}",
            "rows",
            *(rouge.MEASURES[name] for name in COMPARED),
        ],
        "differences": [
            [row["system"], f"{row['rows']:,}", *_cells(row, COMPARED, "+")]
            for row in result["differences"]
        ],
        "notes": notes(result),
    }


def measure_table(result: Mapping[str, Any]) -> list[list[str]]:
    """The measures of every system as cells, the head first; [] without any."""
    cells = measure_cells(result)
    return cells if len(cells) > 1 else []


def _cells(row: Mapping[str, Any], names: Any, sign: str = "") -> Iterator[str]:
    for name in names:
        mean, low, high = (
            f"{100 * row[name][part]:{sign}.1f}" for part in ("mean", "low", "high")
        )
        mark = "" if row[name].get("touches_zero", True) else " *"
        yield f"{mean} [{low}, {high}]{mark}"


def headline_cards(run: ReportedRun, flagged: int) -> list[tuple[str, str, str]]:
    """The few numbers at the top: name, value, and what it means.

    Args:
      run: the run.
      flagged: the rows whose shown summary has a flag.
    """
    counts = run.manifest["counts"]
    rows = max(1, run.rows)
    lost = counts.get("failed", 0) + counts.get("empty", 0)
    cards = [
        ("Documents", f"{run.rows:,}", f"of {counts['read']:,} records read"),
        (
            "Flagged",
            f"{100 * flagged / rows:.1f} %",
            f"{flagged:,} shown summaries have a quality flag",
        ),
        ("Dead letters", f"{lost:,}", "records without a row"),
    ]
    if run.evaluation:
        systems = {row["method"]: row for row in run.evaluation["systems"]}
        shown = systems.get("summary") or systems.get("abstractive")
        shown = shown or run.evaluation["systems"][0]
        lead = systems.get("lead")
        beside = f"{lead['system']} {100 * lead['rouge1']['mean']:.1f}" if lead else ""
        value = f"{100 * shown['rouge1']['mean']:.1f}"
        cards.insert(1, (f"ROUGE-1 of {shown['system']}", value, beside))
    return cards


def megabytes(size: int) -> str:
    """A size in bytes as people read it."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:,.1f} kB"


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
