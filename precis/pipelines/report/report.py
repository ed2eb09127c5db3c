"""`precis report`: writes a finished run as one HTML page that contains the template,
the style sheet, the script and the data.

The output files are read twice: for the numbers of all rows, and for the rows on the
page. In memory are a row group, the rows on the page and their articles.

The page has documents in blocks of some dozens, compressed and in base64. So their
content is not read as HTML, and a block is unpacked when one of its documents is
opened. A content security policy blocks all requests, and all scripts except the page's
own script.
"""

import base64
import gzip
import hashlib
import importlib.resources
import itertools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from precis.model import files
from precis.model.errors import UsageError
from precis.model.progress.stages import stage
from precis.pipelines.evaluate.options import default_output
from precis.pipelines.report import facts, rows
from precis.pipelines.report.articles import articles_of_rows
from precis.pipelines.report.documents import ReportedDocument
from precis.pipelines.report.options import REPORT
from precis.pipelines.run.key_tables import open_database
from precis.pipelines.run.options import read_flags
from precis.pipelines.run.result_files import GROUPS_FOLDER, check_apart
from precis.pipelines.tables.finished_run import FinishedRun, open_run
from precis.pipelines.tables.schema import SCHEMA_VERSION

# The order of the rows, by the value that judges them.
_ORDERS = {
    "": "those with the most quality flags first",
    rows.EXPECTED: "sorted by expected ROUGE-2, lowest first, then by most flags",
    rows.LOG_PROB: (
        "sorted by log-probability per token, lowest first, then by most flags"
    ),
}
_BY_ROUGE = "sorted by ROUGE-1, lowest first, then by most flags"

DOCUMENTS_A_BLOCK = 32


class ReportResult(NamedTuple):
    """The page that was written.

    Attributes:
      path: the path of the page.
      bytes: its size in bytes.
      rows: the number of rows of the run.
      documents: the number of documents on the page.
      missing_articles: the number of documents whose article could not be read again.
      missing_reason: the reason for the first of them.
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
      UsageError: an invalid flag, or a folder that is not a finished run.
      DataError: a file of a run is damaged.
    """
    (options,) = read_flags(REPORT, flags)
    check_apart(options.page, flag="--output", result=options.run)
    run = _open_run(options.run)
    place = default_output(options.run)
    evaluation = facts.read_evaluation(run, place)
    of_groups = facts.read_evaluation(
        run, files.join(place, GROUPS_FOLDER), " --group_references jsonl:FILE"
    )
    with open_database() as database:
        with stage("count", total=run.rows, unit="rows") as counting:
            rows.add_scores(database, evaluation.scores())
            for added in rows.add_rows(database, run.tables(rows.NUMBER_COLUMNS)):
                counting.advance(added)
        with stage("read", is_brief=True):
            ((expected, log_probs, *flagged),) = database.execute(
                rows.COUNTS
            ).fetchall()
            content = evaluation.content
            value = facts.shown_system(content) if content else ""
            value = rows.LOG_PROB if log_probs else value
            value = rows.EXPECTED if expected else value
            chosen, best = rows.choose_rows(database, options.documents, value)
            taken = rows.take_rows(run.tables(), chosen)
            shown = [taken[number] for number in chosen]
            articles = articles_of_rows(shown, run.manifest)
            scores = rows.scores_of(database, shown)
            places = {
                tuple(row[name] for name in rows.DOCUMENT_KEY): place
                for place, row in enumerate(shown)
            }
            groups = rows.sample_groups(database, run, places)
    each = zip(shown, articles, scores, chosen.values(), strict=True)
    documents = list(itertools.starmap(ReportedDocument, each))
    best = [list(chosen).index(number) for number in best]
    worst = [place for place in range(len(documents)) if place not in best]
    missing = Counter(each for each in articles if isinstance(each, str))
    with stage("write", is_brief=True):
        sections = {
            "title": run.folder.rstrip("/").rpartition("/")[2] or run.folder,
            "cards": facts.headline_cards(run, content, *flagged),
            "samples": {
                name: [(place, documents[place]) for place in among[: rows.BEST_ROWS]]
                for name, among in {"Best": best, "Worst": worst}.items()
            },
            "rows": run.rows,
            "page_documents": len(documents),
            "drawn": sum(chosen.values()),
            "judged_by": _ORDERS.get(value, _BY_ROUGE),
            "missing": missing.most_common(3),
            "groups": groups,
            "group_count": sum(each.rows for each in run.group_output_files),
            "evaluation": evaluation,
            "of_groups": of_groups,
            "flag_counts": run.manifest["quality_flags"],
            "accounts": facts.accounts(run),
            "dead_letters": facts.dead_letters(run),
            "run_facts": facts.page_facts(run),
        }
        page = render(sections, documents)
        with files.write_aside(options.page) as file:
            file.write(page)
    return ReportResult(
        options.page,
        len(page),
        run.rows,
        len(documents),
        missing.total(),
        next(iter(missing), ""),
    )


def _open_run(folder: str) -> FinishedRun:
    """Opens a run with rows of documents and undamaged files.

    Raises:
      UsageError: the run does not exist or has another version.
      DataError: a file of the run is damaged.
    """
    run = open_run(folder)
    run.check_output_files()
    version = run.manifest["schema_version"]
    if version != SCHEMA_VERSION:
        raise UsageError(
            f"{folder} has schema version {version}, but this precis reports version "
            f"{SCHEMA_VERSION}; run `precis summarize` again"
        )
    if not run.rows:
        raise UsageError(
            f"{folder} has no rows of documents, perhaps because of --rows groups; "
            "name a run that has some"
        )
    return run


def pack(content: Any) -> str:
    """Packs JSON as base64 of gzip."""
    # Single surrogates, which cannot be encoded, become question marks.
    text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    data = gzip.compress(text.encode(errors="replace"), mtime=0)
    return base64.b64encode(data).decode()


def render(sections: Mapping[str, Any], documents: Sequence[ReportedDocument]) -> bytes:
    """Renders the page as HTML in UTF-8.

    Args:
      sections: the other values of the template.
      documents: the documents in page order, for the list and the blocks.
    """
    import jinja2
    from markupsafe import Markup

    folder = importlib.resources.files("precis.pipelines.report")
    style, *scripts = (
        (folder / name).read_text(encoding="utf-8")
        for name in ("page.css", "page.js", "document.js")
    )
    script = "".join(scripts)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("precis.pipelines.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    starts = range(0, len(documents), DOCUMENTS_A_BLOCK)
    blocks = (documents[at : at + DOCUMENTS_A_BLOCK] for at in starts)
    environment.filters["count"] = "{:,}".format
    text = environment.get_template("page.html").render(
        sections,
        style=Markup(style),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        list=pack([each.line() for each in documents]),
        # Next to its details a source compresses well, because it repeats much of them.
        blocks=[
            pack([{**each.details(), "source": each.source()} for each in block])
            for block in blocks
        ],
        documents_a_block=DOCUMENTS_A_BLOCK,
    )
    return text.encode(errors="replace")
