"""Prints the result of each command: counts, its place, and the next command.

The arguments are the result and the given flags, with `started`, the time at which the
command began.
"""

import datetime
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from precis.model import files
from precis.model.config import comma_list
from precis.model.progress.stages import say
from precis.model.quality.flags import ABSTRACTIVE
from precis.pipelines.corpus.schemes import scheme_of
from precis.pipelines.doctor.options import Diagnosis
from precis.pipelines.run.hub import hub_name, local_bundle
from precis.pipelines.run.interruption import precis_program
from precis.pipelines.run.job_progress import clock, current_display
from precis.pipelines.run.options import with_dashes
from precis.pipelines.run.result_files import DESCRIPTION_FILES
from precis.pipelines.summarize.options import WRITE_SENTENCES

if TYPE_CHECKING:
    from precis.model.records.dataset import DatasetInfo
    from precis.model.training.loop import TrainResult
    from precis.pipelines.bundles.attention import AttentionResult
    from precis.pipelines.evaluate.evaluate import Scores
    from precis.pipelines.report.report import ReportResult
    from precis.pipelines.summarize.run_output import RunManifest
    from precis.pipelines.verify.verify import Verification
    from precis.pipelines.warehouse.load import TableResult
    from precis.pipelines.warehouse.loaders import LoaderFiles

Values = Mapping[str, Any]
# A command warns if a network cuts off a larger share of the documents.
_NOTABLE_CUT_SHARE = 0.25
# `precis prepare` warns if a larger share of the tokens is unknown.
_NOTABLE_UNKNOWN_SHARE = 0.01
# What to call files whose records are documents, by scheme.
_RECORDS = {"jsonl": "JSON lines", "csv": "CSV"}


def end_with(output: Any, *command: Any) -> None:
    """Prints a command's last lines: the place of its result, and the next command."""
    print(f"wrote {output}")
    suggest_next(*command)


def suggest_next(*command: Any) -> None:
    """Prints a next command line of precis."""
    say_next(shlex.join([precis_program(), *map(str, command)]))


def say_next(text: str) -> None:
    """Prints what to do with a result, except with --quiet."""
    display = current_display()
    if not (display and display.options.quiet):
        print(f"next: {text}")


def listed(counts: Mapping[str, int]) -> str:
    """Formats counts by name in one line."""
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def warn_of_cuts(command: str, *, share: float, what: str, way_out: str) -> None:
    """Warns if a network does not read many documents to their end.

    Args:
      command: the command that warns.
      share: the share of documents that are cut off.
      what: what is too long, for the text after "12% of".
      way_out: what to do.
    """
    if share > _NOTABLE_CUT_SHARE:
        say(f"precis {command}: warning: {share:.0%} of {what}; {way_out}")


def show_records(info: "DatasetInfo", values: Values) -> None:
    """`precis prepare`: counts, and warnings if many texts are cut off or many tokens
    are unknown.
    """
    records = {split: info.records(split) for split in info.splits}
    print(f"records: {listed(records)}; {listed(info.counts)}")
    for name, flag in (("articles", "source"), ("targets", "target")):
        lengths = getattr(info, f"{flag}_lengths")
        warn_of_cuts(
            "prepare",
            share=lengths.cut / max(1, sum(records.values())),
            what=f"the {name} are longer than --max_{flag}_tokens "
            f"{getattr(info, f'max_{flag}_tokens')} and were cut off",
            way_out=f"the median length is {lengths.deciles[5]} tokens; raise the flag "
            "if the ends matter",
        )
        if (share := info.unknown_shares.get(flag, 0.0)) > _NOTABLE_UNKNOWN_SHARE:
            say(
                f"precis prepare: warning: {share:.1%} of the tokens of {name} are "
                "unknown, because the vocabulary lacks their characters, so a network "
                "can neither read nor write them; raise --vocabulary_size, or name "
                "another --tokenizer"
            )
    output, bundle = values["output"], "bundle"
    end_with(output, "train", "--records", output, "--output", bundle)


def show_run(manifest: "RunManifest", values: Values) -> None:
    """`precis summarize`: the number of documents by outcome."""
    from precis.model.inference.search_cost import format_search_cost

    counts = manifest["counts"]
    shown = {name: count for name, count in counts.items() if count or name == "read"}
    print(f"documents: {listed(shown)}")
    if manifest["files"]:
        # Reused rows count too.
        rows = sum(file["rows"] for file in manifest["files"])
        methods = listed(manifest["summary_methods"])
        if manifest["settings"].get("write") == WRITE_SENTENCES:
            methods = methods.replace(ABSTRACTIVE, "shortened sentences")
        print(f"rows: {rows:,}; {methods}")
    if groups := manifest.get("groups"):
        print(f"groups by {groups['group_by']}: {groups['counts']['groups']:,}")
    if manifest["quality_flags"]:
        print(f"quality flags: {listed(manifest['quality_flags'])}")
    if manifest["fallbacks"]:
        print(f"abstractive summaries not shown: {listed(manifest['fallbacks'])}")
    if manifest["search"]:
        print(format_search_cost(manifest["search"]))
    warn_of_cuts(
        "summarize",
        share=counts["truncated"] / max(1, sum(manifest["summary_methods"].values())),
        what="the articles are longer than the network reads, so a part was not read",
        way_out="the column `truncated` marks them; --long_documents chunk_merge reads "
        "whole articles, with --context_tokens for an endpoint; to train a network "
        "that reads more, prepare records with a larger --max_source_tokens",
    )
    models = {
        "model": manifest["model_id"],
        "selector": manifest["extractive_model_id"],
        "keyphrases": manifest["keyphrase_model_id"],
        "checker": manifest["checker_model_id"],
    }
    used = [f", {name} {model}" for name, model in models.items() if model]
    print(f"run {manifest['run_id']}{''.join(used)}")
    display = current_display()
    rate = display.rate if display else None
    if line := whole_corpus(manifest, since=values["started"], rate=rate):
        print(line)
    print(f"wrote {values['output']}")
    if manifest["files"]:
        suggest_next("report", values["output"])


def whole_corpus(
    manifest: Values, *, since: datetime.datetime, rate: float | None
) -> str:
    """The time that the whole corpus would take, estimated from a run with --limit or
    --sample: the run's time, plus the time of other documents at its rate. "" if their
    number is unknown or the run began before `since`.

    Args:
      manifest: the manifest of the run.
      since: the time at which the command began.
      rate: documents per second; None if an engine ran the job.
    """
    counts = manifest["counts"]
    read = counts["read"] - counts["not_selected"]
    share = manifest["limited_to_share"] or read / max(counts["read"], 1)
    begun = datetime.datetime.fromisoformat(manifest["created_at"])
    # The start time is stored in whole seconds.
    if begun < since.replace(microsecond=0) or not 0 < share < 1:
        return ""
    seconds = (datetime.datetime.now(datetime.UTC) - since).total_seconds()
    others = (read - counts["other_split"]) * (1 / share - 1)
    whole_seconds = seconds + others / rate if rate else seconds / share
    size = sum(file["bytes"] for file in manifest["files"])
    # With --limit, a single task reads the documents.
    is_of_one = manifest["limited_to_share"] and not manifest["bundle"]
    return (
        f"the whole corpus: about {round(read / share, -1):,.0f} documents, "
        f"{clock(whole_seconds)} and {size / share / 1e6:,.0f} MB of Parquet at "
        f"{'the rate of one worker' if is_of_one else 'this rate'}"
    )


def show_document(row: Values, file: str, *, as_line: str) -> None:
    """`precis summarize --text`: the summary, or the row as JSON; warnings go to
    standard error.
    """
    scheme = scheme_of(file)
    if scheme in _RECORDS:
        say(
            f"precis summarize: warning: {file} looks like {_RECORDS[scheme]} but was "
            "summarized as one document; to summarize each record, use --corpus "
            f"{shlex.quote(f'{scheme}:{file}')} --output summaries"
        )
    print(as_line or row["summary"])
    for line in warnings_of(row):
        say(f"precis summarize: {line}")


def warnings_of(row: Values) -> list[str]:
    """Warnings for a reader of a summary, as lines."""
    lines = []
    if row["quality_flags"]:
        lines.append(f"quality flags: {', '.join(row['quality_flags'])}")
    method, quality = row["summary_method"], row["abstractive_quality"]
    if method == "source":
        lines.append("the document is short, so the summary is the document itself")
    elif row["abstractive_summary"] and method != "abstractive":
        lines.append(
            f"the network's summary is not shown ({', '.join(quality['flags'])}); "
            f"these sentences of the document are chosen by the method {method}"
        )
    for kind in ("numbers", "dates", "names") if method == "abstractive" else ():
        if unsupported := quality[f"unsupported_{kind}"]:
            words = ", ".join(unsupported)
            lines.append(f"{kind} that are not in the document: {words}")
    if row["truncated"]:
        lines.append(
            f"the network read {row['seen_tokens']:,} of the {row['source_tokens']:,} "
            "tokens of the document"
            if row["seen_tokens"] is not None
            else f"the endpoint received {row['seen_ratio']:.0%} of the document"
            if row["seen_ratio"] is not None
            else "the server cut off the document; set --context_tokens to its context"
        )
    return lines


def show_scores(result: "Scores", values: Values) -> None:
    """`precis evaluate`, whose tables are already printed: suggests a page, if the run
    has rows of documents.
    """
    from precis.pipelines.tables.finished_run import open_run

    folder = str(values["input"])
    has_manifest = files.exists(files.join(folder, DESCRIPTION_FILES["summaries"]))
    if has_manifest and open_run(folder).rows:
        suggest_next("report", values["input"])


def show_imported(model_id: str, values: Values) -> None:
    """`precis import`: the command that uses the bundle."""
    from precis.model.bundle.manifest import ABSTRACTIVE, ENCODER, open_stored

    print(f"model {model_id}")
    output = values.get("output") or local_bundle(values["checkpoint"])
    stored = open_stored(output, ENCODER, ABSTRACTIVE)
    name = hub_name(output)
    if stored.kind == ENCODER and "checker" not in stored.config:
        flags = ("train-selector", "--records", "records", "--encoder", name)
        end_with(output, *flags, "--output", "selector")
    else:
        flag = "--checker" if "checker" in stored.config else "--bundle"
        flags = ("summarize", "--corpus", "jsonl:news/*.jsonl", flag, name)
        end_with(output, *flags, "--output", "summaries")


def show_export(manifest: Values, values: Values) -> None:
    """`precis export`: a program that summarizes with the export."""
    print(f"model {manifest['model_id']}")
    print(f"wrote {values['output']}")
    say_next(f"see {values['output']}/README.md for a program that uses it")


def show_picture(result: "AttentionResult", values: Values) -> None:
    """`precis attention`: the path of the picture, and what it does not show."""
    if result.read_tokens < result.source_tokens:
        print(
            f"the network read the first {result.read_tokens:,} of "
            f"{result.source_tokens:,} tokens of the article"
        )
    if result.columns < result.tokens:
        print(
            f"drawn: the {result.columns} most attended of {result.tokens} tokens; "
            "--columns 0 draws all"
        )
    print(f"wrote {result.path}")
    say_next("look at the picture")


def show_training(
    result: "TrainResult", values: Values, flags: Sequence[str] = ("--bundle",)
) -> None:
    """`precis train` and its like: the model, and the command that summarizes with it.

    Args:
      result: the result of the training.
      values: the flags of the command.
      flags: the flags of `precis summarize` that take the bundle.
    """
    line = f"model {result.model_id}"
    if result.step:
        line += f" of step {result.step}"
    if result.validation:
        scores = (f"{name} {value:.3f}" for name, value in result.validation.items())
        line += f": validation {', '.join(scores)}"
    print(line)
    from precis.model.records.dataset import load_dataset

    corpus = values.get("corpus")
    if "records" in values:
        folder = comma_list(str(values["records"]))[0]
        corpus = load_dataset(folder).provenance.get("flags", {}).get("corpus")
    end_with(
        result.bundle,
        *("summarize", "--corpus", corpus or "jsonl:YOURS/*.jsonl"),
        *(*flags, result.bundle, "--output", "summaries"),
    )


def show_load(result: "TableResult", values: Values) -> None:
    """`precis load`: the changes to the table."""
    change = (
        f"wrote {result.rows:,} rows in place of {result.replaced:,} earlier ones, as "
        f"version {result.version}"
    )
    if not result.rows:
        change = "no rows; nothing was written"
    elif result.was_noop:
        change = f"already in the table, version {result.version}; nothing was written"
    _warn_of_nuls("load", result.replaced_nuls)
    print(f"run {result.run_id}: {change}")
    if result.rows and not result.was_noop:
        print(f"wrote {values['table']}")


def _warn_of_nuls(command: str, replaced: int) -> None:
    if replaced:
        say(
            f"precis {command}: warning: {replaced:,} NUL characters became U+FFFD, "
            "because PostgreSQL cannot store them"
        )


def show_loaders(result: "LoaderFiles", values: Values) -> None:
    """`precis loaders`: prints nothing after printed SQL, which can then be piped to a
    client.
    """
    from precis.pipelines.warehouse.loaders import client_command

    _warn_of_nuls("loaders", result.replaced_nuls)
    if output := values.get("output"):
        print(f"wrote {output}")
        if command := client_command(values["for_"], output):
            say_next(command)
        return
    for name, text in result.files.items():
        print(f"-- {name}\n{text}")


def show_report(result: "ReportResult", values: Values) -> None:
    """`precis report`: what the page shows and does not show."""
    shown = f"{result.documents:,} of {result.rows:,} documents"
    print(f"report: {shown}, {result.bytes / 1e6:.1f} MB")
    if result.missing_articles:
        print(
            f"without their article: {result.missing_articles:,} documents, as "
            f"{result.missing_reason}"
        )
    print(f"wrote {result.path}")
    say_next(f"open {result.path} in a browser")


def show_verified(result: "Verification", values: Values) -> int:
    """`precis verify`: the findings; returns 1 if there is damage."""
    for line in result.findings:
        print(line)
    for line in result.notes:
        print(f"note: {line}")
    count = len(result.findings)
    outcome = "is complete and unchanged"
    if count:
        is_whole = f"{outcome}, but differs from --corpus"
        outcome = "is damaged" if result.is_damaged else is_whole
        outcome += f": {count} finding{'s' * (count > 1)} above"
    checked = f"{result.files:,} files, {result.bytes:,} bytes"
    print(f"{result.kind} {values['folder']} {outcome} ({checked})")
    return int(count > 0)


def show_findings(findings: Sequence[Diagnosis], values: Values) -> int:
    """`precis doctor`: a line for each finding; returns 1 if there is a problem."""
    indent = max(len(finding.subject) for finding in findings) + 2
    for level, subject, found, advice in findings:
        way_out = f" -> {advice}" if advice else ""
        print(with_dashes(f"{level:9}{subject:{indent}}{found}{way_out}"))
    levels = [finding.level for finding in findings]
    problems, warnings = levels.count("problem"), levels.count("warning")
    command = values.get("command")
    print(
        f"{problems} problem{'s' * (problems != 1)}, "
        f"{warnings} warning{'s' * (warnings != 1)} for "
        + (f"`precis {command}`" if command else "this installation")
    )
    return int(problems > 0)
