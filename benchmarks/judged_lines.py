"""How often the written lines of a summarizer are right, and what `line_confidence`
knows of it, by a reader's judgement.

    python benchmarks/judged_lines.py draw RUN --lines 150 > lines.jsonl
    python benchmarks/judged_lines.py score lines.jsonl

`draw` prints lines of a run, drawn at random, each with its sentence. The reader sets
`wrong` of each to true or false: wrong is what a careful editor would not print, as it
is broken, says what the sentence does not say, or says nothing. `score` prints `name
value unit` lines: the share that is wrong; of those that do not stand as in the
article, the mean confidence beside the share that is right; of all, the area under the
curve, and the share of the wrong ones that lies below the confidence that 5 % of the
right ones are below.
"""

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from precis.model.text.article import Article
from precis.model.text.normalization import one_line
from precis.pipelines.report.articles import articles_of_rows
from precis.pipelines.tables.finished_run import open_run

FALSE_ALARMS = 0.05


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags and draws lines or scores them."""
    parser = argparse.ArgumentParser(description="Written lines, as a reader judges.")
    modes = parser.add_subparsers(dest="mode", required=True)
    draw = modes.add_parser("draw", help="print lines to judge")
    draw.add_argument("run", help="output of `precis summarize` with a summarizer")
    draw.add_argument("--lines", type=int, default=150)
    draw.add_argument("--seed", type=int, default=0)
    score = modes.add_parser("score", help="print what the judgements say")
    score.add_argument("judged", type=Path, help="the lines, each with `wrong` set")
    flags = parser.parse_args(argv)
    if flags.mode == "draw":
        lines = list(lines_of_run(flags.run))
        random.Random(flags.seed).shuffle(lines)
        for line in lines[: flags.lines]:
            print(json.dumps({**line, "wrong": None}, ensure_ascii=False))
    else:
        judged = list(map(json.loads, flags.judged.read_text().splitlines()))
        for number, line in enumerate(judged, start=1):
            if line["wrong"] not in (True, False):
                raise SystemExit(f"line {number}: set `wrong` to true or false")
        for name, value, unit in figures(judged):
            print(f"{name:24} {value:8.2f} {unit}")


def lines_of_run(folder: str) -> Iterator[dict[str, Any]]:
    """The lines of all written summaries, with their sentences and confidences."""
    run = open_run(folder)
    for table in run.tables():
        rows = [row for row in table.to_pylist() if row["abstractive"]]
        for row, article in zip(
            rows, articles_of_rows(rows, run.manifest), strict=True
        ):
            if not isinstance(article, Article):
                raise SystemExit(f"{row['document_id']}: {article}")
            written = row["abstractive"][0]
            if written["support"] is None:
                raise SystemExit(f"{folder}: of a network that wrote whole summaries")
            sentences = {each.start: each.text for each in article.sentences}
            for line, support in zip(
                written["text"].split("\n"), written["support"], strict=True
            ):
                yield {
                    "document_id": row["document_id"],
                    "sentence": one_line(sentences[support["start"]]),
                    "line": line,
                    "confidence": support["confidence"],
                }


def figures(judged: Sequence[dict[str, Any]]) -> Iterator[tuple[str, float, str]]:
    """The names, values and units of what is printed."""
    wrong = np.array([line["wrong"] for line in judged], bool)
    confidence = np.array([line["confidence"] for line in judged])
    yield "lines", len(judged), "lines"
    yield "wrong", 100 * wrong.mean(), "%"
    is_written = np.array([line["line"] != line["sentence"] for line in judged])
    if is_written.any():
        yield "written", is_written.sum(), "lines"
        yield "written and right", 100 * (~wrong[is_written]).mean(), "%"
        yield "mean confidence", 100 * confidence[is_written].mean(), "%"
    right, doubtful = confidence[~wrong], confidence[wrong]
    if right.size and doubtful.size:
        above, equal = right[:, None] > doubtful, right[:, None] == doubtful
        yield "area under the curve", (above + 0.5 * equal).mean(), ""
        limit = np.quantile(right, FALSE_ALARMS)
        yield "found", 100 * (doubtful < limit).mean(), "%"


if __name__ == "__main__":
    main()
