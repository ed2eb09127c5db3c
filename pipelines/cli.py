"""The command line. It imports TensorFlow and Beam only when a job starts, so that
`--help` answers at once.

Exit codes: 0 done; 1 the data failed the job; 2 the command was wrong; 143 stopped by
SIGTERM with the state saved.
"""

import argparse
import importlib.metadata
import itertools
import logging
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from precis.model.errors import PrecisError
from precis.model.tensorflow_import import import_tensorflow
from precis.pipelines.flags import add_flags
from precis.pipelines.options.bundles import ATTENTION, EXPORT, IMPORT
from precis.pipelines.options.evaluate import EVALUATE
from precis.pipelines.options.prepare import PREPARE
from precis.pipelines.options.summarize import SUMMARIZE
from precis.pipelines.options.train import TRAIN

_BEAM_HELP = (
    "Flags that are not listed here go to Beam, as in --runner DataflowRunner or "
    "--direct_num_workers 2."
)


class Command(NamedTuple):
    """A subcommand.

    Attributes:
      help: one line that says what it makes of what.
      concerns: the dataclasses whose fields are its flags.
      uses_beam: whether flags that it does not know go to Beam.
      run: takes the flags as keywords and Beam's own flags; prints the result and
          returns the exit code.
    """

    help: str
    concerns: tuple[type, ...]
    uses_beam: bool
    run: Callable[[dict[str, Any], list[str]], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one subcommand and returns its exit code."""
    parser = _make_parser()
    known, rest = parser.parse_known_args(argv)
    values = vars(known)
    name, is_verbose = values.pop("command"), values.pop("verbose")
    if rest and not COMMANDS[name].uses_beam:
        print(
            f"precis {name}: there is no flag {' '.join(rest)}; see `precis {name} "
            "--help`",
            file=sys.stderr,
        )
        return 2
    _set_logging(is_verbose)
    try:
        return COMMANDS[name].run(values, rest)
    except PrecisError as error:
        if is_verbose and error.__cause__ is not None:
            logging.getLogger("precis").error("cause", exc_info=error.__cause__)
        print(f"precis {name}: {error}", file=sys.stderr)
        return error.exit_code
    # A disk that is full or cannot be written is no defect, so there is no traceback.
    except OSError as error:
        if is_verbose:
            logging.getLogger("precis").error("cause", exc_info=error)
        print(f"precis {name}: {error}", file=sys.stderr)
        return 1


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong; the list of all flags, which argparse prints
    before it, hides the message.
    """

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see `{self.prog} --help`\n")


def _make_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="precis",
        description="Summarizes a whole corpus: extractive and abstractive, in bulk.",
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"precis {importlib.metadata.version('precis')}",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        epilog = _BEAM_HELP if command.uses_beam else None
        # Abbreviated flags would take Beam's: --split for --splittable_something.
        sub = commands.add_parser(
            name,
            help=command.help,
            description=command.help,
            epilog=epilog,
            allow_abbrev=False,
        )
        sub.add_argument(
            "--verbose",
            action="store_true",
            help="show the libraries' logs and the cause of an error",
        )
        add_flags(sub, command.concerns)
    return parser


def _set_logging(is_verbose: bool) -> None:
    """Quiets the libraries, in this process and in those it starts."""
    if is_verbose:
        logging.basicConfig(level=logging.INFO)
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    warnings.filterwarnings("ignore")
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    logging.basicConfig(level=logging.ERROR)
    # Beam logs the traceback of what a worker raises; the command says it in one line.
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)


def _prepare(values: dict[str, Any], beam_args: list[str]) -> int:
    from precis.pipelines.prepare import prepare

    info = prepare(beam_args=beam_args, **values)
    records = _listed({split: info.records(split) for split in info.splits})
    print(f"records: {records}; {_listed(info.counts)}")
    print(f"wrote {values['output']}")
    return 0


def _train(values: dict[str, Any], _: list[str]) -> int:
    import_tensorflow()
    from precis.model.training.loop import Interrupted
    from precis.pipelines.train import train

    try:
        result = train(**values)
    except Interrupted as error:
        print(f"precis train: {error}", file=sys.stderr)
        return 143
    line = f"model {result.model_id}"
    if result.step:
        line += f" of step {result.step}"
    if result.validation:
        scores = (f"{name} {value:.3f}" for name, value in result.validation.items())
        line += f": validation {', '.join(scores)}"
    print(line)
    print(f"wrote {result.bundle}")
    return 0


def _import(values: dict[str, Any], _: list[str]) -> int:
    import_tensorflow()
    from precis.pipelines.import_checkpoint import import_checkpoint

    print(f"model {import_checkpoint(**values)}")
    print(f"wrote {values['output']}")
    return 0


def _summarize(values: dict[str, Any], beam_args: list[str]) -> int:
    from precis.model.inference.search_cost import format_search_cost
    from precis.pipelines.summarize import summarize

    manifest = summarize(beam_args=beam_args, **values)
    print(f"documents: {_listed(manifest['counts'])}")
    print(f"summaries: {_listed(manifest['summary_methods'])}")
    if manifest["quality_flags"]:
        print(f"quality flags: {_listed(manifest['quality_flags'])}")
    if manifest["fallbacks"]:
        print(f"abstractive summaries held back: {_listed(manifest['fallbacks'])}")
    if manifest["search"]:
        print(format_search_cost(manifest["search"]))
    models = {
        "model": manifest["model_id"],
        "extractor": manifest["extractive_model_id"],
        "keyphrases": manifest["keyphrase_model_id"],
    }
    used = [f", {name} {model}" for name, model in models.items() if model]
    print(f"run {manifest['run_id']}{''.join(used)}")
    print(f"wrote {values['output']}")
    return 0


def _export(values: dict[str, Any], _: list[str]) -> int:
    import_tensorflow()
    from precis.pipelines.export import export

    print(f"model {export(**values)['model_id']}")
    print(f"wrote {values['output']}")
    return 0


def _attention(values: dict[str, Any], _: list[str]) -> int:
    import_tensorflow()
    from precis.pipelines.attention import attention

    print(f"wrote {attention(**values)}")
    return 0


def _evaluate(values: dict[str, Any], beam_args: list[str]) -> int:
    from precis.pipelines.evaluate import evaluate

    evaluate(beam_args=beam_args, **values)
    return 0


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


_TRAIN_CONCERNS = tuple(dict.fromkeys(itertools.chain.from_iterable(TRAIN.values())))
COMMANDS = {
    "prepare": Command(
        help="corpus -> vocabulary -> TFRecord shards",
        concerns=PREPARE,
        uses_beam=True,
        run=_prepare,
    ),
    "train": Command(
        help="records -> bundle",
        concerns=_TRAIN_CONCERNS,
        uses_beam=False,
        run=_train,
    ),
    "import": Command(
        help="checkpoint of another project -> bundle",
        concerns=IMPORT,
        uses_beam=False,
        run=_import,
    ),
    "summarize": Command(
        help="corpus (+ bundle) -> Parquet with both summaries",
        concerns=SUMMARIZE,
        uses_beam=True,
        run=_summarize,
    ),
    "export": Command(
        help="bundle -> TensorFlow SavedModel from text to summaries",
        concerns=EXPORT,
        uses_beam=False,
        run=_export,
    ),
    "attention": Command(
        help="bundle + text -> picture of what the network reads",
        concerns=ATTENTION,
        uses_beam=False,
        run=_attention,
    ),
    "evaluate": Command(
        help="Parquet -> ROUGE table",
        concerns=EVALUATE,
        uses_beam=True,
        run=_evaluate,
    ),
}


if __name__ == "__main__":
    sys.exit(main())
