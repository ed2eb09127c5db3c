"""The commands: their flags, their help, and what each prints at its end.

A command imports its job when it runs. Its last line is `next:` and a command line that
takes its result; `verify` and `digest`, which make nothing, have none.
"""

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from precis.pipelines.command_line.result_commands import (
    run_digest,
    run_load,
    run_verify,
)
from precis.pipelines.command_line.train_commands import (
    run_train,
    run_train_extractor,
    run_train_keyphrases,
)
from precis.pipelines.doctor.doctor_command import run_doctor
from precis.pipelines.estimation.estimate_command import print_estimate
from precis.pipelines.flags.command_parser import HelpText
from precis.pipelines.jobs.result_files import DATA_FOLDER
from precis.pipelines.options.bundles import ATTENTION, EXPORT, IMPORT
from precis.pipelines.options.doctor import DOCTOR
from precis.pipelines.options.estimate import EstimateOptions, split_values
from precis.pipelines.options.evaluate import EVALUATE
from precis.pipelines.options.load import LOAD
from precis.pipelines.options.prepare import PREPARE
from precis.pipelines.options.summarize import SUMMARIZE
from precis.pipelines.options.train import (
    TRAIN,
    TRAIN_EXTRACTOR,
    TRAIN_KEYPHRASES,
)
from precis.pipelines.options.verify import DIGEST, VERIFY
from precis.pipelines.terminal.last_lines import (
    end_with,
    end_with_template,
    listed,
    suggest_next,
    warn_of_cuts,
)
from precis.pipelines.terminal.progress_line import load_tensorflow


class Command(NamedTuple):
    """A command.

    Attributes:
      text: its help.
      concerns: the dataclasses whose fields are its flags.
      run: takes the flags as keywords and Beam's own flags; prints the result and
          returns the exit code.
    """

    text: HelpText
    concerns: tuple[type, ...]
    run: Callable[[dict[str, Any], list[str]], int]


def overview() -> str:
    """The help of precis: its commands."""
    width = max(map(len, COMMANDS)) + 2
    commands = [
        f"  {name:{width}}{command.text.summary}" for name, command in COMMANDS.items()
    ]
    return "\n".join(
        [
            "usage: precis COMMAND [FLAGS]",
            "",
            "Summarizes a whole corpus: extractive and abstractive, in bulk.",
            "",
            "commands:",
            *commands,
            "",
            "`precis COMMAND --help` shows the flags of a command and an example;",
            "`precis --version` the version. To begin, without a network:",
            "",
            "  precis summarize --corpus 'jsonl:news/*.jsonl' --output summaries",
        ]
    )


def _prepare(values: dict[str, Any], beam_args: list[str]) -> int:
    options, values = split_values(values)
    if options.estimate:
        return print_estimate("prepare", options, values, beam_args)
    from precis.pipelines.preparation.prepare import prepare

    info = prepare(beam_args=beam_args, **values)
    records = listed({split: info.records(split) for split in info.splits})
    print(f"records: {records}; {listed(info.counts)}")
    for name, flag in (("articles", "source"), ("targets", "target")):
        lengths = getattr(info, f"{flag}_lengths")
        warn_of_cuts(
            "prepare",
            share=lengths.cut / max(1, info.counts["written"]),
            what=f"the {name} are longer than --max_{flag}_tokens "
            f"{getattr(info, f'max_{flag}_tokens')} and were cut",
            way_out=f"the median has {lengths.deciles[5]} tokens; raise the flag where "
            "their ends matter",
        )
    output = values["output"]
    end_with(output, "precis", "train", "--records", output, "--output", "bundle")
    return 0


def _import(values: dict[str, Any], _: list[str]) -> int:
    load_tensorflow("import")
    from precis.model.bundle.manifest import ENCODER, read_manifest
    from precis.pipelines.bundles.import_checkpoint import import_checkpoint

    print(f"model {import_checkpoint(**values)}")
    output = values["output"]
    if read_manifest(output)["kind"] == ENCODER:
        flags = ("train-extractor", "--records", "records", "--encoder", output)
        end_with(output, "precis", *flags, "--output", "extractor")
    else:
        flags = ("summarize", "--corpus", "jsonl:news/*.jsonl", "--bundle", output)
        end_with(output, "precis", *flags, "--output", "summaries")
    return 0


def _summarize(values: dict[str, Any], beam_args: list[str]) -> int:
    options, values = split_values(values)
    if options.estimate:
        return print_estimate("summarize", options, values, beam_args)
    from precis.model import files
    from precis.model.inference.search_cost import format_search_cost
    from precis.pipelines.summarizing.summarize import has_references, summarize

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


def _export(values: dict[str, Any], _: list[str]) -> int:
    load_tensorflow("export")
    from precis.pipelines.bundles.export import export

    print(f"model {export(**values)['model_id']}")
    output = values["output"]
    call = (
        "import tensorflow as tf, tensorflow_text; "
        f"graph = tf.saved_model.load({json.dumps(str(output))}); "
        'print(graph.signatures["serving_default"](articles=tf.constant(["Rain."])))'
    )
    end_with(output, sys.executable, "-c", call)
    return 0


def _attention(values: dict[str, Any], _: list[str]) -> int:
    load_tensorflow("attention")
    from precis.pipelines.bundles.attention import attention

    print(f"wrote {attention(**values)}")
    print("next: look at the picture")
    return 0


def _evaluate(values: dict[str, Any], beam_args: list[str]) -> int:
    from precis.model import files
    from precis.pipelines.evaluation.evaluate import default_output, evaluate, headline

    result = evaluate(beam_args=beam_args, **values)
    print(headline(result))
    run = str(values["input"])
    manifest = files.join(run, "manifest.json")
    if files.exists(manifest):
        print(f"summaries: {files.join(run, DATA_FOLDER)}/*.parquet")
    if files.exists(manifest):
        flags = ("--config", manifest, "--corpus", "jsonl:YOURS/*.jsonl", "--split", "")
        suggest_next("precis", "summarize", *flags, "--output", "summaries")
    else:
        output = str(values.get("output") or default_output(run))
        described = files.join(output, "rouge.json")
        flags = ("--config", described, "--output", output, "--show", "3")
        suggest_next("precis", "evaluate", *flags)
    return 0


def _command(
    summary: str,
    concerns: Sequence[type],
    run: Callable[[dict[str, Any], list[str]], int],
    *examples: str,
    uses_beam: bool = False,
) -> Command:
    return Command(HelpText(summary, examples, uses_beam), tuple(concerns), run)


COMMANDS: dict[str, Command] = {
    "prepare": _command(
        "Turn a corpus into a vocabulary and TFRecord shards.",
        (*PREPARE, EstimateOptions),
        _prepare,
        "precis prepare --corpus 'jsonl:news/*.jsonl.gz' --output records",
        "precis prepare --corpus tfds:cnn_dailymail --output records",
        uses_beam=True,
    ),
    "train": _command(
        "Train a network that writes summaries.",
        TRAIN,
        run_train,
        "precis train --records records --output bundle --network small",
        "precis train --records records --output tuned --init_from bart --steps 5000",
    ),
    "train-extractor": _command(
        "Train a network that picks sentences.",
        TRAIN_EXTRACTOR,
        run_train_extractor,
        "precis train-extractor --records records --output extractor",
    ),
    "train-keyphrases": _command(
        "Train a classifier of keyphrases.",
        TRAIN_KEYPHRASES,
        run_train_keyphrases,
        "precis train-keyphrases --records records --output keyphrases",
    ),
    "import": _command(
        "Make a bundle of a checkpoint from another project.",
        IMPORT,
        _import,
        "precis import bart-large-cnn --output bundle",
    ),
    "summarize": _command(
        "Summarize every document of a corpus, to Parquet.",
        (*SUMMARIZE, EstimateOptions),
        _summarize,
        "precis summarize --corpus 'jsonl:news/*.jsonl' --output summaries",
        "precis summarize --corpus 'jsonl:news/*.jsonl' --bundle bundle --output runs",
        uses_beam=True,
    ),
    "evaluate": _command(
        "Score summaries against references with ROUGE.",
        EVALUATE,
        _evaluate,
        "precis evaluate --input summaries --show 3",
        uses_beam=True,
    ),
    "load": _command(
        "Load a finished run into an Iceberg or Delta table, as one snapshot.",
        LOAD,
        run_load,
        "precis load summaries --table iceberg+sqlite://warehouse/news.summaries",
    ),
    "export": _command(
        "Make a TensorFlow SavedModel of a bundle, from text to summaries.",
        EXPORT,
        _export,
        "precis export bundle --output saved_model --beam_width 4",
    ),
    "attention": _command(
        "Draw what a network reads while it writes a summary.",
        ATTENTION,
        _attention,
        "precis attention --bundle bundle --text article.txt --output picture.png",
    ),
    "verify": _command(
        "Check that a result is whole and as it was written.",
        VERIFY,
        run_verify,
        "precis verify summaries",
        "precis verify summaries --corpus 'jsonl:news/*.jsonl'",
    ),
    "doctor": _command(
        "Check what would stop a command, before anything is spent on it.",
        DOCTOR,
        lambda values, _: run_doctor(values, COMMANDS),
        "precis doctor",
        "precis doctor summarize --corpus 'jsonl:news/*.jsonl' --output summaries",
    ),
    "digest": _command(
        "Print one hash of the content of a run.",
        DIGEST,
        run_digest,
        "precis digest summaries",
    ),
}
