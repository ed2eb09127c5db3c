"""The commands: their flags, what they call, and their help.

Where a command has made something, its last line is `next:` and a command line that
takes the result, but for --quiet; `loaders` without --output prints SQL alone.
"""

import functools

from precis.pipelines.bundles.options import ATTENTION, EXPORT, IMPORT
from precis.pipelines.command_line import results
from precis.pipelines.command_line.parser import Command
from precis.pipelines.doctor.options import DOCTOR
from precis.pipelines.evaluate.options import EVALUATE
from precis.pipelines.prepare.options import PREPARE
from precis.pipelines.report.options import REPORT
from precis.pipelines.summarize.options import SUMMARIZE, OneDocumentOptions
from precis.pipelines.training.options import (
    TRAIN,
    TRAIN_EXTRACTOR,
    TRAIN_KEYPHRASES,
    TRAIN_SUMMARIZER,
)
from precis.pipelines.verify.options import DIGEST, VERIFY
from precis.pipelines.warehouse.options import LOAD, LOADERS

COMMANDS = {
    "prepare": Command(
        "Turn a corpus into a vocabulary and TFRecord shards.",
        PREPARE,
        "prepare.prepare.prepare",
        results.show_records,
        ("--corpus 'jsonl:news/*.jsonl.gz' --output records",),
        uses_beam=True,
    ),
    "train": Command(
        "Train a network that writes summaries.",
        TRAIN,
        "training.train.train",
        results.show_training,
        ("--records records --output bundle --network small",),
        uses_tensorflow=True,
    ),
    "train-extractor": Command(
        "Train a network that picks sentences.",
        TRAIN_EXTRACTOR,
        "training.train.train_extractor",
        functools.partial(
            results.show_training,
            flags=("--extractive", "neural,lead", "--extractive_bundle"),
        ),
        ("--records records --output extractor",),
        uses_tensorflow=True,
    ),
    "train-keyphrases": Command(
        "Train a classifier of keyphrases.",
        TRAIN_KEYPHRASES,
        "training.train.train_keyphrases",
        functools.partial(results.show_training, flags=("--keyphrase_bundle",)),
        ("--records records --output keyphrases",),
        uses_tensorflow=True,
    ),
    "train-summarizer": Command(
        "Train an extractor and a network that rewrites what it chooses.",
        TRAIN_SUMMARIZER,
        "training.train_summarizer.train_summarizer",
        results.show_training,
        ("--corpus 'jsonl:news/*.jsonl.gz' --output summarizer",),
        uses_tensorflow=True,
    ),
    "import": Command(
        "Make a bundle of a checkpoint from another project.",
        IMPORT,
        "bundles.import_checkpoint.import_checkpoint",
        results.show_imported,
        ("hf://facebook/bart-large-cnn --output bundle",),
        uses_tensorflow=True,
    ),
    "summarize": Command(
        "Summarize every document of a corpus, to Parquet.",
        (*SUMMARIZE, OneDocumentOptions),
        "summarize.summarize.summarize",
        results.show_run,
        (
            "--corpus 'jsonl:news/*.jsonl' --output summaries",
            "--corpus 'jsonl:news/*.jsonl' --bundle bundle --output runs",
            "--text article.txt --bundle bundle",
        ),
        uses_beam=True,
    ),
    "evaluate": Command(
        "Score summaries against references with ROUGE.",
        EVALUATE,
        "evaluate.evaluate.evaluate",
        results.show_scores,
        ("--input summaries",),
        uses_beam=True,
    ),
    "report": Command(
        "Show a finished run as one HTML page that needs no connection.",
        REPORT,
        "report.report.report",
        results.show_report,
        ("summaries",),
    ),
    "load": Command(
        "Load a finished run into an Iceberg or Delta table, as one snapshot.",
        LOAD,
        "warehouse.load.load",
        results.show_load,
        ("summaries --table iceberg+sqlite://warehouse/news.summaries",),
    ),
    "loaders": Command(
        "Write the SQL that loads a finished run into a warehouse.",
        LOADERS,
        "warehouse.loaders.loaders",
        results.show_loaders,
        ("summaries --for duckdb --output sql",),
    ),
    "export": Command(
        "Make a checkpoint of a bundle that Hugging Face transformers loads.",
        EXPORT,
        "bundles.export.export",
        results.show_export,
        ("bundle --output checkpoint --beam_width 4",),
    ),
    "attention": Command(
        "Draw what a network reads while it writes a summary.",
        ATTENTION,
        "bundles.attention.attention",
        results.show_picture,
        ("--bundle bundle --text article.txt --output picture.png",),
        uses_tensorflow=True,
    ),
    "verify": Command(
        "Check that a result is whole and as it was written.",
        VERIFY,
        "verify.verify.verify",
        results.show_verified,
        ("summaries",),
    ),
    "doctor": Command(
        "Say what an installation has, and what a command lacks.",
        DOCTOR,
        "command_line.functions.doctor",
        results.show_findings,
        ("", "summarize --corpus 'jsonl:news/*.jsonl' --output summaries"),
    ),
    "digest": Command(
        "Print one hash of the content of a run.",
        DIGEST,
        "verify.digest.digest",
        lambda digest, _: print(digest),
        ("summaries",),
    ),
}


def overview() -> str:
    """The help of precis: its commands."""
    width = max(map(len, COMMANDS)) + 2
    commands = [f"  {name:{width}}{each.summary}" for name, each in COMMANDS.items()]
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
