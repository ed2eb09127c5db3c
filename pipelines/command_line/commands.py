"""The commands: their flags and their help.

A command imports its job when it runs and prints the result. Its last line is `next:`
and a command line that takes its result, but for --quiet and the steps of `run`.
`verify`, `digest` and `card`, which make nothing or print it, have none, and `loaders`
without --output prints SQL alone.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from precis.pipelines.command_line.bundle_commands import (
    run_attention,
    run_card,
    run_export,
    run_import,
)
from precis.pipelines.command_line.corpus_commands import (
    run_evaluate,
    run_prepare,
    run_summarize,
)
from precis.pipelines.command_line.result_commands import (
    run_digest,
    run_load,
    run_loaders,
    run_report,
    run_verify,
)
from precis.pipelines.command_line.train_commands import (
    run_train,
    run_train_extractor,
    run_train_keyphrases,
    run_train_summarizer,
)
from precis.pipelines.doctor.findings import Diagnosis
from precis.pipelines.flags.command_parser import HelpText
from precis.pipelines.options.bundles import ATTENTION, CARD, EXPORT, IMPORT
from precis.pipelines.options.doctor import DOCTOR
from precis.pipelines.options.evaluate import EVALUATE
from precis.pipelines.options.load import LOAD
from precis.pipelines.options.loaders import LOADERS
from precis.pipelines.options.one_document import OneDocumentOptions
from precis.pipelines.options.prepare import PREPARE
from precis.pipelines.options.report import REPORT
from precis.pipelines.options.summarize import SUMMARIZE
from precis.pipelines.options.train import (
    TRAIN,
    TRAIN_EXTRACTOR,
    TRAIN_KEYPHRASES,
)
from precis.pipelines.options.train_summarizer import TRAIN_SUMMARIZER
from precis.pipelines.options.verify import DIGEST, VERIFY


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


def _command(
    summary: str,
    concerns: Sequence[type],
    run: Callable[[dict[str, Any], list[str]], int],
    *examples: str,
    uses_beam: bool = False,
) -> Command:
    return Command(HelpText(summary, examples, uses_beam), tuple(concerns), run)


def doctor(
    *,
    command: str = "",
    flags: Mapping[str, Any] | None = None,
    beam_args: Sequence[str] = (),
) -> list[Diagnosis]:
    """Checks the installation, or what a command needs, before anything is spent.

    Args:
      command: such as `summarize`; without one, the installation alone is checked.
      flags: of that command, by name.
      beam_args: flags for Beam itself.

    Returns:
      What was found, with what to do about it.

    Raises:
      UsageError: there is no such command, or it refuses its flags.
    """
    from precis.pipelines.doctor.doctor import examine, read_request

    return list(examine(read_request(command, flags or {}, beam_args, COMMANDS)))


def _run_doctor(values: dict[str, Any], _: list[str]) -> int:
    from precis.pipelines.doctor.doctor import run_doctor

    return run_doctor(values, COMMANDS)


COMMANDS: dict[str, Command] = {
    "prepare": _command(
        "Turn a corpus into a vocabulary and TFRecord shards.",
        PREPARE,
        run_prepare,
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
    "train-summarizer": _command(
        "Train an extractor and a network that rewrites what it chooses.",
        TRAIN_SUMMARIZER,
        run_train_summarizer,
        "precis train-summarizer --corpus 'jsonl:news/*.jsonl.gz' --output summarizer",
    ),
    "import": _command(
        "Make a bundle of a checkpoint from another project.",
        IMPORT,
        run_import,
        "precis import bart-large-cnn --output bundle",
    ),
    "summarize": _command(
        "Summarize every document of a corpus, to Parquet.",
        (*SUMMARIZE, OneDocumentOptions),
        run_summarize,
        "precis summarize --corpus 'jsonl:news/*.jsonl' --output summaries",
        "precis summarize --corpus 'jsonl:news/*.jsonl' --bundle bundle --output runs",
        "precis summarize --text article.txt --bundle bundle",
        uses_beam=True,
    ),
    "evaluate": _command(
        "Score summaries against references with ROUGE.",
        EVALUATE,
        run_evaluate,
        "precis evaluate --input summaries --show 3",
        uses_beam=True,
    ),
    "report": _command(
        "Show a finished run as one HTML page that needs no connection.",
        REPORT,
        run_report,
        "precis report summaries",
        "precis report summaries --compare earlier --output page.html",
    ),
    "load": _command(
        "Load a finished run into an Iceberg or Delta table, as one snapshot.",
        LOAD,
        run_load,
        "precis load summaries --table iceberg+sqlite://warehouse/news.summaries",
    ),
    "loaders": _command(
        "Write the SQL that loads a finished run into a warehouse.",
        LOADERS,
        run_loaders,
        "precis loaders summaries --for duckdb --output sql",
        "precis loaders summaries --for bigquery --table news.a --location gs://b/r",
    ),
    "export": _command(
        "Make a TensorFlow SavedModel or a transformers checkpoint of a bundle.",
        EXPORT,
        run_export,
        "precis export bundle --output saved_model --beam_width 4",
        "precis export bundle --output checkpoint --format huggingface",
    ),
    "card": _command(
        "Print the model card of a bundle, with the scores of an evaluation.",
        CARD,
        run_card,
        "precis card bundle",
        "precis card bundle --evaluation summaries-evaluation --output card.md",
    ),
    "attention": _command(
        "Draw what a network reads while it writes a summary.",
        ATTENTION,
        run_attention,
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
        "Say what an installation has, and what a command lacks.",
        DOCTOR,
        _run_doctor,
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
