"""`precis evaluate`: Parquet -> ROUGE of every system against the references, with bootstrap intervals."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from model import files, rouge
from model.errors import UsageError
from pipelines import progress
from pipelines.flags import option_names, read_flags
from pipelines.options import EVALUATE, EvaluateOptions
from pipelines.runner import pipeline_options, run_pipeline

ABSTRACTIVE = "abstractive"
_SCORED_COLUMNS = ["reference_summary", "extractive", "abstractive_summary", "truncated"]
_SHOWN_COLUMNS = ["document_id", "reference_summary", "extractive_method", "extractive_summary", "abstractive_summary"]


class RowGroup(NamedTuple):
    """One task: a row group of a Parquet file, and how many rows it has."""

    path: str
    row_group: int
    rows: int


class RowGroupScores(NamedTuple):
    """What one task yields.

    Attributes:
      group: the task, by which results are ordered.
      rows: rows read; without_reference: rows that were skipped for want of one.
      judged, truncated: scored rows that a network read, and those of them that it did not read to the end.
      most_sentences: for each extractive method, how many sentences it chose at most.
      scores: for each system a float64 array [N, 3]: ROUGE-1, ROUGE-2 and ROUGE-Lsum of the rows with a reference, in order;
          NaN where the system has no summary.
    """

    group: RowGroup
    rows: int
    without_reference: int
    judged: int
    truncated: int
    most_sentences: dict[str, int]
    scores: dict[str, np.ndarray]


def evaluate(*, beam_args: Sequence[str] = (), **flags: Any) -> dict[str, Any]:
    """Scores the summaries of a run, writes rouge.json and rouge.md, and prints the table.

    Args:
      beam_args: flags for Beam itself.
      **flags: the fields of `EvaluateOptions`.

    Returns:
      The content of rouge.json.

    Raises:
      UsageError: a flag, an input that is no finished run, or one without a single reference.
    """
    (options,) = read_flags(EVALUATE, flags)
    beam_options = pipeline_options(beam_args, own_flags=option_names(EVALUATE))
    folder = output_folder(options)
    result_path = files.join(folder, "rouge.json")
    paths = parquet_files(options.input)
    groups = list_row_groups(paths)
    pipeline = beam.Pipeline(options=beam_options)
    build(pipeline, groups, options)
    for name in ("rouge.json", "rouge.md"):  # a result of other rows must not pass for this one's if it fails
        files.remove(files.join(folder, name))
    run_pipeline(pipeline, label="evaluate", size=sum(group.rows for group in groups))
    result: dict[str, Any] = files.read_json(result_path)
    for document in shown_documents(paths, options.show):
        print(document)
    print(as_table(result))
    print(f"\nwrote {result_path} and {files.join(folder, 'rouge.md')}")
    return result


def build(pipeline: beam.Pipeline, groups: Sequence[RowGroup], options: EvaluateOptions) -> None:
    """Adds the evaluation to a pipeline: row groups -> scores -> rouge.json and rouge.md."""
    _ = (
        pipeline
        | "ListRowGroups" >> beam.Create(groups)
        | "ScoreRowGroups" >> beam.Map(score_row_group)
        | "GatherScores" >> beam.combiners.ToList()
        | "PublishResult" >> beam.Map(publish, options)
    )


def output_folder(options: EvaluateOptions) -> str:
    """Where the result goes."""
    if not options.output and _is_pattern(options.input):
        raise UsageError("--output is needed where --input is a pattern of files")
    return options.output or files.join(options.input, "evaluation")


def parquet_files(source: str) -> list[str]:
    """The Parquet files of a finished run or of a pattern, sorted.

    Raises:
      UsageError: no such files, no run, or a run that has not finished.
    """
    pattern = source if _is_pattern(source) else files.join(source, "summaries", "*.parquet")
    if not _is_pattern(source):
        if not files.exists(source):
            raise UsageError(f"{source} does not exist; give the --output of `precis summarize`")
        if not files.exists(files.join(source, "summaries")):
            raise UsageError(f"{source} is no run: it has no folder `summaries`; give the --output of `precis summarize`")
        if not files.exists(files.join(source, "_SUCCESS")):
            raise UsageError(
                f"the run {source} has not finished: it has no _SUCCESS; run the same `precis summarize` again to finish it, "
                f"or score what there is with --input '{pattern}' --output DIR"
            )
    found = files.glob(pattern)
    if not found:
        raise UsageError(f"no file matches {pattern}")
    return found


def list_row_groups(paths: Iterable[str]) -> list[RowGroup]:
    """The tasks, in order.

    Raises:
      UsageError: a file that is not Parquet, or not Parquet of summaries.
    """
    groups = []
    for path in paths:
        with files.open_read(path) as file:
            try:
                parquet = pq.ParquetFile(file)
            except pa.ArrowInvalid as error:
                raise UsageError(f"{path} is no Parquet file: {error}") from error
            missing = [name for name in _SCORED_COLUMNS if name not in parquet.schema_arrow.names]
            if missing:
                raise UsageError(f"{path} has no column {missing[0]!r}; give files written by `precis summarize`")
            groups += [RowGroup(path, index, parquet.metadata.row_group(index).num_rows) for index in range(parquet.num_row_groups)]
    return groups


def score_row_group(group: RowGroup) -> RowGroupScores:
    """Reads a row group and scores each system's summaries."""
    rows = _read_row_group(group, _SCORED_COLUMNS)
    scored = [row for row in rows if has_reference(row)]
    extractive = [extractive_summaries(row["extractive"] or ()) for row in scored]
    methods = sorted({method for summaries in extractive for method in summaries})
    systems: dict[str, list[str | None]] = {method: [summaries.get(method) for summaries in extractive] for method in methods}
    systems[ABSTRACTIVE] = [row["abstractive_summary"] for row in scored]
    references = [row["reference_summary"] for row in scored]
    progress.advance(len(rows), len(rows))
    judged = [row["truncated"] for row in scored if row["truncated"] is not None]
    return RowGroupScores(
        group=group,
        rows=len(rows),
        without_reference=len(rows) - len(scored),
        judged=len(judged),
        truncated=sum(judged),
        most_sentences={m: max(s[m].count("\n") + 1 for s in extractive if m in s) for m in methods},
        scores={system: _score(references, summaries) for system, summaries in systems.items()},
    )


def has_reference(row: Mapping[str, Any]) -> bool:
    """Whether a row can be scored."""
    return bool((row["reference_summary"] or "").strip())


def extractive_summaries(sentences: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Each method's summary: its sentences in document order, one a line."""
    lines: dict[str, list[str]] = {}
    for sentence in sorted(sentences, key=lambda sentence: sentence["start"]):
        # A sentence may run over a line break of the article, which would cut it in two for ROUGE-Lsum.
        lines.setdefault(sentence["method"], []).append(" ".join(sentence["text"].split()))
    return {method: "\n".join(own) for method, own in lines.items()}


def _score(references: Sequence[str], summaries: Sequence[str | None]) -> np.ndarray:
    matrix = np.full((len(references), len(rouge.MEASURES)), np.nan)
    present = [row for row, summary in enumerate(summaries) if summary is not None]
    found = rouge.scores([references[row] for row in present], [summaries[row] or "" for row in present])
    for column, measure in enumerate(rouge.MEASURES):
        matrix[present, column] = found[measure]
    return matrix


def publish(parts: Sequence[RowGroupScores], options: EvaluateOptions) -> None:
    """Writes rouge.json and rouge.md.

    Raises:
      UsageError: no row has a reference.
    """
    if sum(part.rows - part.without_reference for part in parts) == 0:
        raise UsageError(
            f"no row of {options.input} has a reference summary; run `precis summarize` on a corpus with highlights "
            "(name their field with --highlights_field)"
        )
    result = combine(parts, resamples=options.resamples, confidence=options.confidence)
    folder = output_folder(options)
    files.write_bytes(files.join(folder, "rouge.md"), as_markdown(result).encode())
    files.write_json(files.join(folder, "rouge.json"), result)


def combine(parts: Sequence[RowGroupScores], *, resamples: int, confidence: float) -> dict[str, Any]:
    """The result of all row groups, the same in whatever order they come."""
    parts = sorted(parts, key=lambda part: part.group)
    systems = []
    for system in _in_order({system for part in parts for system in part.scores}):
        matrix = np.concatenate([part.scores[system] for part in parts if system in part.scores])
        matrix = matrix[~np.isnan(matrix[:, 0])]
        if len(matrix):
            name = f"lead-{max(part.most_sentences.get('lead', 0) for part in parts)}" if system == "lead" else system
            figures = {
                measure: _figure(matrix[:, column], resamples=resamples, confidence=confidence)
                for column, measure in enumerate(rouge.MEASURES)
            }
            systems.append({"system": name, "rows": len(matrix), **figures})
    rows, without_reference = sum(part.rows for part in parts), sum(part.without_reference for part in parts)
    judged, truncated = sum(part.judged for part in parts), sum(part.truncated for part in parts)
    return {
        "variant": rouge.VARIANT,
        "confidence": confidence,
        "resamples": resamples,
        "rows": rows,
        "rows_scored": rows - without_reference,
        "rows_without_reference": without_reference,
        "truncated_share": truncated / judged if judged else None,
        "systems": systems,
    }


def _figure(values: np.ndarray, *, resamples: int, confidence: float) -> dict[str, float]:
    low, high = rouge.bootstrap_interval(values, resamples=resamples, confidence=confidence)
    return {"mean": float(values.mean()), "low": low, "high": high}


def _in_order(systems: Iterable[str]) -> list[str]:
    """The baseline first, the network last."""
    return sorted(systems, key=lambda system: (system == ABSTRACTIVE, system != "lead", system))


def as_table(result: Mapping[str, Any]) -> str:
    """The result as aligned text."""
    cells = _cells(result)
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join([*lines, "", *_notes(result)])


def as_markdown(result: Mapping[str, Any]) -> str:
    """The result as a Markdown table."""
    head, *rows = ["| " + " | ".join(row) + " |" for row in _cells(result)]
    return "\n".join([head, "|---|---:|---|---|---|", *rows, "", "  \n".join(_notes(result)), ""])


def _cells(result: Mapping[str, Any]) -> list[list[str]]:
    cells = [["system", "rows", *rouge.MEASURES.values()]]
    for system in result["systems"]:
        figures = [system[measure] for measure in rouge.MEASURES]
        texts = [f"{100 * f['mean']:.1f} [{100 * f['low']:.1f}, {100 * f['high']:.1f}]" for f in figures]
        cells.append([system["system"], str(system["rows"]), *texts])
    return cells


def _notes(result: Mapping[str, Any]) -> list[str]:
    share = result["truncated_share"]
    return [
        f"{result['variant']}; x100, {100 * result['confidence']:g} % intervals from {result['resamples']} bootstrap samples",
        f"rows scored: {result['rows_scored']}; without a reference: {result['rows_without_reference']}",
        "truncated: no network ran" if share is None else f"truncated: {100 * share:.1f} % of the documents were cut for the network",
    ]


def shown_documents(paths: Iterable[str], count: int) -> Iterator[str]:
    """Some documents with a reference, from all over the run, each with both summaries, as text to print."""
    groups = list_row_groups(paths) if count else []
    scored = [
        [row for row, values in enumerate(_read_row_group(group, ["reference_summary"])) if has_reference(values)] for group in groups
    ]
    total = sum(map(len, scored))
    # The middles of `count` equal stretches of the rows that have a reference.
    wanted = {(2 * number + 1) * total // (2 * count) for number in range(count)} if total else set()
    position = 0
    for group, own in zip(groups, scored, strict=True):
        chosen = [row for place, row in enumerate(own, start=position) if place in wanted]
        position += len(own)
        if chosen:
            rows = _read_row_group(group, _SHOWN_COLUMNS)
            yield from (_shown(rows[row]) for row in chosen)


def _read_row_group(group: RowGroup, columns: Sequence[str]) -> list[dict[str, Any]]:
    with files.open_read(group.path) as file:
        return pq.ParquetFile(file).read_row_group(group.row_group, columns=list(columns)).to_pylist()


def _shown(row: Mapping[str, Any]) -> str:
    parts = [
        ("reference", row["reference_summary"]),
        (row["extractive_method"], row["extractive_summary"]),
        (ABSTRACTIVE, row["abstractive_summary"] or "(none)"),
    ]
    texts = [f"{name}\n{textwrap.indent(text, '  ')}" for name, text in parts]
    return "\n".join([f"document {row['document_id']}", *texts, ""])


def _is_pattern(source: str) -> bool:
    return source.endswith(".parquet") or any(character in source for character in "*?[")
