"""The commands: their flags, their help, and the functions that they call.

If a command made something, its last line is `next:` and a command that uses the
result, except with --quiet; `loaders` without --output prints only SQL.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from precis.model.config import suggestion
from precis.model.errors import UsageError
from precis.pipelines.bundles.options import ATTENTION, EXPORT, IMPORT
from precis.pipelines.command_line import results
from precis.pipelines.command_line.parser import Command
from precis.pipelines.doctor.options import DOCTOR, Diagnosis
from precis.pipelines.evaluate.options import EVALUATE
from precis.pipelines.prepare.options import PREPARE
from precis.pipelines.report.options import REPORT
from precis.pipelines.summarize.options import SUMMARIZE, OneDocumentOptions
from precis.pipelines.training.options import (
    TRAIN,
    TRAIN_KEYPHRASES,
    TRAIN_SELECTOR,
    TRAIN_SUMMARIZER,
)
from precis.pipelines.verify.options import DIGEST, VERIFY
from precis.pipelines.warehouse.options import LOAD, LOADERS


def doctor(
    command: str = "",
    *,
    flags: Mapping[str, Any] | None = None,
    beam_args: Sequence[str] = (),
) -> list[Diagnosis]:
    """Checks the installation, or whether a command can start, before it runs.

    Args:
      command: such as `summarize`; if empty, only the installation is checked.
      flags: the flags of the command, by name.
      beam_args: the flags for Beam itself.

    Returns:
      The findings, each with advice.

    Raises:
      UsageError: the command does not exist, or refuses its flags.
    """
    from precis.pipelines.doctor.doctor import examine

    known = [name for name in COMMANDS if name != "doctor"]
    if command and command not in known:
        way_out = suggestion(command, known) or "`precis --help` lists the commands"
        raise UsageError(f"unknown command {command!r}; {way_out}")
    groups = COMMANDS[command].option_groups if command else ()
    return list(examine(command, groups, flags or {}, beam_args))


def load_function(name: str) -> Callable[..., Any]:
    """Imports a function of `import precis` by name when it is called, because
    TensorFlow and Beam take seconds.
    """
    match name:
        case "prepare":
            from precis.pipelines.prepare.prepare import prepare as function
        case "train":
            from precis.pipelines.training.train import train as function
        case "train_selector":
            from precis.pipelines.training.train import train_selector as function
        case "train_keyphrases":
            from precis.pipelines.training.train import train_keyphrases as function
        case "train_summarizer":
            from precis.pipelines.training.train_summarizer import (
                train_summarizer as function,
            )
        case "import_checkpoint":
            from precis.pipelines.bundles.import_checkpoint import (
                import_checkpoint as function,
            )
        case "summarize":
            from precis.pipelines.summarize.summarize import summarize as function
        case "summarize_text":
            from precis.pipelines.summarize.texts import summarize_text as function
        case "summarize_frame":
            from precis.pipelines.summarize.texts import summarize_frame as function
        case "evaluate":
            from precis.pipelines.evaluate.evaluate import evaluate as function
        case "report":
            from precis.pipelines.report.report import report as function
        case "load":
            from precis.pipelines.warehouse.load import load as function
        case "loaders":
            from precis.pipelines.warehouse.loaders import loaders as function
        case "export":
            from precis.pipelines.bundles.export import export as function
        case "attention":
            from precis.pipelines.bundles.attention import attention as function
        case "verify":
            from precis.pipelines.verify.verify import verify as function
        case "digest":
            from precis.pipelines.verify.digest import digest as function
        case _:
            return doctor
    return function


def function_of(command: str) -> str:
    """The name of the function for a command; `import` is a keyword of Python."""
    name = command.replace("-", "_")
    return "import_checkpoint" if name == "import" else name


COMMANDS = {
    "prepare": Command(
        "Turn a corpus into a vocabulary and TFRecord shards.",
        PREPARE,
        results.show_records,
        ("--corpus 'jsonl:news/*.jsonl.gz' --output records",),
        uses_beam=True,
    ),
    "train": Command(
        "Train a network that writes summaries.",
        TRAIN,
        results.show_training,
        ("--records records --output bundle --network small",),
        uses_tensorflow=True,
    ),
    "train-selector": Command(
        "Train a selector, the network that picks sentences.",
        TRAIN_SELECTOR,
        functools.partial(
            results.show_training,
            flags=("--extractive", "neural,lead", "--extractive_bundle"),
        ),
        ("--records records --output selector",),
        uses_tensorflow=True,
    ),
    "train-keyphrases": Command(
        "Train a classifier of keyphrases.",
        TRAIN_KEYPHRASES,
        functools.partial(results.show_training, flags=("--keyphrase_bundle",)),
        ("--records records --output keyphrases",),
        uses_tensorflow=True,
    ),
    "train-summarizer": Command(
        "Train a selector, and a writer that shortens the sentences it selects.",
        TRAIN_SUMMARIZER,
        results.show_training,
        ("--corpus 'jsonl:news/*.jsonl.gz' --output summarizer",),
        uses_tensorflow=True,
    ),
    "import": Command(
        "Turn a checkpoint of another project into a bundle.",
        IMPORT,
        results.show_imported,
        ("hf://facebook/bart-large-cnn --output bundle",),
        uses_tensorflow=True,
    ),
    "summarize": Command(
        "Summarize every document of a corpus, to Parquet.",
        (*SUMMARIZE, OneDocumentOptions),
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
        results.show_scores,
        ("--input summaries",),
        uses_beam=True,
    ),
    "report": Command(
        "Show a finished run as one HTML page that works offline.",
        REPORT,
        results.show_report,
        ("summaries",),
    ),
    "load": Command(
        "Load a finished run into a table of a lake or a database, once.",
        LOAD,
        results.show_load,
        ("summaries --table duckdb://warehouse.duckdb/summaries",),
    ),
    "loaders": Command(
        "Write the SQL that loads a finished run into a warehouse.",
        LOADERS,
        results.show_loaders,
        ("summaries --for duckdb --output sql",),
    ),
    "export": Command(
        "Turn a bundle into a checkpoint of transformers, or a TensorFlow SavedModel.",
        EXPORT,
        results.show_export,
        (
            "bundle --output checkpoint --beam_width 4",
            "bundle --format saved_model --output saved --n_best 3",
        ),
    ),
    "attention": Command(
        "Draw what a network reads while it writes a summary.",
        ATTENTION,
        results.show_picture,
        ("--bundle bundle --text article.txt --output picture.png",),
        uses_tensorflow=True,
    ),
    "verify": Command(
        "Check that a result is complete and unchanged.",
        VERIFY,
        results.show_verified,
        ("summaries",),
    ),
    "doctor": Command(
        "Check the installation, and whether a command can run.",
        DOCTOR,
        results.show_findings,
        ("", "summarize --corpus 'jsonl:news/*.jsonl' --output summaries"),
    ),
    "digest": Command(
        "Print one hash of the content of a run.",
        DIGEST,
        lambda digest, _: print(digest),
        ("summaries",),
    ),
}


def overview() -> str:
    """The help of precis: a list of its commands."""
    width = max(map(len, COMMANDS)) + 2
    commands = [f"  {name:{width}}{each.summary}" for name, each in COMMANDS.items()]
    return "\n".join(
        [
            "usage: precis COMMAND [FLAGS]",
            "",
            "Summarizes a whole corpus with extractive and abstractive methods.",
            "",
            "commands:",
            *commands,
            "",
            "`precis COMMAND --help` shows the flags of a command and an example;",
            "`precis --version` shows the version. To start, without a network:",
            "",
            "  precis summarize --corpus 'jsonl:news/*.jsonl' --output summaries",
        ]
    )
