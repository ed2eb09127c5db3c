"""The commands `prepare`, `summarize` and `evaluate`: they read a corpus or a run, by a
Beam pipeline.
"""

import json
import sys
from collections.abc import Mapping
from typing import Any

from precis.pipelines.command_line.document_command import print_summary
from precis.pipelines.options.one_document import split_document
from precis.pipelines.run.last_lines import (
    end_with,
    end_with_template,
    listed,
    suggest_next,
    unused_output,
    warn_of_cuts,
)
from precis.pipelines.run.result_files import DATA_FOLDER


def run_prepare(values: dict[str, Any], beam_args: list[str]) -> int:
    """Prepares records; prints their counts, and a warning where many texts are cut."""
    from precis.pipelines.prepare.prepare import prepare

    info = prepare(beam_args=beam_args, **values)
    records = {split: info.records(split) for split in info.splits}
    print(f"records: {listed(records)}; {listed(info.counts)}")
    for name, flag in (("articles", "source"), ("targets", "target")):
        lengths = getattr(info, f"{flag}_lengths")
        warn_of_cuts(
            "prepare",
            share=lengths.cut / max(1, sum(records.values())),
            what=f"the {name} are longer than --max_{flag}_tokens "
            f"{getattr(info, f'max_{flag}_tokens')} and were cut",
            way_out=f"the median has {lengths.deciles[5]} tokens; raise the flag where "
            "their ends matter",
        )
    output, bundle = values["output"], unused_output("bundle")
    end_with(output, "precis", "train", "--records", output, "--output", bundle)
    return 0


def run_summarize(values: dict[str, Any], beam_args: list[str]) -> int:
    """Summarizes a corpus; prints what became of its documents.

    With --text, prints the summary of that document.
    """
    one_document, values = split_document(values)
    if one_document.text:
        return print_summary(one_document, values, beam_args)
    from precis.model import files
    from precis.model.inference.search_cost import format_search_cost
    from precis.pipelines.summarize.summarize import has_references, summarize

    manifest = summarize(beam_args=beam_args, **values)
    if not manifest:
        end_with_template(beam_args, values["output"])
        return 0
    counts = manifest["counts"]
    shown = {name: count for name, count in counts.items() if count or name == "read"}
    print(f"documents: {listed(shown)}")
    if manifest["summary_methods"]:
        print(f"summaries: {listed(manifest['summary_methods'])}")
    if manifest["quality_flags"]:
        print(f"quality flags: {listed(manifest['quality_flags'])}")
    if manifest["fallbacks"]:
        print(f"abstractive summaries held back: {listed(manifest['fallbacks'])}")
    if manifest["search"]:
        print(format_search_cost(manifest["search"]))
    warn_of_cuts(
        "summarize",
        share=counts["truncated"] / max(1, sum(manifest["summary_methods"].values())),
        what="the articles are longer than the network reads; a part was not read",
        way_out="the column `truncated` marks them; --long_documents chunk_merge reads "
        "them whole, and a network that reads more is trained on records with a larger "
        "--max_source_tokens",
    )
    models = {
        "model": manifest["model_id"],
        "extractor": manifest["extractive_model_id"],
        "keyphrases": manifest["keyphrase_model_id"],
    }
    used = [f", {name} {model}" for name, model in models.items() if model]
    print(f"run {manifest['run_id']}{''.join(used)}")
    if values.get("table"):
        print(f"table {values['table']} holds the run")
    output = values["output"]
    if has_references(output, manifest):
        end_with(output, "precis", "evaluate", "--input", output, "--show", "3")
    else:
        query = (
            "import pyarrow.parquet as p; "
            f"print(p.read_table({json.dumps(files.join(str(output), DATA_FOLDER))}, "
            'columns=["document_id", "summary"]).slice(0, 3).to_pylist())'
        )
        end_with(output, sys.executable, "-c", query)
    return 0


def run_evaluate(values: dict[str, Any], beam_args: list[str]) -> int:
    """Evaluates a run; prints the best system beside the baseline."""
    from precis.model import files
    from precis.pipelines.evaluate.evaluate import evaluate, headline
    from precis.pipelines.options.evaluate import default_output

    result = evaluate(beam_args=beam_args, **values)
    print(headline(result))
    run = str(values["input"])
    manifest = files.join(run, "manifest.json")
    if files.exists(manifest):
        print(f"summaries: {files.join(run, DATA_FOLDER)}/*.parquet")
    if files.exists(manifest):
        flags = ["--config", manifest, "--corpus", "jsonl:YOURS/*.jsonl", "--split", ""]
        flags += _whole_corpus(files.read_json(manifest))
        suggest_next(
            "precis", "summarize", *flags, "--output", unused_output("summaries")
        )
    else:
        output = str(values.get("output") or default_output(run))
        described = files.join(output, "rouge.json")
        flags = ["--config", described, "--output", output, "--show", "3"]
        suggest_next("precis", "evaluate", *flags)
    return 0


def _whole_corpus(manifest: Mapping[str, Any]) -> list[str]:
    """The flags that take all documents where a run has taken some."""
    flags = manifest.get("provenance", {}).get("flags", {})
    selected = [name for name in ("limit", "sample") if flags.get(name)]
    return [word for name in selected for word in (f"--{name}", "all")]
