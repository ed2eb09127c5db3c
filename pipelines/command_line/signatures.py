"""The signatures of precis' functions, made from the flags of the commands.

    python -m precis.pipelines.command_line.signatures > precis/__init__.pyi

`describe` gives a function its signature and docstring for the interpreter: completion
and `help(precis.summarize)`. The stub file tells editors and type checkers the same.
"""

import dataclasses
import functools
import importlib
import inspect
import json
import os
import textwrap
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from precis.model.config import FlagInfo
from precis.pipelines.command_line.commands import COMMANDS
from precis.pipelines.corpus.failures import FailureOptions
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.flags.flags import flag_info
from precis.pipelines.options.prepare import PREPARE
from precis.pipelines.options.summarize import NOT_FOR_A_TEXT, SUMMARIZE
from precis.pipelines.options.train_summarizer import TRAIN_SUMMARIZER

# The dataclasses whose fields are keywords, by the name of the function.
CONCERNS: Mapping[str, Sequence[type]] = {
    "attention": COMMANDS["attention"].concerns,
    "card": COMMANDS["card"].concerns,
    "digest": COMMANDS["digest"].concerns,
    "doctor": (),  # Its keywords are a command and the flags of that.
    "evaluate": COMMANDS["evaluate"].concerns,
    "export": COMMANDS["export"].concerns,
    "import_checkpoint": COMMANDS["import"].concerns,
    "load": COMMANDS["load"].concerns,
    "loaders": COMMANDS["loaders"].concerns,
    "prepare": PREPARE,
    "report": COMMANDS["report"].concerns,
    "summarize": SUMMARIZE,
    "summarize_text": tuple(
        concern
        for concern in SUMMARIZE
        if concern not in (CorpusOptions, FailureOptions)
    ),
    "train": COMMANDS["train"].concerns,
    "train_extractor": COMMANDS["train-extractor"].concerns,
    "train_keyphrases": COMMANDS["train-keyphrases"].concerns,
    "train_summarizer": TRAIN_SUMMARIZER,
    "verify": COMMANDS["verify"].concerns,
}
# Where each function is, below precis.pipelines.
_MODULES = {
    "attention": "bundles.attention",
    "card": "bundles.card",
    "digest": "verification.digest",
    "doctor": "command_line.commands",
    "evaluate": "evaluate.evaluate",
    "export": "bundles.export",
    "import_checkpoint": "bundles.import_checkpoint",
    "load": "warehouse.load",
    "loaders": "loaders.loaders",
    "prepare": "prepare.prepare",
    "report": "report.report",
    "summarize": "summarize.summarize",
    "summarize_text": "summarize.one_document",
    "train": "training.train",
    "train_extractor": "training.train_extractor",
    "train_keyphrases": "training.train_keyphrases",
    "train_summarizer": "recipes.train_summarizer",
    "verify": "verification.verify",
}
_PATHS = ("DIR", "FILE", "DIR|GLOB", "DIR[,DIR]")
_WIDTH = 88


@functools.cache
def job_function(name: str) -> Callable[..., Any]:
    """A function of precis by its name, with its keywords described."""
    module = importlib.import_module(f"precis.pipelines.{_MODULES[name]}")
    function: Callable[..., Any] = getattr(module, name)
    parameters = list(_parameters(name, function))
    returned = inspect.signature(function).return_annotation
    signature = inspect.Signature(parameters, return_annotation=returned)
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.__doc__ = _docstring(name, function)
    return function


def _parameters(name: str, function: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    """The function's parameters, with one for each flag in place of **flags."""
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            yield parameter
    for field, hint in _fields(name):
        required = field.default is dataclasses.MISSING
        yield inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if required else field.default,
            annotation=_annotation(hint, flag_info(field)),
        )


def _fields(name: str) -> Iterator[tuple[dataclasses.Field, Any]]:
    """The fields that are keywords of a function, each with its type."""
    hidden = NOT_FOR_A_TEXT if name == "summarize_text" else ()
    for concern in CONCERNS[name]:
        hints = typing.get_type_hints(concern)
        for field in dataclasses.fields(concern):
            if field.name not in hidden:
                yield field, hints[field.name]


def _annotation(hint: Any, info: FlagInfo) -> Any:
    """The types that a keyword takes: `read_flags` also takes paths and lists."""
    if info.metavar in _PATHS:
        hint = hint | os.PathLike[str]
    if info.takes_list:
        hint = hint | Sequence[Any]
    return hint


def _docstring(name: str, function: Callable[..., Any]) -> str:
    """The function's docstring with every keyword in place of `**flags`."""
    keywords = []
    for field, _ in _fields(name):
        text = f"{field.name}: {flag_info(field).help}."
        keywords += textwrap.wrap(
            text, _WIDTH - 4, initial_indent=" " * 2, subsequent_indent=" " * 6
        )
    lines: list[str] = []
    is_skipped = False
    for line in inspect.cleandoc(function.__doc__ or "").splitlines():
        if line.startswith("  **flags"):
            lines += keywords
            is_skipped = True
        elif not line.startswith("      "):
            is_skipped = False
        if not is_skipped:
            lines.append(line)
    return "\n".join(lines)


def stub() -> str:
    """The content of precis/__init__.pyi."""
    blocks = [
        '"""Made by `python -m precis.pipelines.command_line.signatures`."""\n',
        "import os\nfrom collections.abc import Mapping, Sequence\n"
        "from typing import Any\n",
        "from precis.model.records.dataset import DatasetInfo\n"
        "from precis.model.training.export import TrainResult\n"
        "from precis.pipelines.doctor.findings import Diagnosis\n"
        "from precis.pipelines.loaders.loaders import LoaderFiles\n"
        "from precis.pipelines.report.report import ReportResult\n"
        "from precis.pipelines.verification.verify import Verification\n"
        "from precis.pipelines.warehouse.table_result import TableResult\n",
        "__version__: str\n",
    ]
    return "\n".join([*blocks, *(_stub_function(name) for name in CONCERNS)])


def _stub_function(name: str) -> str:
    function = job_function(name)
    signature = inspect.signature(function)
    positional: list[str] = []
    keywords: list[str] = []
    for parameter in signature.parameters.values():
        text = f"    {parameter.name}: {_type_name(parameter.annotation)}"
        if parameter.default is not inspect.Parameter.empty:
            default = _source(parameter.default)
            is_short = len(text) + len(default) < _WIDTH - len(" = ,")
            text += f" = {default}" if is_short else " = ..."
        is_keyword = parameter.kind is inspect.Parameter.KEYWORD_ONLY
        (keywords if is_keyword else positional).append(f"{text},")
    summary = (inspect.getdoc(function) or "").split("\n\n")[0]
    docstring = textwrap.indent(f'"""{summary}"""', "    ")
    return "\n".join(
        [
            f"def {name}(",
            *positional,
            "    *,",
            *keywords,
            f") -> {_type_name(signature.return_annotation)}:",
            docstring,
            "",
        ]
    )


def _source(value: Any) -> str:
    """A value as source, its texts between double quotes."""
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _type_name(annotation: Any) -> str:
    """The annotation as source, without the modules of its names."""
    text = inspect.formatannotation(annotation)
    for module in (
        "collections.abc.",
        "typing.",
        "precis.model.records.dataset.",
        "precis.model.training.export.",
        "precis.pipelines.doctor.findings.",
        "precis.pipelines.loaders.loaders.",
        "precis.pipelines.report.report.",
        "precis.pipelines.verification.verify.",
        "precis.pipelines.warehouse.table_result.",
    ):
        text = text.replace(module, "")
    return text


if __name__ == "__main__":
    print(stub(), end="")
