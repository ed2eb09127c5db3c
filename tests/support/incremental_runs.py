"""Runs of `precis summarize` over small corpora, and what they have inferred."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from precis.pipelines.run.accounts import OUTCOMES
from precis.pipelines.summarize.summarize import summarize
from precis.pipelines.summarize.window_summarizer import WindowSummarizer
from support.command_line import write_jsonl
from support.summarize_runs import rows_of

FLAGS = {
    "task_bytes": 2_000,
    "min_source_words": 0,
    "max_failed_share": 0.5,
    "deduplicate": True,
}
# Columns that differ between a computed row and a reused one.
OF_RUN = ("run_id", "reused_from")


def article(number: int) -> str:
    """A text of four sentences that no other number has."""
    return (
        f"Storm {number} reached the coast on Monday. The harbour of town {number} was "
        f"closed for {number + 2} days. Nobody was hurt there. Ships waited outside."
    )


def line(number: int, **changes: Any) -> dict[str, Any]:
    """A document of a JSON-lines file."""
    return {"id": f"d{number:03}", "article": article(number), **changes}


def write_corpus(folder: Path, corpus: dict[str, Sequence[Any]]) -> str:
    """Writes files of JSON lines, in place of those before; returns the `--corpus`."""
    for path in folder.glob("*.jsonl"):
        path.unlink()
    for name, lines in corpus.items():
        write_jsonl(folder / name, lines)
    return f"jsonl:{folder}/*.jsonl"


class CountedRuns:
    """Runs the command and notes the documents that the summarizer was given.

    Attributes:
      inferred: their ids, sorted, of the last run.
      places: where they stand.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.inferred: list[str] = []
        self.places: list[tuple[str, str]] = []
        real = WindowSummarizer.summarize

        def noted(worker: WindowSummarizer, articles: Any, *others: Any) -> Any:
            return real(worker, self._note(articles), *others)

        patch.setattr(WindowSummarizer, "summarize", noted)

    def _note(self, articles: Any) -> Any:
        for article in articles:
            read = article.document
            self.inferred = sorted([*self.inferred, read.document_id])
            self.places.append((read.source_file, read.source_position))
            yield article

    def run(self, output: Path, corpus: str, **flags: Any) -> dict[str, Any]:
        """The manifest of a run."""
        self.inferred = []
        return summarize(output=output, corpus=corpus, **{**FLAGS, **flags})


def without_run(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows without what says which run has computed them."""
    return [{**row, **dict.fromkeys(OF_RUN)} for row in rows]


def content_rows(folder: Path) -> list[dict[str, Any]]:
    """`without_run` of the rows of a run."""
    return without_run(rows_of(folder))


def accounted_by_sql(folder: Path) -> dict[str, dict[str, int]]:
    """Records by source file and outcome, as the files of a run have them."""
    queries = {
        "data/**/*.parquet": """
            SELECT source_file,
                   CASE WHEN duplicate_of IS NOT NULL THEN 'duplicates'
                        WHEN reused_from IS NOT NULL THEN 'reused'
                        ELSE 'written' END AS outcome,
                   count(*)::BIGINT
            FROM read_parquet($files) GROUP BY ALL""",
        "dead_letters/*.jsonl.gz": """
            SELECT source_file,
                   if(reason = 'empty_article', 'empty', 'failed') AS outcome,
                   sum(records)::BIGINT
            FROM read_json($files) GROUP BY ALL""",
    }
    sources: dict[str, dict[str, int]] = {}
    for pattern, query in queries.items():
        if list(folder.glob(pattern)):
            found = duckdb.execute(query, {"files": f"{folder}/{pattern}"}).fetchall()
            for source, outcome, count in found:
                sources.setdefault(source, {})[outcome] = count
    return sources


def check_accounts(folder: Path, read: dict[str, int]) -> None:
    """Checks that every record is accounted for by what is on disk.

    Args:
      folder: of the run.
      read: the records of each source file.
    """
    manifest = json.loads((folder / "manifest.json").read_bytes())
    counted = accounted_by_sql(folder)
    totals: Counter[str] = Counter()
    for source, counts in manifest["sources"].items():
        totals.update(counts)
        outcomes = {name: n for name, n in counts.items() if n and name != "read"}
        assert counts["read"] == read[source] == sum(outcomes.values())
        outcomes.pop("other_split", 0)
        assert counted.get(source, {}) == outcomes
    assert manifest["sources"].keys() == read.keys() >= counted.keys()
    for name in ("read", *OUTCOMES):
        assert manifest["counts"][name] == totals[name]
