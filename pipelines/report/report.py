"""`precis report`: a finished run -> one HTML page.

The parts are read twice: once for the numbers of all rows, once for the rows that are
on the page. In memory are a row group, the rows on the page and their articles. With
`--compare` numbers of all rows of both runs are kept too: see `compared_rows`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from precis.model import files, rouge
from precis.model.errors import UsageError
from precis.model.progress.stages import stage
from precis.model.text.article import Article
from precis.pipelines.evaluate.shown_documents import articles_of_rows
from precis.pipelines.flags.flags import read_flags
from precis.pipelines.options.report import REPORT, ReportOptions
from precis.pipelines.report import document_details, facts
from precis.pipelines.report.chosen_rows import (
    ChosenRow,
    RowChoice,
    scores_of_rows,
    take_rows,
)
from precis.pipelines.report.columns import NUMBER_COLUMNS, count_flags
from precis.pipelines.report.compared_rows import (
    COMPARED_COLUMNS,
    RowNumbers,
    changed_rows,
)
from precis.pipelines.report.comparison import (
    COMPARED_SCORES,
    Difference,
    compare_measures,
    compare_scores,
    differing_settings,
    rows_by_key,
    text_change,
)
from precis.pipelines.report.distributions import Distributions
from precis.pipelines.report.heat_maps import draw_heat_maps
from precis.pipelines.report.page import Blocks, pack_documents, render
from precis.pipelines.report.plots import difference_plots, plots
from precis.pipelines.report.reported_run import ReportedRun, open_reported_run
from precis.pipelines.run.output_place import check_apart, check_file_place

# The part of the documents on the page that are there because another run shows another
# text: one of so many.
_CHANGED_PART = 4


class ReportResult(NamedTuple):
    """What was written.

    Attributes:
      path: the page.
      bytes: its size.
      rows: of the run.
      documents: on the page.
      with_details: of these, those that can be opened.
      with_source: of these, those with room for their source.
      missing_articles: documents whose article could not be read again.
      missing_reason: why the first of them could not.
    """

    path: str
    bytes: int
    rows: int
    documents: int
    with_details: int
    with_source: int
    missing_articles: int
    missing_reason: str


class _Counts(NamedTuple):
    """What is counted of all rows.

    Attributes:
      chosen: the rows that are on the page.
      distributions: the histograms.
      flagged: the rows whose shown summary has a flag.
      measures: the differences from the other run.
      differing, paired: the rows that show another text there, of those in both runs.
    """

    chosen: list[ChosenRow]
    distributions: Distributions
    flagged: int
    measures: list[Difference]
    differing: int
    paired: int


class _Documents(NamedTuple):
    """The documents on the page, in its order."""

    rows: list[dict[str, Any]]
    chosen: list[ChosenRow]
    articles: list[Article | str]
    scores: list[dict[str, float]]
    others: list[dict[str, Any] | None]


def report(**flags: Any) -> ReportResult:
    """Writes a page about a run.

    Args:
      **flags: the fields of `ReportOptions`.

    Raises:
      UsageError: a flag, or a folder that holds no finished run.
      DataError: a file of a run is damaged.
    """
    (options,) = read_flags(REPORT, flags)
    check_file_place(options.page, flag="--output")
    for read in filter(None, (options.run, options.compare)):
        check_apart(options.page, flag="--output", result=read)
    run = open_reported_run(options.run, options.evaluation)
    other = open_reported_run(options.compare) if options.compare else None
    if not run.rows:
        raise UsageError(f"{options.run} has no rows; there is nothing to show")
    counts = _count(run, other, options)
    with stage("read", is_brief=True):
        documents = _read_documents(run, other, counts.chosen)
    sections = _sections(run, counts, documents, options)
    sections["comparison"] = _comparison(run, other, counts) if other else None
    with stage("write", is_brief=True):
        content, blocks = _render(documents, sections, other, options)
        with files.write_aside(options.page) as file:
            file.write(content)
    missing = [each for each in documents.articles if isinstance(each, str)]
    return ReportResult(
        options.page,
        len(content),
        run.rows,
        len(documents.rows),
        blocks.with_details,
        blocks.with_source,
        len(missing),
        missing[0] if missing else "",
    )


def _count(
    run: ReportedRun, other: ReportedRun | None, options: ReportOptions
) -> _Counts:
    """Reads the numbers of all rows, of those of the other run too."""
    choice, distributions, flagged = RowChoice(options.documents), Distributions(), 0
    mine, others = RowNumbers(), RowNumbers()
    columns = COMPARED_COLUMNS if other else NUMBER_COLUMNS
    total = run.rows + (other.rows if other else 0)
    with stage("count", total=total, unit="rows") as counting:
        for table in run.tables(columns):
            choice.add(table)
            distributions.add(table)
            flagged += int((count_flags(table) > 0).sum())
            if other:
                mine.add(table)
            counting.advance(table.num_rows)
        for table in other.tables(columns) if other else ():
            others.add(table)
            counting.advance(table.num_rows)
    mine.finish()
    others.finish()
    differing, paired = changed_rows(mine, others)
    changed = [
        ChosenRow(number, float(mine.concerns[number]), False, True)
        for number in differing[: options.documents // _CHANGED_PART].tolist()
    ]
    return _Counts(
        choice.rows(changed),
        distributions,
        flagged,
        compare_measures(mine, others),
        len(differing),
        paired,
    )


def _read_documents(
    run: ReportedRun, other: ReportedRun | None, chosen: list[ChosenRow]
) -> _Documents:
    taken = take_rows(run.tables(), chosen)
    rows = [taken[row.number] for row in chosen]
    others: list[dict[str, Any] | None] = [None] * len(rows)
    if other:
        keys = [(row["document_id"], row["content_sha256"]) for row in rows]
        of_other = rows_by_key(other.tables(), set(keys))
        others = [of_other.get(key) for key in keys]
    articles = articles_of_rows(rows, run.manifest)
    scores = scores_of_rows(rows, run.scores())
    return _Documents(rows, chosen, articles, scores, others)


def _sections(
    run: ReportedRun,
    counts: _Counts,
    documents: _Documents,
    options: ReportOptions,
) -> dict[str, Any]:
    """What the template shows besides the documents and the comparison."""
    manifest = run.manifest
    pairs = [
        (row, article)
        for row, article, _ in _drawn_first(documents)
        if isinstance(article, Article)
    ]
    heat_maps, no_heat_maps = draw_heat_maps(
        manifest, pairs, options.attention_documents
    )
    evaluation = run.evaluation
    return {
        "title": options.run.rstrip("/").rpartition("/")[2] or options.run,
        "run_facts": facts.run_facts(run),
        "cards": facts.headline_cards(run, counts.flagged),
        "cost": facts.cost(manifest),
        "settings": facts.settings(manifest),
        "evaluation_note": run.evaluation_note,
        "rouge": facts.rouge_table(evaluation) if evaluation else None,
        "measures": facts.measure_table(evaluation) if evaluation else [],
        "flag_counts": manifest["quality_flags"],
        "accounts": facts.accounts(run),
        "letters": facts.dead_letters(run),
        "heat_maps": heat_maps,
        "no_heat_maps": no_heat_maps,
        "rows": run.rows,
        "page_documents": len(documents.rows),
        "drawn": sum(row.is_drawn for row in documents.chosen),
        "changed": sum(row.is_changed for row in documents.chosen),
        "missing": _missing(documents.articles),
        **plots(run, counts.distributions),
    }


def _drawn_first(
    documents: _Documents,
) -> Iterable[tuple[dict[str, Any], Article | str, ChosenRow]]:
    """The documents with those that were drawn at random, or have least against them,
    first.
    """
    whole = zip(documents.rows, documents.articles, documents.chosen, strict=True)
    return sorted(whole, key=lambda each: (not each[2].is_drawn, each[2].concern))


def _missing(articles: Iterable[Article | str]) -> list[tuple[str, int]]:
    """Why articles are not there, with their number; the most frequent reasons."""
    reasons: dict[str, int] = {}
    for article in articles:
        if isinstance(article, str):
            reasons[article] = reasons.get(article, 0) + 1
    return sorted(reasons.items(), key=lambda item: -item[1])[:3]


def _comparison(
    run: ReportedRun, other: ReportedRun, counts: _Counts
) -> dict[str, Any]:
    """The section about two runs."""
    scores = compare_scores(run, other)
    return {
        "other": other.folder,
        "other_rows": other.rows,
        "settings": differing_settings(run.manifest, other.manifest),
        "scores": {
            name: of_system
            for name, of_system in scores.items()
            if not all(each.is_zero for each in of_system)
        },
        "equal": [
            name
            for name, of_system in scores.items()
            if all(each.is_zero for each in of_system)
        ],
        "measure_names": [rouge.MEASURES[name] for name in COMPARED_SCORES],
        "plots": difference_plots(scores),
        "notes": [run.evaluation_note, other.evaluation_note],
        "measures": counts.measures,
        "differing": counts.differing,
        "paired": counts.paired,
    }


def _render(
    documents: _Documents,
    sections: Mapping[str, Any],
    other: ReportedRun | None,
    options: ReportOptions,
) -> tuple[bytes, Blocks]:
    lines = []
    for row, chosen, scores, beside in zip(
        documents.rows,
        documents.chosen,
        documents.scores,
        documents.others,
        strict=True,
    ):
        line = document_details.list_line(row, chosen, scores)
        if beside:
            change = text_change(row["summary"], beside["summary"])
            line["change"] = round(change, 3)
        lines.append(line)

    def details(number: int) -> dict[str, Any]:
        row, article = documents.rows[number], documents.articles[number]
        found = document_details.details(row, article, documents.scores[number])
        beside = documents.others[number]
        if beside:
            found["other"] = document_details.other_summary(beside)
        return found

    def source(number: int) -> dict[str, Any]:
        row, article = documents.rows[number], documents.articles[number]
        return document_details.source(row, article)

    return render(
        sections,
        lines,
        {"other": other.folder if other else None},
        lambda room: pack_documents(
            len(documents.rows), details, source, most_bytes=room
        ),
        most_bytes=options.max_page_mb * 1_000_000,
    )
