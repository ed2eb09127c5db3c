"""`precis report`: a finished run -> one HTML page.

The parts are read twice: once for the numbers of all rows, once for the rows that are
on the page. In memory are a row group, the rows on the page and their articles.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from precis.model import files
from precis.model.errors import UsageError
from precis.model.progress.stages import stage
from precis.pipelines.evaluate.evaluation_table import all_tables, notes
from precis.pipelines.report import facts, rows
from precis.pipelines.report.articles import articles_of_rows
from precis.pipelines.report.documents import ReportedDocument
from precis.pipelines.report.groups import DOCUMENT_KEY, sample_groups
from precis.pipelines.report.options import REPORT
from precis.pipelines.report.page import pack_documents, render
from precis.pipelines.report.reported_run import ReportedRun, open_reported_run
from precis.pipelines.run.key_tables import open_database
from precis.pipelines.run.options import read_flags
from precis.pipelines.run.result_files import check_apart

# How the rows are ordered, by the value that judges them.
_ORDERS = {
    "": "the most quality flags first",
    rows.EXPECTED: "the lowest expected ROUGE-2 first, then most flags",
    rows.LOG_PROB: "the lowest log-probability a token first, then most flags",
}
_BY_ROUGE = "the lowest ROUGE-1 first, then most flags"


class ReportResult(NamedTuple):
    """What was written.

    Attributes:
      path: the page.
      bytes: its size.
      rows: of the run.
      documents: on the page.
      missing_articles: documents whose article could not be read again.
      missing_reason: why the first of them could not.
    """

    path: str
    bytes: int
    rows: int
    documents: int
    missing_articles: int
    missing_reason: str


def report(**flags: Any) -> ReportResult:
    """Writes a page about a run.

    Args:
      **flags: the fields of `ReportOptions`.

    Raises:
      UsageError: a flag, or a folder that holds no finished run.
      DataError: a file of a run is damaged.
    """
    (options,) = read_flags(REPORT, flags)
    check_apart(options.page, flag="--output", result=options.run)
    run = open_reported_run(options.run)
    if not run.run.rows:
        raise UsageError(
            f"{options.run} has no rows of documents, as after --rows groups; name a "
            "run that has some"
        )
    with open_database() as database:
        with stage("count", total=run.run.rows, unit="rows") as counting:
            rows.add_scores(database, run.scores())
            for added in rows.add_rows(database, run.run.tables(rows.NUMBER_COLUMNS)):
                counting.advance(added)
        with stage("read", is_brief=True):
            counts = database.execute(rows.COUNTS).fetchall()
            ((expected, log_probs, flagged),) = counts
            value = facts.shown_system(run.evaluation) if run.evaluation else ""
            value = rows.LOG_PROB if log_probs else value
            value = rows.EXPECTED if expected else value
            chosen, best = rows.choose_rows(database, options.documents, value)
            taken = rows.take_rows(run.run.tables(), chosen)
            shown = [taken[number] for number in chosen]
            articles = articles_of_rows(shown, run.manifest)
            scores = rows.scores_of(database, shown)
            places = {
                tuple(row[name] for name in DOCUMENT_KEY): place
                for place, row in enumerate(shown)
            }
            groups = sample_groups(database, run.run, places)
    described = map(ReportedDocument, shown, articles, scores, chosen.values())
    documents = dict(zip(chosen, described, strict=True))
    with stage("write", is_brief=True):
        sections = {
            **_sections(run, documents, best),
            "groups": groups,
            "cards": facts.headline_cards(run, flagged),
            "judged_by": _ORDERS.get(value, _BY_ROUGE),
            "blocks": pack_documents(list(documents.values())),
        }
        content = render(sections, list(documents.values()))
        with files.write_aside(options.page) as file:
            file.write(content)
    missing = [each for each in articles if isinstance(each, str)]
    return ReportResult(
        options.page,
        len(content),
        run.run.rows,
        len(documents),
        len(missing),
        missing[0] if missing else "",
    )


def _sections(
    run: ReportedRun, documents: Mapping[int, ReportedDocument], best: Sequence[int]
) -> dict[str, Any]:
    """What the template shows of a run besides its documents."""
    manifest, evaluation, of_groups = run.manifest, run.evaluation, run.of_groups
    shown = list(documents.values())
    missing = Counter(each.article for each in shown if isinstance(each.article, str))
    places = {number: place for place, number in enumerate(documents)}
    worst = [number for number in documents if number not in best][: rows.BEST_ROWS]
    return {
        "title": run.run.folder.rstrip("/").rpartition("/")[2] or run.run.folder,
        "rows": run.run.rows,
        "page_documents": len(documents),
        "drawn": sum(each.is_drawn for each in shown),
        "missing": missing.most_common(3),
        "samples": {
            title: [(places[number], documents[number]) for number in numbers]
            for title, numbers in {"Best": best, "Worst": worst}.items()
        },
        "group_count": sum(part.rows for part in run.run.group_parts),
        "group_tables": all_tables(of_groups) if of_groups else [],
        "group_notes": notes(of_groups) if of_groups else [run.groups_note],
        "flag_counts": manifest["quality_flags"],
        "run_facts": facts.run_facts(run),
        "accounts": facts.accounts(run),
        "dead_letters": facts.dead_letters(run),
        "tables": all_tables(evaluation) if evaluation else [],
        "notes": notes(evaluation) if evaluation else [run.evaluation_note],
    }
